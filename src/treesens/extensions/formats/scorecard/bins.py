"""Scorecard bins as people and optbinning write them: intervals, comparisons, lists of categories, `Missing`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from treesens.compiler.base.floats import NumberType, next_up

_NUMBER = r"[-+]?(?:inf|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d{1,4})?)"
_INTERVAL = re.compile(rf"([\[(])\s*({_NUMBER})\s*[,;]\s*({_NUMBER})\s*([\])])", re.IGNORECASE)
_COMPARISON = re.compile(rf"(<=|<|>=|>)\s*({_NUMBER})", re.IGNORECASE)
_LIST = re.compile(r"\[(.*)\]", re.DOTALL)
_WORD = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")


@dataclass(frozen=True)
class Interval:
    """The numbers from one strict cut (included) to another (excluded)."""

    low: float
    high: float
    digits: tuple[int, ...] = ()
    """The number of decimals of each finite end."""


@dataclass(frozen=True)
class Listed:
    """Categories by their texts."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Word:
    """A bin of `missing` or `special` values, or of `other` values, which no other bin contains."""

    name: str


Bin = Interval | Listed | Word
_WORDS = {"missing": "missing", "special": "special", "other": "other", "else": "other", "(other)": "other"}


def parse_bin(text: str) -> Bin | None:
    """The bin that a text denotes; None if it denotes no bin."""
    text = text.strip()
    if text.lower() in _WORDS:
        return Word(_WORDS[text.lower()])
    if found := _INTERVAL.fullmatch(text):
        low, high = float(found[2]), float(found[3])
        low, high = _after(low) if found[1] == "(" else low, high if found[4] == ")" else _after(high)
        return Interval(low, high, _digits(found[2], found[3]))
    if found := _COMPARISON.fullmatch(text):
        bound = float(found[2])
        cut = _after(bound) if found[1] in ("<=", ">") else bound
        low, high = (-math.inf, cut) if found[1] in ("<", "<=") else (cut, math.inf)
        return Interval(low, high, _digits(found[2]))
    if found := _LIST.search(text):
        return Listed(_names(found[1]))
    return None


def _digits(*ends: str) -> tuple[int, ...]:
    plain = (end for end in ends if not math.isinf(float(end)))
    return tuple(len(end.lower().partition("e")[0].partition(".")[2]) for end in plain)


def _after(x: float) -> float:
    return x if math.isinf(x) else next_up(x, NumberType.FLOAT64)


def _names(text: str) -> tuple[str, ...]:
    quoted = _WORD.findall(text)
    if quoted:
        return tuple(re.sub(r"\\(.)", r"\1", one or other) for one, other in quoted)
    return tuple(name.strip() for name in text.split(",") if name.strip())
