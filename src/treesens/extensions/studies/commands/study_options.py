"""The options of a study as options of its command: the type and the parser of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from treesens.commands.common import named_set, read_as, reads, split, unquoted, words_and_facts
from treesens.compiler.base import option_kinds as kinds
from treesens.compiler.base.floats import fraction_of
from treesens.errors import UsageError
from treesens.extensions.studies.study import Declared

if TYPE_CHECKING:
    from treesens.extensions.studies.limits import Permission


class Cutoff(click.ParamType):  # type: ignore[type-arg] # generic since click 8.4
    """A probability between 0 and 1, exactly as written."""

    name = "probability"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Fraction:
        try:
            number = fraction_of(str(value))
        except (ValueError, ZeroDivisionError):
            self.fail(f"`{value}` is not a number; write e.g. 0.2", param, ctx)
        if not 0 < number < 1:
            self.fail(f"`{value}` is not between 0 and 1", param, ctx)
        return number


_FILE: click.Path = click.Path(path_type=Path, dir_okay=False)


def option_of(one: Declared) -> click.Option:
    """The command-line option for one option of a study."""
    words, facts = words_and_facts(one, _reading)
    return click.Option(words, **facts)


def _reading(one: Declared) -> dict[str, Any]:
    """The type of an option for click, and the function that converts its text."""
    match one.option.kind:
        case kinds.Chance():
            return {"type": Cutoff()}
        case kinds.Names(repeated=True):
            return {"multiple": True, "callback": reads(lambda texts: tuple(name for t in texts for name in split(t)))}
        case kinds.Names():
            return {"callback": reads(lambda text: one.default if text is None else tuple(split(text)))}
        case kinds.Groups():
            return {"multiple": True, "callback": reads(lambda texts: [named_set(text) for text in texts] or None)}
        case kinds.Sizes(single=True):
            return {"callback": reads(lambda text: () if text is None else sizes_of([text], one.flag))}
        case kinds.Sizes():
            return {"callback": reads(lambda text: sizes_of(split(text), one.flag))}
        case kinds.Numbers():
            return {"callback": reads(lambda text: tuple(float(number_of(part, one.flag)) for part in split(text)))}
        case kinds.RowNumbers():
            return {"callback": reads(lambda text: None if text in {None, "all"} else rows_of(text, one.flag))}
        case kinds.Directions():
            return {"multiple": True, "callback": reads(lambda texts: _pairs(texts, one.flag, "age=up,debt=down"))}
        case kinds.Budgets():
            return {"multiple": True, "callback": reads(lambda texts: budgets_of(texts, one.flag))}
        case kinds.Permitted():
            return {"multiple": True, "callback": reads(lambda texts: permitted_of(texts, one.flag))}
        case kinds.Ends():
            return {"nargs": 2, "type": str, "default": None, "callback": reads(lambda ends: ends_of(ends, one.flag))}
        case kinds.DomainFile():
            return {"type": _FILE, "callback": reads(_domain)}
        case kinds.DecisionFile():
            return {"type": _FILE, "callback": reads(_decision)}
        case kinds.InputFile():
            return {"type": _FILE}
        case kinds.TableFile():
            return {"type": click.Path(path_type=Path)}
        case _:
            return read_as(one)


def _domain(path: Path | None) -> Sequence[Any]:
    from treesens.extensions.studies.sens_file import read_domain

    return read_domain(path)


def _decision(path: Path | None) -> Any:
    from treesens.extensions.studies.sens_file import read_decision

    return read_decision(path)


def _is_row(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 19


def rows_of(text: str, flag: str = "--rows") -> list[int]:
    """The rows in a text such as `0,5,10-19`, in this order. Raises UsageError if a part is neither a number nor a range."""
    remedy = f"write {flag} 0,5,10-19"
    rows: list[int] = []
    for part in split(text):
        first, dash, last = part.partition("-")
        if not _is_row(first) or (dash and not _is_row(last)) or (dash and int(last) < int(first)):
            raise UsageError(f"`{part}` is neither a row nor a range of rows", remedy=remedy)
        if dash and int(last) - int(first) > 10_000_000:
            raise UsageError(f"`{part}` is too long a range", remedy="name fewer rows")
        rows += range(int(first), (int(last) if dash else int(first)) + 1)
    if not rows:
        raise UsageError("no row is named", remedy=remedy)
    return rows


def _pairs(texts: Sequence[str], flag: str, example: str) -> dict[str, str]:
    """Settings per feature, in the form NAME=WORDS and separated by commas. Raises UsageError for two settings of a feature."""
    found: dict[str, str] = {}
    for part in (part for text in texts for part in split(text)):
        name, equals, words = (word.strip() for word in part.rpartition("="))
        if not (name and equals and words):
            raise UsageError(f"{flag}: `{part}` assigns nothing to a feature", remedy=f"write {flag} {example}")
        name = unquoted(name)
        if found.setdefault(name, words) != words:
            raise UsageError(f"{flag}: `{name}` is both `{found[name]}` and `{words}`", remedy="name the feature once")
    return found


def budgets_of(texts: Sequence[str], flag: str) -> dict[str, int]:
    """The permitted number of rows that flip for each feature, in the form NAME=ROWS."""
    found = {}
    for name, words in _pairs(texts, flag, "sex=0,age=10").items():
        if not _is_row(words):
            raise UsageError(f"{flag}: `{words}` is not a number of rows", remedy=f"write {flag} {name}=0")
        found[name] = int(words)
    return found


def permitted_of(texts: Sequence[str], flag: str) -> dict[str, Permission]:
    """Permitted values per feature: the range of a number as LOW..HIGH, or values as A|B."""
    from treesens.extensions.studies.limits import Range

    found: dict[str, Permission] = {}
    for name, words in _pairs(texts, flag, "income=0..100 or housing=own|rent").items():
        low, dots, high = words.partition("..")
        ends = dots and Range(number_of(low, flag), number_of(high, flag))
        found[name] = ends or tuple(word.strip() for word in words.split("|"))
    return found


def ends_of(given: tuple[str, str] | None, flag: str) -> tuple[Fraction, Fraction] | None:
    """The two ends of a range, as exact numbers."""
    return None if given is None else (number_of(given[0], flag), number_of(given[1], flag))


def sizes_of(texts: list[str], flag: str) -> tuple[str, ...]:
    """The numbers as written. Raises UsageError if a text is not a number."""
    for text in texts:
        number_of(text, flag)
    return tuple(texts)


def fraction_or_none(text: str) -> Fraction | None:
    """The exact number that a text states, or None."""
    try:
        return fraction_of(text)
    except (ValueError, ZeroDivisionError):
        return None


def number_of(text: str, flag: str) -> Fraction:
    """The exact number that a text states. Raises UsageError if the text is not a number, or outside the range of float64."""
    try:
        number = fraction_of(text)
        float(number)
    except (ValueError, ZeroDivisionError):
        remedy = "write e.g. 0.1"
        if text.endswith("%") and (share := fraction_or_none(text.rstrip("% "))) is not None:
            remedy += f"; {text.rstrip('% ')} % is {float(share / 100):g}"
        raise UsageError(f"{flag}: `{text}` is not a number", remedy=remedy) from None
    except OverflowError:
        raise UsageError(f"{flag}: `{text}` is outside the range of float64", remedy="write e.g. 0.1") from None
    return number
