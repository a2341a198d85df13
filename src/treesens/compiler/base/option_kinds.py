"""Option declarations: one dataclass field per option, with its kind, default, range and help (docs/adr/0021, 0039).

Commands, Python calls, SPEC files and pages are generated from these declarations. They contain data only: nothing heavy is
imported, so that help is fast.
"""

from __future__ import annotations

import enum
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Text:
    """Any text."""


@dataclass(frozen=True)
class ClassLabel:
    """The label or user-given name of a class: a text. In Python a label can also be an integer."""


@dataclass(frozen=True)
class Flag:
    """Yes or no."""


@dataclass(frozen=True)
class Whole:
    """An integer from `least`, at most `most`."""

    least: int
    most: int | None = None


@dataclass(frozen=True)
class Number:
    """A number in a range, converted to a float."""

    least: float
    most: float


@dataclass(frozen=True)
class Seconds:
    """A time limit, above 0."""


@dataclass(frozen=True)
class Choice:
    """One of a few words. `old` are pairs of a former word and its present one."""

    words: tuple[str, ...]
    old: tuple[tuple[str, str], ...] = ()

    def present(self, word: Any) -> Any:
        """The present word for a former one; other words unchanged."""
        return next((new for old, new in self.old if isinstance(word, str) and word == old), word)


@dataclass(frozen=True)
class Chance:
    """A probability between 0 and 1, exactly as written: a Fraction."""


@dataclass(frozen=True)
class Percent:
    """A percentage such as 95%, as a text."""


@dataclass(frozen=True)
class Names:
    """Names as a,b: a tuple of texts. `repeated` lists are joined; classes can be `numbers`; some lists have few `words`."""

    repeated: bool = False
    numbers: bool = False
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Groups:
    """Sets of names, each as a,b; the option may be repeated: a tuple of tuples, None if there is none."""


@dataclass(frozen=True)
class Sizes:
    """Numbers as 0.1,0.2: a tuple of texts. One alone if it is a `single` one."""

    single: bool = False


@dataclass(frozen=True)
class Numbers:
    """Numbers as 0.1,0.2: a tuple of floats."""


@dataclass(frozen=True)
class RowNumbers:
    """Rows as 0,5,10-19, or all: a tuple of numbers from 0, None for all."""


@dataclass(frozen=True)
class Directions:
    """Directions by feature, as age=up,debt=down: a mapping of texts."""


@dataclass(frozen=True)
class Budgets:
    """Maximum rows by feature, as sex=0,age=10: a mapping of integers."""


@dataclass(frozen=True)
class Permitted:
    """Permitted values of features, as income=0..100 or housing=own|rent: a mapping of `limits.Permission`."""


@dataclass(frozen=True)
class Ends:
    """Two numbers, the low and the high end of a range: Fractions."""


@dataclass(frozen=True)
class DomainFile:
    """A `.sens` file: its declarations of features."""


@dataclass(frozen=True)
class DecisionFile:
    """A `.sens` file: its only declaration of a decision."""


@dataclass(frozen=True)
class InputFile:
    """A file to read, as a path."""


@dataclass(frozen=True)
class TableFile:
    """A table, with the study's label column: a Table."""


@dataclass(frozen=True)
class OutputPath:
    """The path of an output file or folder. `needs` names the package that writes it, if a plain installation lacks it,
    `made_by` the service of the extension that does.
    """

    folder: bool = False
    needs: str | None = None
    made_by: str | None = None


@dataclass(frozen=True)
class Solver:
    """The name of a backend, or `auto`; with `or_library` also `library`."""

    or_library: bool = False


@dataclass(frozen=True)
class Passes:
    """A pipeline: its name, or passes."""


@dataclass(frozen=True)
class Bytes:
    """A size of memory in bytes; in text, in megabytes."""

    in_words = 1_000_000


Kind: TypeAlias = (
    Text | ClassLabel | Flag | Whole | Number | Seconds | Choice | Chance | Percent | Names | Groups | Sizes | Numbers
    | RowNumbers | Ends | Directions | Budgets | Permitted | DomainFile | DecisionFile | InputFile | TableFile | OutputPath
    | Solver | Passes | Bytes
)  # fmt: skip

REQUIRED = MISSING
"""The default of a required option."""


class Door(enum.Flag):
    """Where an option can be given: at its own command (of a study, or `check`), in Python by signature or (NAMED) by name
    alone, at `compare`, at `sweep`, in the SPEC of a sweep.
    """

    COMMAND = enum.auto()
    PYTHON = enum.auto()
    NAMED = enum.auto()
    COMPARE = enum.auto()
    SWEEP = enum.auto()
    SPEC = enum.auto()
    BOTH = COMMAND | PYTHON


@dataclass(frozen=True)
class Option:
    """One option: `sentence` is its help, `more` additional text for the page. `name`, `short` and `also` are its names at the
    command, where the default may differ (`at_command`).
    """

    kind: Kind
    sentence: str | None
    name: str | None = None
    short: str | None = None
    metavar: str | None = None
    door: Door = Door.BOTH
    at_command: Any = None
    more: str = ""
    also: tuple[str, ...] = ()
    last: bool = False
    """After all others at a command."""


def given(option: Option, default: Any = REQUIRED, sentence: str | None = None, more: str | None = None) -> Any:
    """A field of options: an option with a default, optionally with other texts."""
    mine = option if sentence is None else replace(option, sentence=sentence)
    mine = mine if more is None else replace(mine, more=more)
    return field(default=default, metadata={"option": mine})


@dataclass(frozen=True)
class Declared:
    """A field of options with its declaration."""

    field: str
    option: Option
    default: Any
    """REQUIRED if it has none."""

    @property
    def flag(self) -> str:
        """Its long name at the command."""
        return "--" + (self.option.name or self.field).replace("_", "-")


def declared(options: type[Any], door: Door = Door.BOTH) -> list[Declared]:
    """The options of a class that can be given at any of some doors, in order."""
    known = [Declared(f.name, f.metadata["option"], f.default) for f in fields(options) if "option" in f.metadata]
    return sorted(
        (one for one in known if one.option.door & door), key=lambda one: one.option.last and not door & Door.PYTHON
    )


def declaration(options: type[Any], name: str) -> Declared:
    """The option of a class with a name."""
    return next(one for one in declared(options, ~Door(0)) if one.field == name)
