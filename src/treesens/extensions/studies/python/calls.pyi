# Made from the declarations of the studies: python -m tests.extensions.studies.calls_stub --write
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal

from treesens.extensions.studies.python.rows import Reasons, Robustness, Sets
from treesens.extensions.studies.python.studies import Audit, Count, Diff, Gap, Repair, Rules
from treesens.extensions.studies.python.study_results import StudyResult
from treesens.python.arguments import Data, Model

__all__ = [
    "audit",
    "count",
    "diff",
    "gap",
    "groups",
    "learn_rules",
    "reasons",
    "repair",
    "robust",
    "sets",
    "shape",
    "why",
]

def audit(
    model: Model,
    data: Data,
    *,
    label: str | None = None,
    gap: float | Sequence[float] | None = None,
    margin: float | Sequence[float] | None = None,
    measure: Literal["uniform", "cells", "marginals", "chow-liu", "rows"] | None = None,
    shape: bool = False,
    repair_gap: float | None = None,
    test: Data | None = None,
    typical: float | None = None,
    typical_by: Literal["chow-liu", "isolation"] | None = None,
    decision: str | Path | None = None,
    threshold: float | None = None,
    classes: Sequence[str | int] = (),
    domain: str | Path | None = None,
    tolerance: float = 1e-06,
    vary: str | Sequence[str | Sequence[str]] | None = None,
    jobs: int = 2,
    real: str | Sequence[str] = (),
    protected: str | Sequence[str] = (),
    time_limit: float = 5.0,
    seed: int = 0,
    replay: Literal["auto", "emulated", "library"] = "emulated",
) -> Audit:
    """An audit of a model over rows (files, live objects, frames), like `treesens audit`.

    `vary` names features or sets of them (default: every feature with a split); the default gaps depend on the model. The
    decision is the model's own, or probability >= `threshold`. `classes` selects one class, or several classes; with several,
    only changes between them count; `decision`, a `.sens` file, replaces classes by the outcomes of a decision. `domain` is a
    `.sens` file with declarations of features. Features named in `real` may have fractional values although their columns
    contain whole numbers. `measure` (see `count`) adds the share of inputs that flip; `typical`, a percentage, adds the results
    for inputs typical of the rows; `shape` adds the direction of the score; `repair_gap`, with labelled rows, adds the price of
    a `repair` to that gap. `time_limit` is the number of seconds for each set. A largest swing may differ from its bound by the
    relative `tolerance`. Ctrl-C returns the results so far.
    """

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
    protected: str | Sequence[str] = (),
    epsilon: float = 0.05,
    delta: float = 1e-06,
    negligible: float = 1e-06,
    time_limit: float = 10.0,
    seed: int = 0,
) -> Count:
    """The share of inputs for which changing only some features flips the decision, as `treesens count` computes it: a proved
    interval, and an estimate whose relative error exceeds `epsilon` with a probability of at most `delta`.

    `measure` is the measure of shares: `uniform` on the domain, `cells`, or from `data`: `marginals`, `chow-liu`, `rows`. Sets,
    gaps, cut-offs, classes and domains are as in `audit`. `time_limit` limits each question, in seconds. Ctrl-C returns the
    results so far.
    """

def diff(
    old: Model,
    new: Model,
    data: Data | None = None,
    *,
    label: str | None = None,
    gap: float | Sequence[float] | None = None,
    margin: float | Sequence[float] | None = None,
    decision: str | Path | None = None,
    vary: str | Sequence[str | Sequence[str]] | None = None,
    price_by: str | Sequence[str | Sequence[str]] | None = None,
    protected: str | Sequence[str] = (),
    time_limit: float = 60.0,
    set_limit: float = 5.0,
    tolerance: float = 1e-06,
    seed: int = 0,
) -> Diff:
    """Compares two models (files, live objects) as `treesens diff` does: the models are proved equal, or the largest difference
    of every raw score is reached by an input and bounded by a proof. The table `data` defines the domain and the rows to
    compare. `label`, the column of labels, adds the prices of both models on these rows (`prices`, by groups of `price_by`).
    Gaps (in probability, or as `margin` in raw score) add the appearing and disappearing sensitivities to features (or sets in
    `vary`); `decision`, a `.sens` file, adds the changes of outcomes. `time_limit` limits every search, and `set_limit` limits
    every set of features and model (in seconds). A largest difference may differ from its bound by the relative `tolerance`.
    Raises UsageError for models with different kinds of scores. Ctrl-C returns the results so far.
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
    protected: str | Sequence[str] = (),
    close: float = 0.02,
    time_limit: float = 30.0,
    threads: int = 2,
    jobs: int = 1,
    seed: int = 0,
) -> Gap:
    """The largest certified gap of every feature (or set in `vary`), as `treesens gap` computes it: reached by a verified pair
    and bounded by a proof. With `data`, the domains are the ranges of its columns. A search ends when the bound is within
    `close` of the value, or after `time_limit` seconds per set. `typical`, a percentage, restricts the question to inputs that
    are typical of the rows.
    """

def groups(
    model: Model,
    data: Data,
    *,
    label: str | None = None,
    by: str | Sequence[str | Sequence[str]],
    favourable: str | int | None = None,
    threshold: float | None = None,
    measure: Literal["uniform", "cells", "marginals", "chow-liu", "rows"] = "rows",
    ratio: float = 0.8,
    smallest: float = 0.02,
    domain: str | Path | None = None,
    real: str | Sequence[str] = (),
    epsilon: float = 0.05,
    delta: float = 1e-06,
    time_limit: float = 10.0,
    seed: int = 0,
) -> StudyResult:
    """The share of favourable decisions in every group of the rows, as `treesens groups` computes it: a proved interval, and an
    interval of its ratio to the best group. `by` lists columns, or sets of columns for intersections; columns need not be
    features. `favourable` is a class (default: from `treesens.toml` or the model) that is predicted or has a probability of at
    least `threshold`. `measure` is the measure of shares: `rows`, or a measure learnt from the rows of each group. `time_limit`
    limits each group, in seconds.
    """

def learn_rules(
    data: Data,
    label: str | None = None,
    *,
    exceptions: float = 0.0,
    rows: int = 30,
    share: float = 0.01,
    time_limit: float = 600.0,
) -> Rules:
    """The rules of a table (a path or a frame), as `treesens learn rules` mines them: domains, one-hot groups and rules, each
    with its support and the indices of the rows that break the rule; `text` states all rules in the language. `exceptions` is
    the share of a rule's rows that may break the rule; `rows` and `share` are the minimum support. `time_limit` limits
    everything except the domains, in seconds; `unfinished` names the unfinished searches.
    """

def reasons(
    model: Model,
    data: Data,
    *,
    label: str | None = None,
    rows: int | str | Sequence[int | str] | None = None,
    protected: str | Sequence[str] = (),
    codes: str | Path | None = None,
    favourable: str | int | None = None,
    threshold: float | None = None,
    fixed: str | Sequence[str] = (),
    direction: Mapping[str, Literal["up", "down"]] | None = None,
    permitted: Mapping[str, tuple[float, float] | Collection[float | str]] | None = None,
    most: int = 4,
    way: Literal["change", "values"] = "change",
    shap: bool = False,
    domain: str | Path | None = None,
    real: str | Sequence[str] = (),
    replay: Literal["auto", "emulated", "library"] = "emulated",
    time_limit: float = 5.0,
    seed: int = 0,
) -> StudyResult:
    """The principal reasons of the rows of `data` without the favourable decision, as `treesens reasons` finds them: at most
    `most` features, none of them `protected`, whose change alone would make the decision favourable (a verified input), all of
    which are needed (proved). With `way="values"` the reasons are features whose values alone keep the decision (proved).
    `codes` is a TOML file with the phrase and the code of every feature. `time_limit` limits each denial, in seconds. Ctrl-C
    returns the results so far.
    """

def repair(
    model: Model,
    data: Data,
    *,
    label: str,
    vary: str | Sequence[str | Sequence[str]] | None = None,
    gap: float | Sequence[float] | None = None,
    margin: float | Sequence[float] | None = None,
    swing: float | Sequence[float] | None = None,
    increasing: str | Sequence[str] = (),
    decreasing: str | Sequence[str] = (),
    test: Data | None = None,
    price_by: str | Sequence[str | Sequence[str]] | None = None,
    output: str | Path | None = None,
    pairs: str | Path | None = None,
    method: Literal["auto", "average", "blend", "leaves"] = "auto",
    keep: str | Sequence[str] = (),
    keep_rows: Data | None = None,
    decision: str | Path | None = None,
    threshold: float | None = None,
    classes: Sequence[str | int] = (),
    domain: str | Path | None = None,
    time_limit: float = 120.0,
    proof_time: float = 60.0,
    seed: int = 0,
    certificates: str | Path | None = None,
) -> Repair:
    """Repairs a model so that it is less sensitive to the features of `vary`, like `treesens repair`. The model is written to
    `output` in its library's format (one file per size), and only if the file is proved to keep the promise.

    `data` contains the training rows, and `test` the held-out rows; `label` names the column of labels in both. The promise is
    one of `gap` (probability, or the value of a regressor), `margin` and `swing` (raw score); a `swing` may be required in
    addition. The score does not fall in the features of `increasing`, and does not rise in the features of `decreasing`. The
    raw scores of the rows in the table `keep_rows` change by at most 0.0001. Times are in seconds. Raises UsageError if the
    kept features and rows make the promise impossible.
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
    """The distance of rows (default: all) of `data` to another class, as in `treesens robust`: reached by a verified input, and
    bounded by a proof. `range` is the domain of numeric features (default: the ranges of the columns); with `targeted`, every
    other class has a separate distance. `time_limit` limits each question, in seconds. Ctrl-C returns the results so far.
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
    """The sets of features that can flip the decision by a gap, as `treesens sets` finds them: all minimal sets that can, each
    with a verified pair, and all maximal sets that cannot, each with a proof. `vary` names the features whose sets are tried
    (default: all that the model uses); the search stops after `most` sets that flip. `time_limit` limits each set, in seconds.
    Ctrl-C returns the results so far. UsageError without a size: `gap` in probability, or `margin` in raw score.
    """

def shape(
    model: Model,
    data: Data | None = None,
    *,
    label: str | None = None,
    features: str | Sequence[str] = (),
    increasing: str | Sequence[str] = (),
    decreasing: str | Sequence[str] = (),
    classes: Sequence[str | int] = (),
    domain: str | Path | None = None,
    real: str | Sequence[str] = (),
    replay: Literal["auto", "emulated", "library"] = "emulated",
    time_limit: float = 1.0,
    jobs: int = 1,
    seed: int = 0,
) -> StudyResult:
    """The features in which the score of a model rises or falls, with all others equal, as `treesens shape` decides:
    `increasing`, `decreasing` or `constant` (proved), `neither` (two verified pairs), with the largest fall and rise and their
    proved bounds. For a direction declared by the model or claimed by `increasing` or `decreasing`, `holds` is True (proved),
    False (a pair) or None (open). `time_limit` limits each feature and score, in seconds. Ctrl-C returns the results so far.
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
    decision: str | Path | None = None,
    protected: str | Sequence[str] = (),
    direction: Mapping[str, Literal["up", "down"]] | None = None,
    permitted: Mapping[str, tuple[float, float] | Collection[float | str]] | None = None,
    also: Literal["box", "radius", "recourse", "shap"] | Sequence[Literal["box", "radius", "recourse", "shap"]] = (),
    range: tuple[float, float] | None = None,
    time_limit: float = 10.0,
    seed: int = 0,
) -> Reasons:
    """Reasons for the classes of rows (default: all) of `data`, as `treesens why` finds them: features whose values alone
    decide the class, all of which are needed (`smallest`: no reason has fewer), and features whose change gives another class.
    `most` is the number of smallest reasons. Features of `without` are not used in reasons and changes. All changes keep
    features of `fixed`, follow `direction` ({"age": "up"}), and end in `permitted` values ({"income": (0, 100), "housing":
    ["own", "rent"]}). `also` adds the box in which the class is kept, the distance to another class (linf), the cheapest change
    (l1), and TreeSHAP. `decision`, a `.sens` file, replaces classes by the outcomes of a decision. `time_limit` limits each
    row, and again each distance, in seconds. Ctrl-C returns the results so far.
    """
