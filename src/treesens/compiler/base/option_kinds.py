"""The kinds of options that studies have. A command reads each from its words, Python takes it as a value (docs/adr/0021).

These are facts alone: nothing heavy is imported, so that help costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Text:
    """A text, as it is."""


@dataclass(frozen=True)
class ClassLabel:
    """The label of a class, or a name that somebody has given it: a text. In Python a label can be a whole number, too."""


@dataclass(frozen=True)
class Flag:
    """Yes or no."""


@dataclass(frozen=True)
class Whole:
    """A whole number from `least`, at most `most`."""

    least: int
    most: int | None = None


@dataclass(frozen=True)
class Number:
    """A number in a range, which arrives as a float."""

    least: float
    most: float


@dataclass(frozen=True)
class Seconds:
    """A time limit, above 0."""


@dataclass(frozen=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Chance:
    """A probability between 0 and 1, as it is written: a Fraction."""


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
    """Ways by feature, as age=up,debt=down: a mapping of texts."""


@dataclass(frozen=True)
class Budgets:
    """Most rows by feature, as sex=0,age=10: a mapping of whole numbers."""


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
    """A file that is read, as a path."""


@dataclass(frozen=True)
class TableFile:
    """A table, with the column of labels that the study has: a Table."""


@dataclass(frozen=True)
class OutputPath:
    """The path of an output file or folder. `needs` is the package that writes it, if a plain installation lacks it."""

    folder: bool = False
    needs: str | None = None


Kind: TypeAlias = (
    Text | ClassLabel | Flag | Whole | Number | Seconds | Choice | Chance | Percent | Names | Groups | Sizes | Numbers
    | RowNumbers | Ends | Directions | Budgets | Permitted | DomainFile | DecisionFile | InputFile | TableFile | OutputPath
)  # fmt: skip
