# Made from the declarations of the studies: python -m tests.house.calls_stub --write
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from treesens.python.rows import Reasons, Robustness, Sets
from treesens.python.shares import Count
from treesens.python.studies import Gap
from treesens.python.types import Data, Model

__all__ = ["count", "gap", "robust", "sets", "why"]

def count(
    model: Model,
    data: Data | None = None,
    *,
    label: str | None = None,
    measure: Literal["uniform", "cells", "marginals", "chow-liu", "rows"] = "uniform",
    vary: str | Sequence[str | Sequence[str]] | None = None,
    gap: float | Sequence[float] | None = None,
    margin: float | Sequence[float] | None = None,
    threshold: float | None = None,
    classes: Sequence[str | int] = (),
    domain: str | Path | None = None,
    real: str | Sequence[str] = (),
    epsilon: float = 0.05,
    delta: float = 1e-06,
    negligible: float = 1e-06,
    time_limit: float = 10.0,
    seed: int = 0,
) -> Count:
    """The share of inputs for which changing some features alone flips the decision, as `treesens count` finds it: a proved
    interval, and inside it an estimate that is further off than `epsilon` (relative) with a probability of at most `delta`.

    `measure` says what a share is a share of: `uniform` on the domain, `cells`, or by `data`: `marginals`, `chow-liu`, `rows`.
    Sets, gaps, cut-offs, classes and domains are those of `audit`. `time_limit` is in seconds for each question. Ctrl-C returns
    what is known so far.
    """

def gap(
    model: Model,
    data: Data | None = None,
    *,
    label: str | None = None,
    vary: str | Sequence[str | Sequence[str]] | None = None,
    threshold: float | None = None,
    classes: Sequence[str | int] = (),
    domain: str | Path | None = None,
    replay: Literal["auto", "emulated", "library"] = "emulated",
    typical: float | None = None,
    typical_by: Literal["chow-liu", "isolation"] | None = None,
    real: str | Sequence[str] = (),
    close: float = 0.02,
    time_limit: float = 30.0,
    threads: int = 2,
    jobs: int = 1,
    seed: int = 0,
) -> Gap:
    """The largest certified gap of every feature (or set in `vary`), as `treesens gap` finds it: reached by a verified pair and
    bounded by a proof. With `data` the domains are the ranges of its columns. A search ends when the bound is within `close`
    of the value, or after `time_limit` seconds for each set. With `typical`, a percentage, only inputs that are typical of the
    rows count.
    """

def robust(
    model: Model,
    data: Data,
    rows: int | str | Sequence[int | str] | None = None,
    *,
    label: str | None = None,
    norm: Literal["linf", "l2", "l1", "l0"] = "linf",
    targeted: bool = False,
    range: tuple[float, float] | None = None,
    replay: Literal["auto", "emulated", "library"] = "emulated",
    time_limit: float = 10.0,
    seed: int = 0,
) -> Robustness:
    """The distance of rows (default: all) of `data` to another class, as `treesens robust` finds it: reached by a verified
    input, and bounded by a proof. `range` is the domain of every number (default: the ranges of the columns); with `targeted`
    every other class has a distance of its own. `time_limit` is in seconds per question. Ctrl-C returns what is known so far.
    """

def sets(
    model: Model,
    data: Data | None = None,
    *,
    label: str | None = None,
    gap: float | None = None,
    margin: float | None = None,
    vary: str | Sequence[str] | None = None,
    most: int | None = None,
    threshold: float | None = None,
    classes: Sequence[str | int] = (),
    domain: str | Path | None = None,
    replay: Literal["auto", "emulated", "library"] = "emulated",
    real: str | Sequence[str] = (),
    time_limit: float = 10.0,
    seed: int = 0,
) -> Sets:
    """Which sets of features can flip the decision by a gap, as `treesens sets` finds them: all smallest ones that can, each
    with a verified pair, and all largest ones that cannot, proved. `vary` are the features whose sets are asked about (default:
    all that the model uses); `most` stops after so many that flip. `time_limit` is in seconds per set. Ctrl-C returns what is
    known so far. UsageError without a size: `gap` in probability, or `margin` in raw score.
    """

def why(
    model: Model,
    data: Data,
    rows: int | str | Sequence[int | str] | None = None,
    *,
    label: str | None = None,
    smallest: bool = False,
    most: int = 1,
    without: str | Sequence[str] = (),
    fixed: str | Sequence[str] = (),
    direction: Mapping[str, Literal["up", "down"]] | None = None,
    permitted: Mapping[str, Sequence[float | str]] | None = None,
    also: Literal["box", "radius", "recourse", "shap"] | Sequence[Literal["box", "radius", "recourse", "shap"]] = (),
    range: tuple[float, float] | None = None,
    time_limit: float = 10.0,
    seed: int = 0,
) -> Reasons:
    """Why rows (default: all) of `data` have their classes, as `treesens why` finds it: features whose values decide the class
    whatever the others are, none of which can be left out (`smallest`: no fewer do), and features whose change gives another
    class. `most` above 1 gives so many of the smallest reasons. Features of `without` are in no reason and no change:
    protected ones, or those that nobody can judge. Changes leave features of `fixed` as they are, go the way that `direction`
    says ({"age": "up"}), and end where `permitted` allows ({"income": (0, 100), "housing": ["own", "rent"]}). `also` puts
    beside a reason the box in which the class stands, the distance to another class (linf), the cheapest change (l1), and
    TreeSHAP. `time_limit` is in seconds per row, and once more for each distance. Ctrl-C returns what is known so far.
    """
