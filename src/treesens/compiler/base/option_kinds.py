"""Option declarations: one dataclass field per option, with its kind, default, range and help (docs/adr/0021, 0039).

Commands, Python calls, SPEC files and pages are generated from these declarations, which contain only data: no large module is
imported, so that `--help` is fast.
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
    """The label of a class as text, or the user's name for the class. In Python a label can also be an integer."""


@dataclass(frozen=True)
class Flag:
    """Yes or no."""


@dataclass(frozen=True)
class Whole:
    """An integer in the range from `least` to `most`."""

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
    """One of a few words. `old` holds pairs of a former word and the word that replaces it."""

    words: tuple[str, ...]
    old: tuple[tuple[str, str], ...] = ()

    def present(self, word: Any) -> Any:
        """The word that replaces a former word; other words are unchanged."""
        return next((new for old, new in self.old if isinstance(word, str) and word == old), word)


@dataclass(frozen=True)
class Chance:
    """A probability between 0 and 1, exactly as written, as a Fraction."""


@dataclass(frozen=True)
class Percent:
    """A percentage such as 95%, as text."""


@dataclass(frozen=True)
class Names:
    """Names such as a,b: a tuple of texts. `repeated` lists are joined; `numbers` allows class numbers; `words` are choices."""

    repeated: bool = False
    numbers: bool = False
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Groups:
    """Sets of names, each such as a,b, from a repeatable option: a tuple of tuples, or None if there are no sets."""


@dataclass(frozen=True)
class Sizes:
    """Numbers such as 0.1,0.2: a tuple of texts, or a single text if `single`."""

    single: bool = False


@dataclass(frozen=True)
class Numbers:
    """Numbers such as 0.1,0.2: a tuple of floats."""


@dataclass(frozen=True)
class RowNumbers:
    """Rows such as 0,5,10-19, or all: a tuple of row numbers from 0, or None for all rows."""


@dataclass(frozen=True)
class Directions:
    """Directions by feature, such as age=up,debt=down: a mapping of texts."""


@dataclass(frozen=True)
class Budgets:
    """Maximum numbers of rows by feature, such as sex=0,age=10: a mapping of integers."""


@dataclass(frozen=True)
class Permitted:
    """Permitted values of features, such as income=0..100 or housing=own|rent: a mapping of `limits.Permission`."""


@dataclass(frozen=True)
class Ends:
    """Two numbers, the lower and the upper end of a range: Fractions."""


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
    """The path of an output file or folder. `needs` is the package that writes the output, if a plain installation lacks this
    package; `made_by` is the service of the extension that writes the output.
    """

    folder: bool = False
    needs: str | None = None
    made_by: str | None = None


@dataclass(frozen=True)
class Solver:
    """The name of a backend, or `auto`; or one of the words in `also`."""

    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Passes:
    """A pipeline: a list of passes and named pipelines."""


@dataclass(frozen=True)
class Bytes:
    """A memory size in bytes; a text states the size in megabytes."""

    in_words = 1_000_000


Kind: TypeAlias = (
    Text | ClassLabel | Flag | Whole | Number | Seconds | Choice | Chance | Percent | Names | Groups | Sizes | Numbers
    | RowNumbers | Ends | Directions | Budgets | Permitted | DomainFile | DecisionFile | InputFile | TableFile | OutputPath
    | Solver | Passes | Bytes
)  # fmt: skip

REQUIRED = MISSING
"""The default of a required option."""


class Door(enum.Flag):
    """The places where an option can be set: on the command line of its study or of `check`, of `compare`, or of `sweep`; in
    the SPEC of a sweep; in Python as a parameter of the call, or only by keyword (NAMED). An option of MODULE can also be set
    for a module (`.sir`), which has no model.
    """

    COMMAND = enum.auto()
    PYTHON = enum.auto()
    NAMED = enum.auto()
    COMPARE = enum.auto()
    SWEEP = enum.auto()
    SPEC = enum.auto()
    MODULE = enum.auto()
    BOTH = COMMAND | PYTHON


@dataclass(frozen=True)
class Option:
    """One option: `sentence` is its help text, `more` is additional text for its page. `name`, `short` and `also` are its names
    on the command line, where its default may differ (`at_command`).
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
    """True if the option is listed after all other options of a command."""


def given(option: Option, default: Any = REQUIRED, sentence: str | None = None, more: str | None = None) -> Any:
    """Makes a dataclass field from an option and a default, optionally with other help and page texts."""
    mine = option if sentence is None else replace(option, sentence=sentence)
    mine = mine if more is None else replace(mine, more=more)
    return field(default=default, metadata={"option": mine})


@dataclass(frozen=True)
class Declared:
    """A field of an options class, with the option that it declares."""

    field: str
    option: Option
    default: Any
    """REQUIRED if the option has no default."""

    @property
    def flag(self) -> str:
        """The long form of the option on the command line."""
        return "--" + (self.option.name or self.field).replace("_", "-")


def declared(options: type[Any], door: Door = Door.BOTH) -> list[Declared]:
    """The options of a class that can be set in at least one of the places `door`, in order."""
    known = [Declared(f.name, f.metadata["option"], f.default) for f in fields(options) if "option" in f.metadata]
    return sorted(
        (one for one in known if one.option.door & door), key=lambda one: one.option.last and not door & Door.PYTHON
    )


def declaration(options: type[Any], name: str) -> Declared:
    """The option declared under this field name in a class."""
    return next(one for one in declared(options, ~Door(0)) if one.field == name)
