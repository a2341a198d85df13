"""Declares `shape`: the features in which a score rises or falls. The search is in `shape_search.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from treesens.compiler.base.option_kinds import Names
from treesens.extensions.studies import shared_options as shared
from treesens.extensions.studies.study import Option, Study, given
from treesens.records.plain import ABSENT, Absent, OneOf, Points

if TYPE_CHECKING:
    from treesens.grammar.tree import ast

SHAPES = ("increasing", "decreasing", "constant", "neither", "unordered", "unknown")
DIRECTIONS = ("increasing", "decreasing")
FEATURES = Option(Names(), "Features, as a,b. Default: every feature with a split.")
INCREASING = Option(
    Names(),
    "Features, as a,b, in which the score is claimed to be increasing; the claim is proved or refuted.",
    more="Directions declared in the model file need no option; files of XGBoost do not store constraints.",
)
DECREASING = Option(Names(), "Features, as a,b, in which the score is claimed to be decreasing.")


@dataclass(frozen=True, kw_only=True)
class ShapeOptions(shared.Certifying):
    """The features, and the claims about them; `time_limit` is the limit for each feature and score, in seconds."""

    features: Sequence[str] = given(FEATURES, ())
    increasing: Sequence[str] = given(INCREASING, ())
    decreasing: Sequence[str] = given(DECREASING, ())
    classes: Sequence[str] = given(shared.CLASSES, (), "Classes, as A,B. Default: all classes.")
    domain: Sequence[ast.Declaration] = given(shared.DOMAIN, ())
    real: Sequence[str] = given(shared.REAL, ())
    replay: str = given(shared.REPLAY, "emulated")
    time_limit: float = given(shared.TIME_LIMIT, 1.0, "Seconds for each feature (and class).")
    jobs: int = given(shared.JOBS, 1, "Features at a time.")
    seed: int = given(shared.SEED, 0)


@dataclass(frozen=True, kw_only=True)
class ShapeRecord:
    """The shape of one score in one feature, with all other features equal; missing values are not part of the order.

    `largest_fall` is the largest fall of the score as the feature rises: the verified pair `fall` reaches it (`a` has the
    smaller value), and no pair exceeds its bound. `largest_rise` and `rise` describe rises of the score in the same way.
    """

    feature: str
    class_: str | int | Absent = ABSENT
    shape: Annotated[str, OneOf(SHAPES)]
    declared: Annotated[str, OneOf(DIRECTIONS)] | None
    holds: bool | None
    largest_fall: float | None
    largest_fall_bound: float | None
    largest_rise: float | None
    largest_rise_bound: float | None
    closed: bool
    reason: str
    fall: Points | None
    fall_scores: dict[str, Any] | None
    rise: Points | None
    rise_scores: dict[str, Any] | None
    replay: str | None
    seconds: float


STUDY = Study(
    name="shape",
    title="shapes of scores: treesens shape --json",
    text="""For every feature: is the score increasing or decreasing, with all other features fixed? The answer is a proof, or
    two pairs that refute both directions, with the largest fall and the largest rise, each with its proved bound. Constraints
    that the model declares (LightGBM, CatBoost, scikit-learn; XGBoost if the model is a live object), or that --increasing and
    --decreasing claim, are proved or refuted by a pair.

    Exit codes: 0 every shape is known, 5 some are not, 10 a condition of --fail-on, 1 usage, 2 unreadable input, 130
    interrupted.
    """,
    call="""\
    The features in which the score of a model rises or falls, with all others equal, as `treesens shape` decides:
    `increasing`, `decreasing` or `constant` (proved), `neither` (two verified pairs), with the largest fall and rise and their
    proved bounds. For a direction declared by the model or claimed by `increasing` or `decreasing`, `holds` is True (proved),
    False (a pair) or None (open). `time_limit` limits each feature and score, in seconds. Ctrl-C returns the results so far.
    """,
    options=ShapeOptions,
    ask="treesens.extensions.studies.shape_search:ask",
    record=ShapeRecord,
    table="CSV or Parquet: domains are the ranges of its columns.",
    fails={
        "refuted": lambda records: any(one.holds is False for one in records),
        "unproved": lambda records: any(one.declared is not None and one.holds is not True for one in records),
    },
    fail_words="Exit with 10 if a pair refutes a declared or claimed direction, or if the direction is not proved.",
    work="shapes",
    total="treesens.extensions.studies.shape_search:total",
)
