"""Options that several studies share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from treesens.compiler.base.option_kinds import (
    Budgets,
    Chance,
    Choice,
    DecisionFile,
    DomainFile,
    Ends,
    Groups,
    Names,
    OutputPath,
    Percent,
    Seconds,
    Sizes,
    Whole,
)
from treesens.extensions.studies.study import Door, Option, given
from treesens.grammar.tree.words import MEASURES, TYPICAL_WAYS
from treesens.solve import options as asked

MOST_SEED = 2**31 - 1
MOST_JOBS = 4096

VARY = Option(Groups(), "A feature, or a set as a,b; repeatable. Default: every feature alone.", short="-v")
GAP = Option(Sizes(), "Gaps in probability, e.g. 0.1,0.2 (for a regressor, in its value).")
MARGIN = Option(Sizes(), "Gaps in raw score, e.g. 0.5,1.")
MEASURE = Option(
    Choice(MEASURES),
    "The measure of shares (docs/measures.md).",
    more="[Measures](measures.md) defines the measures.",
)
TYPICAL = Option(
    Percent(),
    "Restrict inputs to inputs typical of the data, e.g. 95%: those in a region that contains this percentage of fresh inputs.",
    metavar="LEVEL",
    more="See [typical inputs](language.md#typical-inputs).",
)
TYPICAL_BY = Option(
    Choice(TYPICAL_WAYS),
    "The score of typical inputs: a tree of pairs of features (the default), or an isolation forest.",
)
THRESHOLD = Option(Chance(), "The decision is probability >= THRESHOLD (default: the model's own threshold).")
CLASSES = Option(
    Names(numbers=True), "Classes, as A,B. One class: its score; several classes: changes between them. Default: all."
)
DOMAIN = Option(DomainFile(), "A .sens file whose `feature` and `onehot` lines declare the domain.")
DECISION = Option(
    DecisionFile(),
    "A .sens file with one `decision`: questions are about its outcome.",
    more="See [decisions](language.md#decisions).",
)
BUDGET = Option(
    Budgets(),
    "The number of rows that may flip when a feature changes, as sex=0,age=10: exit with 10 if more rows flip.",
    metavar="NAME=ROWS",
    door=Door.COMMAND,
)
PROTECTED = Option(
    Names(repeated=True),
    "Protected features, as a,b: listed first in every table, and never proposed for a change. Default: as in treesens.toml.",
    more="See [protected features](protected.md).",
)
REAL = Option(
    Names(repeated=True), "Features, as a,b, whose values may be fractions although their columns hold whole numbers."
)
RANGE = Option(Ends(), "The domain of every number. Default: the ranges of the table's columns.", metavar="LOW HIGH")
PRICE_BY = Option(
    Groups(),
    "Also compute prices for each value of a column, or of several columns as a,b; repeatable.",
    more="The column need not be a feature of the model.",
)
PLOT = Option(OutputPath(needs="matplotlib"), None, door=Door.COMMAND)
TIME_LIMIT = Option(Seconds(), None, short="-t")
SET_LIMIT = Option(Seconds(), "Seconds for every set of features and model.")
TOLERANCE, OPTIMAL, SEED = asked.TOLERANCE, asked.OPTIMAL, asked.SEED
ABSOLUTE_TOLERANCE = replace(asked.ABSOLUTE, door=Door.COMMAND)
THREADS = Option(Whole(1, MOST_JOBS), "Threads of one search.")
JOBS = Option(Whole(1, MOST_JOBS), "Sets at a time.", short="-j")
REPLAY = replace(
    asked.REPLAY,
    sentence="Replay witnesses in the library itself (auto: if the library is installed), or in its arithmetic.",
    at_command="auto",
    more="",
)
CERTIFICATE = replace(asked.CERTIFICATE, more="[Certificates](certificates.md) lists the statements.")
REQUIRE = replace(
    asked.REQUIRE,
    sentence="Findings without an accepted certificate are left out, and the exit code is then never 0.",
    more="Needs `--certificate`.",
)


@dataclass(frozen=True, kw_only=True)
class Certifying:
    """Options of studies whose findings can have certificates."""

    certificates: Path | None = given(CERTIFICATE, None)
    require_certificate: bool = given(REQUIRE, False)
