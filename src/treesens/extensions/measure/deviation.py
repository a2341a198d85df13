"""Bounds on a mass from weighted draws. The bounds hold at all times, however past results influence draws and boxes.

Each round has draws X_1 .. X_n of 0 or 1 with weights W_i >= 0. Earlier rounds determine how a round is drawn; its weighted sum
has the expectation mu - full_r, with the unknown mass mu and its proved part full_r. For 0 <= t < 1 / max W the numbers

    M_r = product over rounds of exp(t (mu - full)) * product over its hits of (1 - t W_i)

are a supermartingale, because E (1 - t W X) <= exp(-t E W X). With probability 1 - d, no M_r is ever above 1 / d (Ville, *Étude
critique de la notion de collectif*, 1939). Solved for mu, the inequality yields an upper limit; with 1 + t W and the opposite
sign of mu, it yields a lower limit. The limits use the betting method of Waudby-Smith and Ramdas (*Estimating means of bounded
random variables by betting*, Journal of the Royal Statistical Society B 86, 2024), extended to weighted draws.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, log, log1p

import numpy as np

from treesens.compiler.base.arrays import FloatArray

_MOST_BET = 0.9
"""Maximum bet on the heaviest draw."""
_LEVELS = ((1.0, 3 / 4), (4.0, 3 / 16), (16.0, 3 / 64), (64.0, 1 / 64))
"""Target precisions as multiples of the required precision, with shares of delta (sum 1). Coarse targets allow early stops."""


@dataclass(frozen=True)
class Round:
    """The results of draws: the proved mass `full`, and the weights of affected inputs and of possibly affected inputs."""

    full: float
    concerned: FloatArray
    maybe: FloatArray


@dataclass(frozen=True)
class Bet:
    """Numbers fixed before a round: the mass `unit` of a typical hit, the greatest mass, and the target per unproved mass."""

    unit: float
    heaviest: float
    relative: float


@dataclass
class _Side:
    """Sums over rounds for one limit; `sign` is 1 for the upper limit and -1 for the lower limit."""

    sign: int
    cost: float
    bets: float = 0.0
    moved: float = 0.0

    def add(self, bet: float, full: float, weights: FloatArray) -> None:
        self.bets += bet
        self.moved += bet * full - self.sign * float(np.log1p(-self.sign * bet * weights).sum())

    @property
    def limit(self) -> float:
        return (self.moved + self.sign * self.cost) / self.bets if self.bets > 0 else self.sign * inf


@dataclass
class _Level:
    aim: float
    upper: _Side
    lower: _Side

    def bets(self, bet: Bet) -> tuple[float, float]:
        """The best bets if the estimate is correct: final limits are 1 + x and 1 - x times the mass; upper bet first."""
        x = self.aim * bet.relative
        up = min(x / (1 + x) / bet.unit, _MOST_BET / bet.heaviest)
        return up, min(x / (1 - x) if x < 0.5 else 1.0, 1.0) / bet.unit

    def add(self, bet: Bet, seen: Round) -> None:
        up, down = self.bets(bet)
        self.upper.add(up, seen.full, np.concatenate([seen.concerned, seen.maybe]))
        self.lower.add(down, seen.full, seen.concerned)


@dataclass
class Limits:
    """Confidence limits of a mass. The probability that a limit is ever wrong is at most `delta` / 2."""

    delta: float
    low: float = -inf
    high: float = inf
    _levels: list[_Level] = field(default_factory=list)

    def __post_init__(self) -> None:
        for aim, part in _LEVELS:
            cost = log(2 / (self.delta * part))
            self._levels.append(_Level(aim, _Side(1, cost), _Side(-1, cost)))

    def add(self, bet: Bet, seen: Round) -> None:
        """Adds a round, for which the bet was fixed before the draws."""
        for level in self._levels:
            level.add(bet, seen)
            self.low = max(self.low, level.lower.limit)
            self.high = min(self.high, level.upper.limit)

    def rounds_left(self, bet: Bet, mass: float) -> float:
        """The estimated number of further rounds with this bet; `mass` is the unproved part of the result."""
        level = self._levels[0]
        up, _ = level.bets(bet)
        x = up * bet.unit
        gap = mass * (bet.relative + 1 + log1p(-x) / x)
        return max(0.0, level.upper.cost / gap - level.upper.bets) / up if gap > 0 else inf
