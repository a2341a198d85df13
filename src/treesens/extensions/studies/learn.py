"""Declares `learn`: the rules that hold in a table. The search is in `learn_search.py`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from treesens.compiler.base.option_kinds import Number, OutputPath, Whole
from treesens.extensions.studies import shared_options as shared
from treesens.extensions.studies.study import Asking, Door, Found, Option, Study, given
from treesens.records.plain import SCHEMA_VERSION, OneOf

EXCEPTIONS = Option(
    Number(0.0, 0.5),
    "The share of a rule's rows that may break the rule.",
    more="A one-hot group never has exceptions.",
)
ROWS = Option(Whole(1), "The least support, in rows.")
SHARE = Option(
    Number(0.0, 1.0), "The least support, as a share of rows.", more="A dependency needs it over all its values."
)
OUTPUT = Option(OutputPath(), "A file for the text (or the JSON).", short="-o", door=Door.COMMAND)


@dataclass(frozen=True, kw_only=True)
class LearnOptions:
    """The thresholds of a rule; `time_limit` limits everything except the domains, in seconds."""

    exceptions: float = given(EXCEPTIONS, 0.0)
    rows: int = given(ROWS, 30)
    share: float = given(SHARE, 0.01)
    time_limit: float = given(
        shared.TIME_LIMIT,
        600.0,
        "Time limit in seconds for rules; domains are always computed.",
        "`unfinished` names the unfinished searches.",
    )
    output: Path | None = given(OUTPUT, None)


@dataclass(frozen=True, kw_only=True)
class FeatureRecord:
    """The domain of a column, as a declaration of the language."""

    feature: str
    kind: str
    text: str


@dataclass(frozen=True, kw_only=True)
class RuleRecord:
    """A rule about two columns; `exceptions` holds row indices, which start at 0."""

    kind: Annotated[str, OneOf(("implication", "equivalence", "order", "equal"))]
    columns: list[str]
    left: list[float | str]
    right: list[float | str]
    dependency: bool
    support: int
    exceptions: list[int]
    constraint: str


@dataclass(frozen=True, kw_only=True)
class RulesDocument:
    """All domains, groups and rules of a table; `text` states all domains, groups and rules in the language."""

    schema_version: int = SCHEMA_VERSION
    data: str
    rows: int
    features: list[FeatureRecord]
    onehot: list[list[str]]
    rules: list[RuleRecord]
    not_searched: list[str]
    unfinished: list[str]
    text: str


def document(asked: Asking[LearnOptions], found: Found[RuleRecord]) -> RulesDocument:
    """The document of the domains, groups and rules."""
    made: RulesDocument = replace(found.result, data=str(asked.files[0]))
    return made


STUDY = Study(
    name="learn",
    title="rules of a table: treesens learn rules --json",
    text="""Mine `rules` from DATA (CSV or Parquet): domains, one-hot groups, dependencies, implications and orders, each with
    its support and its exceptions. Rules need your approval: they may not hold beyond the table.

    Exit codes: 0 done, 5 time ran out before all kinds of rules were mined, 1 usage, 2 unreadable input.
    """,
    call="""\
    The rules of a table (a path or a frame), as `treesens learn rules` mines them: domains, one-hot groups and rules, each
    with its support and the indices of the rows that break the rule; `text` states all rules in the language. `exceptions` is
    the share of a rule's rows that may break the rule; `rows` and `share` are the minimum support. `time_limit` limits
    everything except the domains, in seconds; `unfinished` names the unfinished searches. """,
    call_name="learn_rules",
    options=LearnOptions,
    ask="treesens.extensions.studies.learn_search:ask",
    record=RuleRecord,
    document=document,
    models=(),
    what=("rules",),
    by_position=("label",),
    table="A table (CSV or Parquet).",
    needs_table=True,
    label="The label column, which is excluded from all rules.",
    work="mining",
)
