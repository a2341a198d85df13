"""The Python interface: the same questions, from live models and frames.

import treesens as ts

model = ts.load("adult.json")                      # or an xgboost / lightgbm / scikit-learn object
result = ts.check("credit.sens")["sex_alone"]
result = ts.sensitivity(model, vary=["sex"], gap=0.1, data=frame, near="both", time_limit=60)
ts.audit(model, frame, label="label")              # features and gaps on real rows, as a frame
result.verdict, result.pair                        # pair: a frame of two rows in the caller's own library
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from treesens import builder as query
from treesens.answer import Answer, Answers
from treesens.binder.file import bind
from treesens.builder import File, Question, file
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.base.interruption import interruptible
from treesens.data.tables import Table
from treesens.errors import UsageError
from treesens.grammar.parsing.parser import read
from treesens.live import CallSettings, answer_file, answer_text, load, table_of, warn
from treesens.settings import check_threshold


def check(file: str | Path, *queries: str, **options: Any) -> Answers:
    """Answers the questions of a `.sens` file.

    Options are those of `treesens.solve.driver.Options` (backend, time_limit, …), `replay`, `confirm` and `core` (docs/cli.md).
    A mistake in one query does not cost the answers of the others: see `Answers.errors`. If all queries have mistakes, or
    declarations have, they are raised.
    """
    path = Path(file)
    settings, diagnostics = CallSettings.of(options), Diagnostics()
    bound = bind(read(path), path.parent, names=queries, keep_going=True, diagnostics=diagnostics)
    warn(diagnostics)
    return answer_file(bound, queries, None, settings)


def check_text(
    text: str | Question | File, *, models: Mapping[str, Any], data: Mapping[str, Any] | None = None, **options: Any
) -> Answers:
    """Answers questions given as text, or as objects of `treesens.builder`, over live models and frames.

    In a text, `model m from "NAME"` and `data d from "NAME"` name entries of `models` and `data`; objects name them as
    their questions do.
    """
    if not isinstance(text, str):
        return (file(text) if isinstance(text, Question) else text).answers(models, data, **options)
    return answer_text(text, models, data, **options)


def sensitivity(
    model: Any,
    *,
    vary: Sequence[str],
    gap: float | None = None,
    margin: float | None = None,
    data: Any = None,
    label: str | None = None,
    near: Literal["likelihood", "cavities", "both", "distance"] | None = None,
    real: Sequence[str] = (),
    **options: Any,
) -> Answer:
    """Can changing only the features `vary` move the decision across the gap (probability) or margin (raw score)?

    With `data` (a path or a frame) features range over what the data holds; `near` steers towards it. Columns of whole
    numbers take whole numbers, but for the features named in `real`. Equals the `sensitive` shorthand of the language,
    which defines it.
    """
    if (gap is None) == (margin is None):
        raise UsageError("give either gap or margin", remedy="gap is in probability (0 to 0.5), margin in raw score")
    if near is not None and data is None:
        raise UsageError(
            "`near` steers towards data, and `data` is not given", remedy="give a path or a frame as `data`"
        )
    question = query.sensitive("m", vary, gap=gap, margin=margin, near=None if near is None else "d", using=near).named(
        "sensitivity"
    )
    declared = [query.real(name) for name in real]
    declared += [] if data is None else [query.data("d", "d", label=label), query.domain_from("d")]
    answers = query.file(*declared, question).answers({"m": model}, {} if data is None else {"d": data}, **options)
    return next(iter(answers.values()))


def audit(
    model: Any,
    data: Any,
    *,
    label: str | None = None,
    vary: Sequence[str | Sequence[str]] | None = None,
    gap: float | Sequence[float] | None = None,
    margin: float | Sequence[float] | None = None,
    replay: Literal["emulated", "library"] = "emulated",
    real: Sequence[str] = (),
    time_limit: float = 5.0,
    jobs: int = 2,
    seed: int = 0,
    threshold: float | None = None,
    classes: Sequence[str | int] = (),
    domain: str | Path | None = None,
) -> Any:
    """The sweep of `treesens audit` as a frame, one row per (varied set, gap), in the library of `data` (columns for a path).

    `vary` names features or sets of them (default: every feature that the model asks about); gaps default to what suits the
    model. The decision is that of the model, or probability >= `threshold`; `classes` chooses one class, or those between which
    changes count. `domain` is a `.sens` file with declarations of features. Features named in `real` take fractions although
    their columns hold whole numbers. `time_limit` is in seconds for each set. Ctrl-C returns what is known so far.
    """
    from treesens.studies.audit import audit as run
    from treesens.studies.audit import columns_of
    from treesens.studies.audit_set import AuditOptions
    from treesens.studies.domain_file import read_domain
    from treesens.studies.questions import sizes_of

    loaded = load(model)
    names = tuple(map(str, classes))
    cut = None if threshold is None else check_threshold(threshold)
    gaps = sizes_of(loaded, _numbers(gap), _numbers(margin), cut, names)
    sets = None if vary is None else [[group] if isinstance(group, str) else list(group) for group in vary]
    options = AuditOptions(time_limit, jobs, seed, replay_in_library=replay == "library", real=real)
    options.threshold, options.classes = cut, names
    options.domain = read_domain(None if domain is None else Path(domain))
    found = None
    with interruptible() as interruption:
        found = run(
            loaded, table_of(data, label, None), varied=sets, gaps=gaps, options=options, stop=interruption.event
        )
    if found is None:
        raise KeyboardInterrupt
    columns = columns_of(found.records)
    if isinstance(data, str | Path | Table):
        return columns
    import narwhals as nw

    namespace = nw.get_native_namespace(nw.from_native(data, eager_only=True))
    return nw.from_dict(columns, backend=namespace).to_native()


def _numbers(given: float | Sequence[float] | None) -> list[str]:
    """Numbers as the language writes them."""
    if given is None:
        return []
    return [repr(x) for x in (given if isinstance(given, Sequence) else [given])]


__all__ = ["Answer", "Answers", "audit", "check", "check_text", "load", "sensitivity"]
