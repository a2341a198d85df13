"""How far a mean of draws can lie from its expectation: Hoeffding's bound in terms of relative entropy.

Draws X_1 .. X_n are independent, each 0 or 1, with expectations q_i whose mean is q. For every x > q

    P(mean of draws >= x) <= exp(-n KL(x, q)),   KL(x, q) = x ln(x / q) + (1 - x) ln((1 - x) / (1 - q)),

and the same for x < q below (W. Hoeffding, *Probability inequalities for sums of bounded random variables*, Journal of the
American Statistical Association 58, 1963, Theorem 1; draws need not have the same expectation).
"""

from __future__ import annotations

from math import inf, log

_STEPS = 80


def relative_entropy(x: float, q: float) -> float:
    """KL(x, q) of two coins, 0 <= x, q <= 1."""
    if x == q:
        return 0.0
    if q <= 0.0 or q >= 1.0:
        return inf
    first = x * log(x / q) if x > 0 else 0.0
    second = (1 - x) * log((1 - x) / (1 - q)) if x < 1 else 0.0
    return first + second


def upper_limit(hits: int, draws: int, delta: float) -> float:
    """The expectation lies above it with probability at most `delta`."""
    if draws == 0:
        return 1.0
    mean, most = hits / draws, -log(delta) / draws
    low, high = mean, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if relative_entropy(mean, middle) > most else (middle, high)
    return high


def lower_limit(hits: int, draws: int, delta: float) -> float:
    """The expectation lies below it with probability at most `delta`."""
    return 1.0 - upper_limit(draws - hits, draws, delta) if draws else 0.0
