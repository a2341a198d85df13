"""Writes certificates of answers to a folder. The result lists the files, or the reasons for missing files.

A claim that no single certificate proves may have one certificate per case. A manifest then states the whole claim, and the
checker verifies that no case is missing. Certificates of cases go to a temporary folder first, since an incomplete set could be
mistaken for a proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from treesens.binder.ladders import distance_to_row
from treesens.compiler.base.budget import Budget
from treesens.compiler.query.probabilities import names_probabilities
from treesens.compiler.query.query import NearestRows, Query
from treesens.compiler.result import Certified, Proof, Result, Verdict
from treesens.errors import TreesensError
from treesens.extensions.certify.attach import attempt, beyond_gap, form_limit, whole_or_nothing
from treesens.extensions.certify.cases import MOST, Lines, Refuted, cases_of, no_lines, proved_in_parts, with_lines
from treesens.extensions.certify.produce import ByValue, Certificate, beyond, existence, refutation
from treesens.extensions.certify.statement import NoCertificate, learnt_of
from treesens.extensions.certify.together import Claim, known, write_manifest
from treesens.extensions.certify.whole import Whole, whole_of, with_alternatives
from treesens.values.verify import Witness


class Existing(Protocol):
    """A function that makes the certificate of an answer; `by_value` is as for `existence`."""

    def __call__(self, query: Query, witness: Witness, *, by_value: ByValue = "no") -> Certificate: ...


def certified(
    query: Query, result: Result, folder: Path, *, budget: Budget, lines: Callable[[Query], Lines] = no_lines
) -> Result:
    """The result with certificates of its claims in `folder`, or with the reasons for missing certificates.

    All certificates share the budget. For a question without an answer, `lines` derives rows that the question's sums of
    probabilities imply. Counts, reasons and lists of several answers form one manifest (`extensions/certify/claims.py`).
    """
    claims: list[Certified] = []
    if result.verdict is Verdict.NONE:
        claims += (
            [Certified("none", reason="inputs exist in exact arithmetic; only the library's rounded sums exclude them")]
            if result.proof is Proof.LIBRARY
            else certified_none(query, folder, budget=budget, lines=lines)
        )
    witness = result.witness
    if result.verdict is Verdict.FOUND and witness is not None:
        claims.append(certified_found(query, witness, folder))
    goal, reached = query.objective, result.objective
    if goal is not None and reached is not None and reached.bound is not None:
        claims += certified_bound(query, form_limit(goal, reached.bound), folder, budget=budget, lines=lines)
    return replace(result, certificates=tuple(claims))


def certified_gap(query: Query, gap: float, folder: Path, *, budget: Budget) -> Certified:
    """A certificate for the claim that no pair exceeds a gap."""
    return attempt("bound", folder, query, lambda: refutation(beyond_gap(query, gap), budget=budget))


def certified_found(
    query: Query, witness: Witness, folder: Path, make: Existing = existence, by_value: ByValue = "alone"
) -> Certified:
    """A certificate of an answer to the question or a case; the answer is checked by value if no statement covers it."""
    one = attempt("found", folder, query, lambda: make(query, witness))
    if one.path:
        return one
    for case, _ in _cases(lambda: (query, ())) or []:
        asked = replace(case, objective=query.objective)
        made = attempt("found", folder, case, partial(make, asked, witness))
        if made.path:
            return made
    return attempt("found", folder, query, lambda: make(query, witness, by_value=by_value))


def certified_none(
    query: Query, folder: Path, *, budget: Budget, lines: Callable[[Query], Lines] = no_lines
) -> list[Certified]:
    """Certificates for the claim that a question has no answer (one, or one per case), or the reason for their absence.

    `lines` is as for `certified`.
    """
    return _refuted("none", query, lambda: (query, ()), folder, budget, lines)


def certified_bound(
    query: Query, limit: float, folder: Path, *, budget: Budget, lines: Callable[[Query], Lines] = no_lines
) -> list[Certified]:
    """Certificates for the claim that no answer has an objective beyond `limit` (one, or one per case of the claim).

    A nearest-row objective has one case per row. `lines` is as for `certified`.
    """
    goal = query.objective
    if goal is not None and goal.nearest is not None:
        return _to_rows(query, goal.nearest, limit, folder, budget)
    return _refuted("bound", query, lambda: beyond(query, limit), folder, budget, lines)


def _to_rows(query: Query, nearest: NearestRows, limit: float, folder: Path, budget: Budget) -> list[Certified]:
    rows = sorted({tuple(values): row for row, values in enumerate(nearest.values.tolist())}.values())
    if len(rows) > MOST:
        return [Certified("bound", reason=f"distances to the nearest of more than {MOST} rows")]
    near = [replace(query, objective=distance_to_row(query.space, nearest, row)) for row in rows]
    bare = replace(query, objective=None)

    def whole() -> Whole:
        return with_alternatives(whole_of(bare), bare, [beyond(one, limit) for one in near])

    def prove(apart: Path) -> list[Certified]:
        made: list[Certified] = []
        for one in near:
            mine = _in_cases("bound", one, partial(beyond, one, limit), apart, budget)
            if not mine[0].path:
                return mine
            made += mine
        return _joined("bound", query, whole, made, apart, budget)

    return whole_or_nothing("bound", folder, query, prove)


def _refuted(
    claim: str,
    query: Query,
    asked: Callable[[], Refuted],
    folder: Path,
    budget: Budget,
    lines: Callable[[Query], Lines],
) -> list[Certified]:
    """Certifies that the question has no answer: directly, by cases, or with consequences of its sums of probabilities."""
    made = _in_cases(claim, query, asked, folder, budget)
    if made[0].path:
        return made
    try:
        bare, rows = asked()
        if not names_probabilities(bare.constraints):
            return made
        found = lines(replace(bare, objective=None, constraints=(*bare.constraints, *rows)))
    except (NoCertificate, TreesensError):
        return made
    more = _in_cases(claim, query, lambda: (with_lines(bare, found), rows), folder, budget)
    return more if more[0].path else made


def _in_cases(claim: str, query: Query, asked: Callable[[], Refuted], folder: Path, budget: Budget) -> list[Certified]:
    """The certificate that the question has no answer; if no single certificate exists, the certificates of its cases."""
    one = attempt(claim, folder, query, lambda: refutation(*asked(), budget=budget))
    if one.path:
        return [one]
    try:
        whole = asked()
    except NoCertificate:
        return [one]
    own_grids = bool(learnt_of(*whole))

    def prove_cases(apart: Path) -> list[Certified]:
        def prove(case: Refuted) -> Certified:
            return attempt(claim, apart, case[0], lambda: refutation(*case, budget=budget, own_grids=own_grids))

        cases, found = cases_of(*whole), list[Certified]()
        for case in cases or []:
            made = prove(case)
            if not made.path:
                return [one]
            found.append(made)
        if cases is None:
            parts = proved_in_parts(*whole, prove, budget)
            if not parts:
                return [one]
            found = parts
        joint = _joined(claim, query, lambda: whole_of(*whole), found, apart, budget)
        if joint[0].path:
            return joint
        return _joined(claim, query, lambda: whole_of(*whole, combined=True), found, apart, budget)

    return whole_or_nothing(claim, folder, query, prove_cases)


def _joined(
    claim: str, query: Query, whole: Callable[[], Whole], made: list[Certified], folder: Path, budget: Budget
) -> list[Certified]:
    """The certificates of cases, and a manifest claiming that cases are complete, or the reason for its rejection."""
    parts = [one for one in made if not one.manifest]
    joint = Claim(
        f"{query.name}: no case has an answer",
        "cases",
        [known(query, *parts)],
        lambda numbers: {"whole": whole(), "parts": numbers},
    )
    manifest = write_manifest([joint], folder, query.name, budget=lambda: budget)
    if manifest.open:
        return [Certified(claim, reason=manifest.open[0][1])]
    return [replace(one, claim=claim) for one in manifest.certified()]


def _cases(asked: Callable[[], Refuted]) -> list[Refuted] | None:
    try:
        return cases_of(*asked())
    except NoCertificate:
        return None
