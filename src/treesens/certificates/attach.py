"""Answers with their certificates: files in a folder, and in the result what they are or why there are none."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from treesens.certificates.produce import Certificate, bound, existence, refutation
from treesens.certificates.statement import NoCertificate
from treesens.compiler.base.files import write_atomically
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.explained import agreeing
from treesens.compiler.query.query import AtLeast, ExplainedRow, Objective, Query
from treesens.compiler.result import Certified, Proof, Result, Verdict
from treesens.errors import told

SUFFIX, TREES = ".cert.xz", ".trees.json"


def certified(query: Query, result: Result, folder: Path, *, seconds: float, required: bool = False) -> Result:
    """The result with certificates of what it claims, written into `folder`.

    With `required` a `none` without one becomes `unknown`, and a bound without one is left out.
    """
    if result.count is not None or result.ranked is not None:
        return replace(result, certificates=(Certified("answer", reason="counts and several answers have none"),))
    if query.explained is not None:
        return _certified_reason(query, query.explained, result, folder, seconds=seconds)
    claims: list[Certified] = []
    if result.verdict is Verdict.NONE:
        claims.append(
            Certified("none", reason="exact arithmetic has inputs, which only the library's rounded sums rule out")
            if result.proof is Proof.LIBRARY
            else certified_none(query, folder, seconds=seconds)
        )
        if required and not claims[0].path:
            words = f"no accepted certificate: {claims[0].reason}"
            return replace(result, verdict=Verdict.UNKNOWN, reason=words, proof=None, certificates=tuple(claims))
    witness = result.witness
    if result.verdict is Verdict.FOUND and witness is not None:
        claims.append(_attempt("found", folder, query, lambda: existence(query, witness)))
    goal, reached = query.objective, result.objective
    if goal is not None and reached is not None and reached.bound is not None:
        limit = form_limit(goal, reached.bound)
        claims.append(_attempt("bound", folder, query, lambda: bound(query, limit, seconds=seconds)))
        if required and not claims[-1].path:
            result = replace(result, objective=replace(reached, bound=None))
    return replace(result, certificates=tuple(claims))


def _certified_reason(query: Query, row: ExplainedRow, result: Result, folder: Path, *, seconds: float) -> Result:
    """That no input agrees with the row on the features of its reason and has another class: a certificate for each class."""
    if result.explanation is None or result.explanation.features is None:
        return replace(result, certificates=(Certified("answer", reason="no reason was found"),))
    asked = agreeing(row, result.explanation.features)
    claims = [certified_none(replace(one, name=query.name), folder, seconds=seconds) for one in asked]
    return replace(result, certificates=tuple(claims))


def certified_gap(query: Query, gap: float, folder: Path, *, seconds: float) -> Certified:
    """A certificate that no pair exceeds a gap."""
    return _attempt("bound", folder, query, lambda: refutation(beyond_gap(query, gap), seconds=seconds))


def certified_none(query: Query, folder: Path, *, seconds: float) -> Certified:
    """A certificate that a question has no answer."""
    return _attempt("none", folder, query, lambda: refutation(query, seconds=seconds))


def beyond_gap(query: Query, gap: float) -> Query:
    """The question with every bound of a row higher by more than the gap."""
    average = query.models[0].ensemble.average
    beyond = LogRational(Fraction(gap + 1e-12 * max(1.0, abs(gap))) * average)
    rows = tuple(
        replace(c, bound=c.bound + beyond, strict=True) if isinstance(c, AtLeast) and c.form.scores else c
        for c in query.constraints
    )
    return replace(query, constraints=rows)


def form_limit(goal: Objective, shown: float) -> float:
    """The bound of an objective as its form counts it, a few units in the last place away from what is shown."""
    squared = shown * shown if goal.kind == "distance l2" else shown
    value = (squared - float(goal.offset)) / float(goal.unit)
    return value + (1 if goal.maximize else -1) * 1e-12 * max(1.0, abs(value))


def _attempt(claim: str, folder: Path, query: Query, produce: Callable[[], Certificate]) -> Certified:
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
    packed = made.packed()
    digest = hashlib.sha256(packed).hexdigest()
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[:60]
    path = folder / f"{plain}.{claim}.{digest[:12]}{SUFFIX}"
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, packed)
    _write_trees(made, folder)
    left_out = tuple(made.document["about"]["left_out"])
    return Certified(claim, str(path), digest, len(packed), made.produced_in, made.checked_in, left_out=left_out)


def _write_trees(made: Certificate, folder: Path) -> None:
    """The trees beside the certificate, if it is not about a file that the user has."""
    for stated, content in zip(made.document["statement"]["models"], made.files, strict=True):
        path = folder / f"{stated['sha256'][:12]}{TREES}"
        if stated["format"] == "treesens-trees" and not path.exists():
            write_atomically(path, content)


def summary(records: Iterable[dict[str, Any]]) -> str:
    """How many claims of some records have certificates, and why others have none."""
    claims = [c for record in records for c in record.get("certificates") or ()]
    reasons = sorted({c["reason"] for c in claims if not c["file"]})
    missing = sum(not c["file"] for c in claims)
    words = f"certificates: {len(claims) - missing} accepted"
    return words + (f", {missing} claims without one ({'; '.join(reasons)})" if missing else "")
