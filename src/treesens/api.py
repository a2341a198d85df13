"""The Python interface: the same questions, from live models and frames.

import treesens as ts

model = ts.load("adult.json")                      # or an xgboost / lightgbm / scikit-learn object
result = ts.check("credit.sens")["sex_alone"]
result = ts.sensitivity(model, vary=["sex"], gap=0.1, data=frame, near="both", time_limit=60)
ts.audit(model, frame, label="label")              # features and gaps on real rows, as a frame
result.verdict, result.pair                        # pair: a frame of two rows in the caller's own library
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from treesens.answers import answer_bound, explained, failed, interruptible, native_of
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.result import Core, Ranked, Result, RowCount, Verdict
from treesens.engine import Options
from treesens.errors import TreesensError, TreesensWarning, UsageError
from treesens.frontends.base import LoadedModel
from treesens.frontends.query import Bound, BoundQuery, bind
from treesens.frontends.registry import load as load_model
from treesens.frontends.tables import Table, read_table
from treesens.grammar.parser import parse, read
from treesens.report.records import points_of, record
from treesens.settings import check_backend, check_choice, checked_options

if TYPE_CHECKING:
    from treesens.query import File, Question


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to one question, with the way back to names and frames."""

    bound: BoundQuery
    result: Result
    frame: Any = None

    @property
    def name(self) -> str:
        return self.result.query

    @property
    def verdict(self) -> Verdict:
        return self.result.verdict

    @property
    def reason(self) -> str:
        return self.result.reason

    @property
    def proof(self) -> str | None:
        return self.result.proof

    @property
    def bound_value(self) -> float | None:
        """The proven bound of the objective."""
        return None if self.result.objective is None else self.result.objective.bound

    @property
    def ranked(self) -> Ranked | None:
        """All answers of a question that asks for several (`top N`), the best first."""
        return self.result.ranked

    @property
    def count(self) -> RowCount | None:
        """The rows that answer a counting question."""
        return self.result.count

    @property
    def core(self) -> Core | None:
        """The constraints that clash, of a `none` where `core=True` asked for them or the compiler sees them."""
        return self.result.core

    @property
    def points(self) -> dict[str, dict[str, Any]] | None:
        """Labels by point and feature; None without a witness."""
        return None if self.result.witness is None else points_of(self.bound.query, self.result.witness)

    @property
    def pair(self) -> Any:
        """The witness as a frame with one row per point, in the library of the frame that was given (else a dictionary of
        columns); None without a witness.
        """
        points = self.points
        if points is None:
            return None
        columns = {name: [point[name] for point in points.values()] for name in self.bound.query.space.names}
        if self.frame is None:
            return columns
        import narwhals as nw

        namespace = nw.get_native_namespace(nw.from_native(self.frame, eager_only=True))
        return nw.from_dict(columns, backend=namespace).to_native()

    def to_dict(self) -> dict[str, Any]:
        """The record that `treesens check --json` prints for this question."""
        return record(self.bound.query, self.result)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.verdict} ({self.reason})>"

    def _repr_html_(self) -> str:
        import html

        points = self.points
        head = f"<p><b>{html.escape(self.name)}</b>: {self.verdict} ({html.escape(self.reason)})</p>"
        if points is None:
            return head
        rows = "".join(
            "<tr><th>{}</th>{}</tr>".format(
                html.escape(name), "".join(f"<td>{html.escape(str(p[name]))}</td>" for p in points.values())
            )
            for name in self.bound.query.space.names
        )
        top = "".join(f"<th>{html.escape(name)}</th>" for name in points)
        return f"{head}<table><tr><th></th>{top}</tr>{rows}</table>"


class Answers(Mapping[str, Answer]):
    """Answers by the name of their question. `errors` says, by name, which queries have no meaning, or could not be answered;
    asking for one of the former raises its error.
    """

    def __init__(self, answers: Sequence[Answer], errors: Mapping[str, TreesensError] | None = None) -> None:
        self._answers = {answer.name: answer for answer in answers}
        self.errors = dict(errors or {})

    def __getitem__(self, name: str) -> Answer:
        if name not in self._answers and (error := self.errors.get(name) or self.errors.get(name.partition("[")[0])):
            raise error
        return self._answers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._answers)

    def __len__(self) -> int:
        return len(self._answers)


def load(source: Any, format: str | None = None, *, trust_pickle: bool = False) -> LoadedModel:
    """A model from a file or a live object; raises `treesens.errors.ModelError` for what cannot be read exactly.

    A pickle runs code when it is opened: that needs `trust_pickle`.
    """
    return source if isinstance(source, LoadedModel) else load_model(source, format, trust_pickle=trust_pickle)


def check(file: str | Path, *queries: str, **options: Any) -> Answers:
    """Answers the questions of a `.sens` file.

    Options are those of `treesens.engine.Options` (backend, time_limit, …), `replay`, `confirm` and `core` (docs/cli.md).
    A mistake in one query does not cost the answers of the others: see `Answers.errors`. Where all queries have mistakes, or
    declarations have, they are raised.
    """
    path = Path(file)
    settings, diagnostics = Settings.of(options), Diagnostics()
    bound = bind(read(path), path.parent, names=queries, keep_going=True, diagnostics=diagnostics)
    _warn(diagnostics)
    return _ask(bound, queries, None, settings)


def check_text(
    text: str | Question | File, *, models: Mapping[str, Any], data: Mapping[str, Any] | None = None, **options: Any
) -> Answers:
    """Answers questions given as text, or as objects of `treesens.query`, over live models and frames.

    In a text, `model m from "NAME"` and `data d from "NAME"` name entries of `models` and `data`; objects name them as
    their questions do.
    """
    if not isinstance(text, str):
        from treesens.query import Question, file

        return (file(text) if isinstance(text, Question) else text).answers(models, data, **options)
    tables = dict(data or {})
    settings, diagnostics = Settings.of(options), Diagnostics()
    bound = bind(
        parse(text, "<query>"),
        Path(),
        keep_going=True,
        load_model=lambda path, format: load(_entry(models, path.name, "model"), format),
        load_table=lambda path, label, rows: _table(_entry(tables, path.name, "data"), label, rows),
        diagnostics=diagnostics,
    )
    _warn(diagnostics)
    frame = next((f for f in tables.values() if not isinstance(f, str | Path | Table)), None)
    return _ask(bound, (), frame, settings)


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
    from treesens import query

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
    replay: Literal["emulated", "native"] = "emulated",
    real: Sequence[str] = (),
    time_limit: float = 5.0,
    jobs: int = 2,
    seed: int = 0,
) -> Any:
    """The sweep of `treesens audit` as a frame, one row per (varied set, gap), in the library of `data` (columns for a path).

    `vary` names features or sets of them (default: every feature that the model asks about); gaps default to margins 0.5, 1
    and 1.5. Features named in `real` take fractions although their columns hold whole numbers. `time_limit` is in seconds
    for each set. Ctrl-C returns what is known so far.
    """
    from treesens.audits import AuditOptions, columns_of, gaps_of
    from treesens.audits import audit as run

    gaps = gaps_of(_numbers(gap), _numbers(margin) or ([] if gap is not None else ["0.5", "1", "1.5"]))
    sets = None if vary is None else [[group] if isinstance(group, str) else list(group) for group in vary]
    options = AuditOptions(time_limit, jobs, seed, native=replay == "native", real=real)
    with interruptible() as interruption:
        found = run(
            load(model), _table(data, label, None), varied=sets, gaps=gaps, options=options, stop=interruption.event
        )
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


def _entry(entries: Mapping[str, Any], name: str, kind: str) -> Any:
    if name not in entries:
        raise UsageError(f"the text names the {kind} `{name}`, which was not given", remedy=f"pass it in `{kind}`")
    return entries[name]


def _table(source: Any, label: str | None, rows: int | None) -> Table:
    return source if isinstance(source, Table) else read_table(source, label=label, rows=rows)


@dataclass(frozen=True)
class Settings:
    """The options of a call, checked."""

    options: Options
    replay: str = "auto"
    confirm: str | None = None
    core: bool = False

    @staticmethod
    def of(given: Mapping[str, Any]) -> Settings:
        """UsageError for an option that there is not, or a value that makes no sense."""
        mine = {name: given[name] for name in ("replay", "confirm", "core") if name in given}
        others = {name: value for name, value in given.items() if name not in mine}
        options = checked_options(others, also=("replay", "confirm", "core"))
        check_choice("replay", mine.get("replay", "auto"), ("auto", "emulated", "native"))
        if mine.get("confirm") is not None:
            check_backend("confirm", mine["confirm"])
        return Settings(options, **mine)


def _warn(diagnostics: Diagnostics) -> None:
    """Notes and warnings as Python's own, which notebooks show once."""
    for item in diagnostics:
        if item.severity != "error":
            warnings.warn(item.render(), TreesensWarning, stacklevel=3)


def _ask(bound: Bound, names: Sequence[str], frame: Any, settings: Settings) -> Answers:
    """Ctrl-C returns what is known so far."""
    wanted = [b for b in bound.queries if not names or b.name in names or b.name.partition("[")[0] in names]
    answers = []
    errors: dict[str, TreesensError] = dict(bound.broken)
    with interruptible() as interruption:
        for query in wanted:
            if interruption.happened:
                break
            mine = replace(settings.options, native=native_of(query, settings.replay))
            try:
                result = answer_bound(query, mine, stop=interruption.event, confirm=settings.confirm)
                result = explained(query, result, mine, stop=interruption.event, always=settings.core)
            except TreesensError as error:
                result, errors[query.name] = failed(query, mine, error), error
            answers.append(Answer(query, result, frame))
    if len(wanted) == 1 and errors and wanted[0].name in errors:
        raise errors[wanted[0].name]
    return Answers(answers, errors)


__all__ = ["Answer", "Answers", "audit", "check", "check_text", "load", "sensitivity"]
