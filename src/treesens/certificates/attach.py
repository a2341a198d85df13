"""Answers with their certificates: files in a folder, and in the result what they are or why there are none."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from treesens.binder.ladders import distance_to_row
from treesens.certificates.cases import MOST, cases_of
from treesens.certificates.produce import Certificate, beyond, existence, refutation
from treesens.certificates.statement import NoCertificate, model_file
from treesens.compiler.base.files import write_atomically
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.query import AtLeast, NearestRows, Objective, Query
from treesens.compiler.result import Certified, Proof, Result, Verdict
from treesens.errors import told
from treesens.values.witness import Witness

SUFFIX, TREES = ".cert.xz", ".trees.json"
Refuted = tuple[Query, tuple[AtLeast, ...]]
"""A question, and rows beside it, that have no answer together."""
Existing = Callable[[Query, Witness], Certificate]


def certified(query: Query, result: Result, folder: Path, *, seconds: float) -> Result:
    """The result with certificates of what it claims, written into `folder`, or with the reasons why there are none.

    Counts, reasons and several answers are claims together (`solve/tasks/claims.py`).
    """
    claims: list[Certified] = []
    if result.verdict is Verdict.NONE:
        claims += (
            [Certified("none", reason="exact arithmetic has inputs, which only the library's rounded sums rule out")]
            if result.proof is Proof.LIBRARY
            else certified_none(query, folder, seconds=seconds)
        )
    witness = result.witness
    if result.verdict is Verdict.FOUND and witness is not None:
        claims.append(certified_found(query, witness, folder))
    goal, reached = query.objective, result.objective
    if goal is not None and reached is not None and reached.bound is not None:
        claims += certified_bound(query, form_limit(goal, reached.bound), folder, seconds=seconds)
    return replace(result, certificates=tuple(claims))


def certified_gap(query: Query, gap: float, folder: Path, *, seconds: float) -> Certified:
    """A certificate that no pair exceeds a gap."""
    return attempt("bound", folder, query, lambda: refutation(beyond_gap(query, gap), seconds=seconds))


def certified_found(query: Query, witness: Witness, folder: Path, make: Existing = existence) -> Certified:
    """A certificate of an answer, or of the case of the question that it is in."""
    one = attempt("found", folder, query, lambda: make(query, witness))
    if one.path:
        return one
    for case, _ in _cases(lambda: (query, ())):
        asked = replace(case, objective=query.objective)
        made = attempt("found", folder, case, partial(make, asked, witness))
        if made.path:
            return made
    return one


def certified_none(query: Query, folder: Path, *, seconds: float) -> list[Certified]:
    """A certificate that a question has no answer, or one for each of its cases; a single reason if there is none."""
    return _in_cases("none", query, lambda: (query, ()), folder, seconds)


def certified_bound(query: Query, limit: float, folder: Path, *, seconds: float) -> list[Certified]:
    """A certificate that no answer has an objective beyond `limit`, or one for each of the cases of that.

    That none is nearer to the nearest of some rows is a case for every row.
    """
    goal = query.objective
    if goal is not None and goal.nearest is not None:
        return _to_rows(query, goal.nearest, limit, folder, seconds)
    return _in_cases("bound", query, lambda: beyond(query, limit), folder, seconds)


def _to_rows(query: Query, nearest: NearestRows, limit: float, folder: Path, seconds: float) -> list[Certified]:
    rows = sorted({tuple(values): row for row, values in enumerate(nearest.values.tolist())}.values())
    if len(rows) > MOST:
        return [Certified("bound", reason=f"distances to the nearest of more than {MOST} rows")]
    found: list[Certified] = []
    for row in rows:
        one = replace(query, objective=distance_to_row(query.space, nearest, row))
        made = certified_bound(one, limit, folder, seconds=seconds)
        if not made[0].path:
            return made
        found += made
    return found


def _in_cases(claim: str, query: Query, asked: Callable[[], Refuted], folder: Path, seconds: float) -> list[Certified]:
    """The certificate that what is asked has no answer, or those of its cases if it has none as a whole."""
    one = attempt(claim, folder, query, lambda: refutation(*asked(), seconds=seconds))
    if one.path:
        return [one]
    found = []
    for case, rows in _cases(asked):
        made = attempt(claim, folder, case, partial(refutation, case, rows, seconds=seconds))
        if not made.path:
            return [one]
        found.append(made)
    return found or [one]


def _cases(asked: Callable[[], Refuted]) -> list[Refuted]:
    try:
        return cases_of(*asked())
    except NoCertificate:
        return []


def beyond_gap(query: Query, gap: float) -> Query:
    """The question with every bound of a row higher by more than the gap."""
    return with_more(query, gap + 1e-12 * max(1.0, abs(gap)), strict=True)


def with_more(query: Query, gap: float, *, strict: bool = False) -> Query:
    """The question with every bound of a row of scores higher by the gap."""
    more = LogRational(Fraction(gap) * query.models[0].ensemble.average)
    rows = tuple(
        replace(c, bound=c.bound + more, strict=strict or c.strict) if isinstance(c, AtLeast) and c.form.scores else c
        for c in query.constraints
    )
    return replace(query, constraints=rows)


def form_limit(goal: Objective, shown: float) -> float:
    """The bound of an objective as its form counts it, a few units in the last place away from what is shown."""
    squared = shown * shown if goal.kind == "distance l2" else shown
    value = (squared - float(goal.offset)) / float(goal.unit)
    return value + (1 if goal.maximize else -1) * 1e-12 * max(1.0, abs(value))


def attempt(claim: str, folder: Path, query: Query, produce: Callable[[], Certificate]) -> Certified:
    """One claim with its certificate, or with the reason why it has none: making one never costs an answer."""
    try:
        return written(claim, produce(), folder, query.name)
    except NoCertificate as reason:
        return Certified(claim, reason=str(reason))
    except Exception as error:  # noqa: BLE001 - every kind of error becomes a typed one here
        failed = told(error, f"a certificate for {query.name}")
        return Certified(claim, reason=f"error[{failed.code}]: certificate: {failed.message}")


def written(claim: str, made: Certificate, folder: Path, name: str) -> Certified:
    """Writes a certificate under a name of its question and its content."""
    one = _written(claim, made.packed(), folder, name)
    write_trees(zip(made.document["statement"]["models"], made.files, strict=True), folder)
    left_out = tuple(made.document["about"]["left_out"])
    return replace(one, produced_in=made.produced_in, checked_in=made.checked_in, left_out=left_out)


def written_packed(packed: bytes, query: Query, folder: Path) -> Certified:
    """Writes a certificate of a question that another process has made."""
    write_trees((model_file(model.ensemble) for model in query.models), folder)
    return _written("none", packed, folder, query.name)


def _written(claim: str, packed: bytes, folder: Path, name: str) -> Certified:
    digest = hashlib.sha256(packed).hexdigest()
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[:60]
    path = folder / f"{plain}.{claim}.{digest[:12]}{SUFFIX}"
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, packed)
    return Certified(claim, str(path), digest, len(packed))


def write_trees(files: Iterable[tuple[dict[str, Any], bytes]], folder: Path) -> None:
    """The trees of models, as they are stated, in a folder, if these are no files that the user has."""
    for stated, content in files:
        path = folder / f"{stated['sha256'][:12]}{TREES}"
        if stated["format"] == "treesens-trees" and not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)


def summary(records: Iterable[dict[str, Any]]) -> str:
    """How many claims of some records have certificates, and why others have none."""
    claims = [c for record in records for c in record.get("certificates") or ()]
    reasons = sorted({c["reason"] for c in claims if not c["file"]})
    missing = sum(not c["file"] for c in claims)
    words = f"certificates: {len(claims) - missing} accepted"
    return words + (f", {missing} claims without one ({'; '.join(reasons)})" if missing else "")
