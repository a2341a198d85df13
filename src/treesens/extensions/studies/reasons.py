"""Declares `reasons`: principal reasons of denials, for letters. The search is in `reasons_search.py`.

Phrases and codes of reasons are read from a TOML file that the user writes, with a table per feature.

    [income]
    code = "3"
    phrase = "Income insufficient for amount of credit requested"
    [[history.when]]
    values = ["none taken"]
    phrase = "No credit history"

`["*"]` means every other feature. The first entry of `when` that fits replaces the phrase: `values` lists values of the row (a
missing value is "missing"), and `instead` is "higher" or "lower", the place of the favourable value next to that of the row.
Codes depend on the recipient of the letters: HMDA uses the codes 1 to 9, while the sample forms of Regulation B use only
phrases (12 CFR 1002, Appendix C).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.base.files import MOST_TEXT_BYTES, read_regular
from treesens.compiler.base.option_kinds import Choice, Flag, InputFile, Names, OutputPath, RowNumbers, Text, Whole
from treesens.errors import UsageError
from treesens.extensions.studies import shared_options as shared
from treesens.extensions.studies.audit import DATE
from treesens.extensions.studies.columns import uncertified
from treesens.extensions.studies.groups import FAVOURABLE
from treesens.extensions.studies.study import Asking, Door, Found, Option, Study, given
from treesens.extensions.studies.why import DIRECTION, FIXED, PERMITTED
from treesens.records.plain import ABSENT, SCHEMA_VERSION, Absent, ModelFile, OneOf, Value

if TYPE_CHECKING:
    from treesens.extensions.studies.limits import Permission
    from treesens.grammar.tree import ast


MOST = 4
"""Maximum number of reasons in a letter: 12 CFR 1002, Supplement I, comment 9(b)(2)-1 (more are not likely to be helpful)."""

ROWS = Option(RowNumbers(), "The rows, as 0,5,10-19, or all. Default: all.", more="Each denied row has a record.")
PROTECTED = Option(Names(), "Features, as a,b, that are never reasons and never change.")
CODES = Option(
    InputFile(),
    "A TOML file with the phrase and the code of every feature.",
    more="A phrase can depend on the row's value or on the direction of the change. Without this file, features have the names"
    " of the model.",
)
MOST_OPTION = Option(Whole(1, 20), "Maximum number of reasons for a denial.", metavar="K")
WAYS = ("change", "values")
WAY = Option(
    Choice(WAYS),
    "The kind of reason: features whose change alone makes the decision favourable, or whose values alone keep the decision.",
    more="Reasons by values need more features and more time.",
)
SHAP = Option(Flag(), "Add the features with the greatest TreeSHAP values against the decision.")
OUT = Option(OutputPath(), "A CSV file with a line per reason.", door=Door.COMMAND)
LETTERS = Option(OutputPath(folder=True), "A folder for a letter per denial, as text and HTML.", door=Door.COMMAND)
LETTER = Option(
    InputFile(),
    "The text of the letters, with {date}, {reference}, {decision}, {favourable} and {reasons}.",
    door=Door.COMMAND,
)
REFERENCE = Option(
    Text(), "The column that identifies applicants in letters. Default: the number of the row.", door=Door.COMMAND
)
PDF = Option(Flag(), "Also print each letter to PDF with Chromium or Chrome.", door=Door.COMMAND)


@dataclass(frozen=True, kw_only=True)
class ReasonOptions(shared.Certifying):
    """The denials to explain, and the possible reasons; `time_limit` is the limit for each denial, in seconds."""

    rows: Sequence[int] | None = given(ROWS, None)
    protected: Sequence[str] = given(PROTECTED, ())
    codes: Path | None = given(CODES, None)
    favourable: str | None = given(FAVOURABLE, None)
    threshold: Fraction | None = given(shared.THRESHOLD, None)
    fixed: Sequence[str] = given(FIXED, ())
    direction: Mapping[str, str] | None = given(DIRECTION, None)
    permitted: Mapping[str, Permission] | None = given(PERMITTED, None)
    most: int = given(MOST_OPTION, MOST)
    way: str = given(WAY, "change")
    shap: bool = given(SHAP, False)
    domain: Sequence[ast.Declaration] = given(shared.DOMAIN, ())
    real: Sequence[str] = given(shared.REAL, ())
    replay: str = given(shared.REPLAY, "emulated")
    time_limit: float = given(shared.TIME_LIMIT, 5.0, "Seconds per denial.")
    seed: int = given(shared.SEED, 0)
    out: Path | None = given(OUT, None)
    letters: Path | None = given(LETTERS, None)
    letter: Path | None = given(LETTER, None)
    reference: str | None = given(REFERENCE, None)
    pdf: bool = given(PDF, False)
    date: str | None = given(DATE, None, "The date of the letters, YYYY-MM-DD (default: SOURCE_DATE_EPOCH, or today).")


@dataclass(frozen=True, kw_only=True)
class PrincipalReason:
    """One reason: the row's value, and the value `instead`; if all reasons take these values, the decision is favourable.
    `rise` is the greatest rise of the score from changing this feature alone; None if not computed in time.
    """

    feature: str
    code: str | None
    phrase: str
    value: Value
    instead: Value
    rise: float | None = uncertified(None)


@dataclass(frozen=True, kw_only=True)
class DenialRecord:
    """The reasons of one denial, the greatest rise first.

    With `change`, `suffice` is `yes` if changing the reasons alone makes the decision favourable (a verified input), and every
    reason is needed (proved). `suffice` is `no` if `most` features never suffice (proved); reasons are then the features with
    the greatest rise in a sufficient set; at least `needed` features must change (null if none helps). With `values`, `suffice`
    is `yes` if no input with the same values has the favourable decision (proved), whatever the protected features are.
    """

    row: int
    decision: str
    decision_name: str | Absent = ABSENT
    reasons: list[PrincipalReason]
    suffice: Annotated[str, OneOf(("yes", "no", "open"))]
    needed: int | None
    reason: str
    proof: str | None
    replay: str | None
    shap: list[str] | Absent = uncertified(ABSENT, ABSENT)
    seconds: float


@dataclass(frozen=True, kw_only=True)
class ReasonsDocument:
    """All denials; `denied` and `open` are null if certificates are required, since no certificate covers these numbers."""

    schema_version: int = SCHEMA_VERSION
    model: ModelFile
    favourable: str
    favourable_name: str | Absent = ABSENT
    way: Annotated[str, OneOf(WAYS)]
    protected: list[str]
    most: int
    denied: int | None
    suffice: int
    do_not_suffice: int
    open: int | None
    interrupted: bool
    results: list[DenialRecord]


def document(asked: Asking[ReasonOptions], found: Found[DenialRecord]) -> ReasonsDocument:
    """The document of the denials, with the numbers of denials for which `most` reasons suffice or do not suffice."""
    words, required = [one.suffice for one in found.records], asked.options.require_certificate
    return ReasonsDocument(
        model=asked.file(),
        favourable=found.result,
        favourable_name=asked.model.meaning.classes.get(found.result, ABSENT),
        way=asked.options.way,
        protected=list(asked.options.protected or asked.model.meaning.protected),
        most=asked.options.most,
        denied=None if required else len(words),
        suffice=words.count("yes"),
        do_not_suffice=words.count("no"),
        open=None if required else words.count("open"),
        interrupted=found.interrupted,
        results=list(found.records),
    )


STUDY = Study(
    name="reasons",
    title="principal reasons of denials: treesens reasons --json",
    text="""The principal reasons of every row without the favourable decision: at most four features, ranked, whose change
    alone would make the decision favourable (a verified input), all of which are needed (proved). Protected features are never
    reasons. --codes adds to each reason the phrase and the code that letters need (12 CFR 1002.9).

    Exit codes: 0 every denial is settled, 5 some are open, 10 a condition of --fail-on, 1 usage, 2 unreadable input, 130
    interrupted.
    """,
    call="""\
    The principal reasons of the rows of `data` without the favourable decision, as `treesens reasons` finds them: at most
    `most` features, none of them `protected`, whose change alone would make the decision favourable (a verified input), all of
    which are needed (proved). With `way="values"` the reasons are features whose values alone keep the decision (proved).
    `codes` is a TOML file with the phrase and the code of every feature. `time_limit` limits each denial, in seconds. Ctrl-C
    returns the results so far. """,
    options=ReasonOptions,
    ask="treesens.extensions.studies.reasons_search:ask",
    record=DenialRecord,
    document=document,
    table="CSV or Parquet: the rows, and the domain.",
    needs_table=True,
    fails={"more": lambda records: any(one.suffice == "no" for one in records)},
    fail_words="Exit with 10 if a denial needs more reasons than --most.",
    work="denials",
)


OTHERS = "*"


SIDES = ("higher", "lower")
MISSING = "missing"


@dataclass(frozen=True)
class Words:
    """The wording of a letter about a feature: a phrase and an optional code; `when` holds other words for some values of the
    row (`values`), or for a favourable value on one side of the row's value (`instead`).
    """

    phrase: str
    code: str | None
    values: tuple[Value, ...] = ()
    instead: str | None = None
    when: tuple[Words, ...] = ()

    def about(self, value: Value, instead: Value) -> Words:
        """The words about a row's value; `instead` is a favourable value, or None if none is known."""
        return next((words for words in self.when if words._fit(value, instead)), self)

    def _fit(self, value: Value, instead: Value) -> bool:
        if self.values and (MISSING if value is None else value) not in self.values:
            return False
        if self.instead is None:
            return True
        if isinstance(value, str) or isinstance(instead, str) or value is None or instead is None:
            return False
        return instead > value if self.instead == "higher" else instead < value


def read_codes(path: Path | None, labels: Mapping[str, Sequence[Value]], needed: Sequence[str]) -> dict[str, Words]:
    """The wording for every `needed` feature; without a file, the feature's name. `labels` holds the categories of each feature
    (none for a number). Raises UsageError if the file cannot be read, names an unknown feature or category, or lacks a feature.
    """
    if path is None:
        return {name: Words(name, None) for name in needed}
    place = str(path)
    try:
        given = tomllib.loads(read_regular(path, MOST_TEXT_BYTES).decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the file cannot be read: {error}", place=place, remedy="name a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"invalid TOML: {error}", place=place, remedy=_remedy("FEATURE")) from None
    for name in given:
        if name not in labels and name != OTHERS:
            raise UsageError(f"the model has no feature `{name}`", place=place, remedy=did_you_mean(name, list(labels)))
    known = {name: _entry(name, entry, labels.get(name, ()), place) for name, entry in given.items()}
    silent = [name for name in needed if name not in known]
    if silent and OTHERS not in known:
        listed = ", ".join(f"`{name}`" for name in silent[:8]) + (", …" if len(silent) > 8 else "")
        remedy = f'add ["{silent[0]}"] with phrase and code, or ["*"] for all others, or make it --protected'
        raise UsageError(f"there are no phrases for {listed}", place=place, remedy=remedy)
    return {name: known.get(name) or known[OTHERS] for name in needed}


def _remedy(name: str) -> str:
    return f'write [{name}], and below it phrase = ".." and code = ".."'


def _entry(name: str, entry: Any, labels: Sequence[Value], place: str) -> Words:
    """The words of a feature, with those of its table `when`."""
    when = entry.get("when", []) if isinstance(entry, dict) else []
    if not isinstance(when, list):
        raise UsageError(f"`{name}`: `when` is not a list", place=place, remedy=f"write [[{name}.when]]")
    rest = {key: value for key, value in entry.items() if key != "when"} if isinstance(entry, dict) else entry
    words = _words(name, rest, place)
    return replace(words, when=tuple(_when(name, one, words.code, labels, place) for one in when))


def _when(name: str, entry: Any, code: str | None, labels: Sequence[Value], place: str) -> Words:
    remedy = 'write values = ["..."], or instead = "higher" or "lower", and a phrase'
    conditions = {key: entry[key] for key in ("values", "instead") if key in entry} if isinstance(entry, dict) else {}
    values, instead = conditions.get("values", []), conditions.get("instead")
    if not conditions or not isinstance(values, list) or ("values" in conditions and not values):
        raise UsageError(f"`{name}`: an entry of `when` has no condition", place=place, remedy=remedy)
    if instead is not None and (instead not in SIDES or labels):
        why = "categories have no order" if labels else "it is neither higher nor lower"
        raise UsageError(f"`{name}`: `instead = {instead}` does not fit: {why}", place=place, remedy=remedy)
    for value in values:
        wrong = (
            value not in (*labels, MISSING)
            if labels
            else isinstance(value, bool | list | dict) or (isinstance(value, str) and value != MISSING)
        )
        if wrong:
            known = did_you_mean(str(value), [str(label) for label in labels]) if labels else "it is a number"
            raise UsageError(f"`{name}` has no value `{value}`", place=place, remedy=known)
    rest = {"code": code, **{key: value for key, value in entry.items() if key not in conditions}}
    words = _words(f"[{name}.when]", {key: value for key, value in rest.items() if value is not None}, place)
    return replace(words, values=tuple(values), instead=instead)


def _words(name: str, entry: object, place: str) -> Words:
    remedy = _remedy(name)
    if not isinstance(entry, dict) or not isinstance(entry.get("phrase"), str) or not entry["phrase"].strip():
        raise UsageError(f"`{name}` has no phrase", place=place, remedy=remedy)
    if unknown := sorted(set(entry) - {"phrase", "code"}):
        raise UsageError(f"`{name}` has a field `{unknown[0]}`", place=place, remedy=remedy)
    code = entry.get("code")
    if code is not None and (isinstance(code, bool) or not isinstance(code, str | int)):
        raise UsageError(f"the code of `{name}` is neither a text nor a whole number", place=place, remedy=remedy)
    return Words(entry["phrase"].strip(), None if code is None else str(code))
