"""Draws small domains."""

from __future__ import annotations

import numpy as np

from tests.oracle.spaces import Feature, number, quoted

NAMES = ["x", "y", "age", "income", "w", "class", "capital-gain", "2nd", "é", "data", "row", "x y", "a|b", "u.v"]
LABELS = ["Red", "Blue", "State gov", "none", "x-y", "Q", "Ünal", "low"]
NAN = float("nan")


def draw_features(rng: np.random.Generator, *, plain: bool, kinds: list[str], most: int) -> list[Feature]:
    """Two to five features of the given kinds, of at most `most` combinations (real ones count later)."""
    wanted = int(rng.integers(2, 6))
    names = [str(n) for n in rng.permutation(NAMES if not plain else [f"f{i}" for i in range(9)])]
    made: list[Feature] = []
    size, group = 1, 0
    while len(made) < wanted:
        kind = str(rng.choice(kinds))
        if kind == "onehot":
            more = _onehot(names, int(rng.integers(2, 4)), group)
            group += 1
        else:
            more = [draw_feature(rng, names.pop(), kind)]
        growth = len(more) if kind == "onehot" else (8 if kind == "real" else len(more[0].typed))
        if made and size * growth > most:
            break
        size *= growth
        made += more
    return made


def draw_wide(rng: np.random.Generator, *, plain: bool) -> list[Feature]:
    """Many features of few combinations: one-hot groups, features of two values, and features of one value, in any order."""
    wanted = int(rng.choice([18, 18, 30, 60, 200], p=[0.35, 0.25, 0.25, 0.1, 0.05]))
    names = [f"f{i}" if plain else f"w{i}" for i in range(wanted + 8)][::-1]
    made: list[Feature] = []
    for group in range(int(rng.integers(1, 4))):
        made += _onehot(names, int(rng.integers(3, 7)), group)
    for _ in range(int(rng.integers(1, 5))):
        made.append(_whole(names.pop(), 0, 1))
    while len(made) < wanted:
        value = int(rng.integers(-2, 3))
        made.append(_whole(names.pop(), value, value))
    order = rng.permutation(len(made)) if not plain else np.arange(len(made))
    return [made[i] for i in order]


def _whole(name: str, low: int, high: int) -> Feature:
    values = tuple(range(low, high + 1))
    user = tuple(float(v) for v in values)
    return Feature(
        name, "integer", values, user, user, float(high - low), f"integer in [{low}, {high}]",
        constants=tuple(str(v) for v in range(low - 1, high + 2)),
    )  # fmt: skip


def _onehot(names: list[str], count: int, group: int) -> list[Feature]:
    return [
        Feature(
            names.pop(),
            "integer",
            (0, 1),
            (0.0, 1.0),
            (0.0, 1.0),
            1.0,
            "integer in [0, 1]",
            constants=("0", "1"),
            group=group,
        )
        for _ in range(count)
    ]


def draw_feature(rng: np.random.Generator, name: str, kind: str) -> Feature:
    if kind == "real":
        return draw_real(rng, name)
    if kind in ("category", "code", "label"):
        return draw_category(rng, name, kind)
    return draw_integer(rng, name, stored=kind == "stored")


def draw_integer(rng: np.random.Generator, name: str, *, stored: bool) -> Feature:
    low, steps = int(rng.integers(-3, 4)), int(rng.integers(1, 7))
    values: list[int | None] = list(range(low, low + steps + 1))
    text, unit = f"integer in [{low}, {low + steps}]", None
    reads = [float(v) for v in values if v is not None]
    if stored:
        first = float(rng.integers(-2, 3))
        slope = float(rng.choice([2.0, 1.0, 0.5, 0.25, 10.0, -1.0 if rng.random() < 0.1 else 3.0]))
        slope = abs(slope)
        unit = (float(low), float(low + steps), first, first + slope * steps)
        reads = [first + slope * k for k in range(steps + 1)]
        text += f" stored as [{number(unit[2])}, {number(unit[3])}]"
    user = [float(v) for v in values if v is not None]
    if rng.random() < 0.3:
        text += " or missing"
        values, user, reads = [*values, None], [*user, NAN], [*reads, NAN]
    constants = [str(v) for v in range(low - 1, low + steps + 2)] + [
        f"{low + k}.5" for k in range(steps) if low + k >= 0
    ]
    return Feature(
        name,
        "integer",
        tuple(values),
        tuple(user),
        tuple(reads),
        float(steps),
        text,
        constants=tuple(constants),
        unit=unit,
    )


def draw_real(rng: np.random.Generator, name: str) -> Feature:
    """Its values are put in when the thresholds are known; until then `user` holds the two ends of the domain."""
    low, high = [(0.0, 1.0), (-1.0, 2.0), (0.0, 10.0), (0.125, 0.75)][int(rng.integers(4))]
    missing = bool(rng.random() < 0.25)
    text: str | None = f"real in [{number(low)}, {number(high)}]" + (" or missing" if missing else "")
    if rng.random() < 0.25:
        text, missing = None, False
    elif rng.random() < 0.2:
        text = f"real in [{number(low)}, inf)" + (" or missing" if missing else "")
    middle = [number(low + (high - low) * k / 8) for k in range(9)]
    return Feature(
        name,
        "real",
        (low, high),
        (low, high),
        (low, high),
        high - low,
        text,
        constants=tuple(middle),
        missing_text=missing,
    )


def draw_category(rng: np.random.Generator, name: str, kind: str) -> Feature:
    count = int(rng.integers(2, 6))
    named = kind == "label" or rng.random() < 0.7
    labels = [str(x) for x in rng.permutation(LABELS)[:count]] if named else [str(k) for k in range(count)]
    if kind == "label" and rng.random() < 0.3:
        labels = [str(x) for x in sorted(rng.choice(np.arange(1, 12), count, replace=False))]
    if kind == "label":
        text, reads = None, tuple(labels)
        kept = sorted(rng.choice(count, int(rng.integers(2, count + 1)), replace=False))
        shown = [labels[k] for k in kept]
        if len(kept) < count or rng.random() < 0.5:
            text = "category {" + ", ".join(_label(x) for x in shown) + "}"
        values, user = shown, [float(k) for k in range(len(shown))]
        missing = text is not None and rng.random() < 0.3
        reads = tuple(shown)
    else:
        values, user = labels, [float(k) for k in range(count)]
        reads = tuple(user)
        inside = ", ".join(f"{_label(x)} = {k}" for k, x in enumerate(labels)) if named else ", ".join(labels)
        text = "category {" + inside + "}"
        missing = rng.random() < 0.25
    typed: tuple = tuple(values) if kind == "label" or named else tuple(int(v) for v in values)
    if missing:
        text = f"{text} or missing"
        typed, user, reads = (*typed, None), [*user, NAN], (*reads, NAN)
    return Feature(
        name, "category", typed, tuple(user), reads, 1.0, text, codes={"category": "number"}.get(kind, kind),
        labels=tuple(labels) if kind == "label" else (),
    )  # fmt: skip


def _label(text: str) -> str:
    return text if text.isdigit() else quoted(text)
