"""Declares `reasons`: principal reasons of denials, for letters. The search is in `reasons_search.py`.

Phrases and codes of reasons are read from a TOML file that the user writes, with a table per feature.

    [income]
    code = "3"
    phrase = "Income insufficient for amount of credit requested"

`["*"]` means every other feature. Codes depend on the recipient of the letters: HMDA uses the codes 1 to 9, while the sample
forms of Regulation B use only phrases (12 CFR 1002, Appendix C).
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.base.files import MOST_TEXT_BYTES, read_regular
from treesens.compiler.base.option_kinds import Choice, Flag, InputFile, Names, OutputPath, RowNumbers, Whole
from treesens.errors import UsageError
from treesens.extensions.studies import shared_options as shared
from treesens.extensions.studies.columns import uncertified
from treesens.extensions.studies.groups import FAVOURABLE
from treesens.extensions.studies.study import Asking, Door, Found, Option, Study, given
from treesens.records.plain import ABSENT, SCHEMA_VERSION, Absent, ModelFile, OneOf, Value

if TYPE_CHECKING:
    from treesens.grammar.tree import ast


MOST = 4
"""Maximum number of reasons in a letter: 12 CFR 1002, Supplement I, comment 9(b)(2)-1 (more are not likely to be helpful)."""

ROWS = Option(RowNumbers(), "The rows, as 0,5,10-19, or all. Default: all.", more="Each denied row has a record.")
PROTECTED = Option(Names(), "Features, as a,b, that are never reasons and never change.")
CODES = Option(
    InputFile(),
    "A TOML file with the phrase and the code of every feature.",
    more="Without this file, features have the model's names.",
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


@dataclass(frozen=True, kw_only=True)
class ReasonOptions(shared.Certifying):
    """The denials to explain, and the possible reasons; `time_limit` is the limit for each denial, in seconds."""

    rows: Sequence[int] | None = given(ROWS, None)
    protected: Sequence[str] = given(PROTECTED, ())
    codes: Path | None = given(CODES, None)
    favourable: str | None = given(FAVOURABLE, None)
    threshold: Fraction | None = given(shared.THRESHOLD, None)
    most: int = given(MOST_OPTION, MOST)
    way: str = given(WAY, "change")
    shap: bool = given(SHAP, False)
    domain: Sequence[ast.Declaration] = given(shared.DOMAIN, ())
    real: Sequence[str] = given(shared.REAL, ())
    replay: str = given(shared.REPLAY, "emulated")
    time_limit: float = given(shared.TIME_LIMIT, 5.0, "Seconds per denial.")
    seed: int = given(shared.SEED, 0)
    out: Path | None = given(OUT, None)


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


@dataclass(frozen=True)
class Words:
    """The wording of a letter about a feature: a phrase and an optional code."""

    phrase: str
    code: str | None


def read_codes(path: Path | None, features: Sequence[str], needed: Sequence[str]) -> dict[str, Words]:
    """The wording for every `needed` feature; without a file, the feature's name. Raises UsageError if the file cannot be read,
    names an unknown feature, or lacks a needed feature.
    """
    if path is None:
        return {name: Words(name, None) for name in needed}
    try:
        given = tomllib.loads(read_regular(path, MOST_TEXT_BYTES).decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the file cannot be read: {error}", place=str(path), remedy="name a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        remedy = 'write [FEATURE], and below it phrase = ".." and code = ".."'
        raise UsageError(f"invalid TOML: {error}", place=str(path), remedy=remedy) from None
    known = {name: _words(name, entry, str(path)) for name, entry in given.items()}
    for name in known:
        if name not in features and name != OTHERS:
            remedy = did_you_mean(name, list(features))
            raise UsageError(f"the model has no feature `{name}`", place=str(path), remedy=remedy)
    silent = [name for name in needed if name not in known]
    if silent and OTHERS not in known:
        listed = ", ".join(f"`{name}`" for name in silent[:8]) + (", …" if len(silent) > 8 else "")
        remedy = f'add [{silent[0]}] with phrase and code, or ["*"] for all others, or make it --protected'
        raise UsageError(f"there are no phrases for {listed}", place=str(path), remedy=remedy)
    return {name: known.get(name) or known[OTHERS] for name in needed}


def _words(name: str, entry: object, place: str) -> Words:
    remedy = f'write [{name}], and below it phrase = ".." and code = ".."'
    if not isinstance(entry, dict) or not isinstance(entry.get("phrase"), str) or not entry["phrase"].strip():
        raise UsageError(f"`{name}` has no phrase", place=place, remedy=remedy)
    if unknown := sorted(set(entry) - {"phrase", "code"}):
        raise UsageError(f"`{name}` has a field `{unknown[0]}`", place=place, remedy=remedy)
    code = entry.get("code")
    if code is not None and (isinstance(code, bool) or not isinstance(code, str | int)):
        raise UsageError(f"the code of `{name}` is neither a text nor a whole number", place=place, remedy=remedy)
    return Words(entry["phrase"].strip(), None if code is None else str(code))
