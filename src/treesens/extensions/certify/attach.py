"""Attaches a certificate to one claim: a file in a folder, or the reason for its absence."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from treesens.compiler.base.files import write_atomically
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.query import AtLeast, Objective, Query
from treesens.compiler.result import Certified
from treesens.errors import told
from treesens.extensions.certify.produce import Certificate
from treesens.extensions.certify.statement import NoCertificate, ensembles_of, model_file

SUFFIX, TREES = ".cert.xz", ".trees.json"


def beyond_gap(query: Query, gap: float) -> Query:
    """The question with the bound of every score row raised by more than the gap."""
    return with_more(query, gap + 1e-12 * max(1.0, abs(gap)), strict=True)


def with_more(query: Query, gap: float, *, strict: bool = False) -> Query:
    """The question with the bound of every score row raised by the gap."""
    more = LogRational(Fraction(gap) * query.models[0].ensemble.average)
    rows = tuple(
        replace(c, bound=c.bound + more, strict=strict or c.strict) if isinstance(c, AtLeast) and c.form.scores else c
        for c in query.constraints
    )
    return replace(query, constraints=rows)


def form_limit(goal: Objective, shown: float) -> float:
    """The bound of an objective in units of its form, relaxed by a few units in the last place of the reported bound."""
    squared = shown * shown if goal.kind == "distance l2" else shown
    value = (squared - float(goal.offset)) / float(goal.unit)
    return value + (1 if goal.maximize else -1) * 1e-12 * max(1.0, abs(value))


def attempt(claim: str, folder: Path, query: Query, produce: Callable[[], Certificate]) -> Certified:
    """A claim with its certificate, or with the reason for its absence; a failure does not affect the answer."""
    try:
        return written(claim, produce(), folder, query.name)
    except NoCertificate as reason:
        return Certified(claim, reason=str(reason))
    except Exception as error:  # noqa: BLE001 - every kind of error becomes a typed one here
        return _failed(claim, error, query)


def _failed(claim: str, error: Exception, query: Query) -> Certified:
    failed = told(error, f"a certificate for {query.name}")
    return Certified(claim, reason=f"error[{failed.code}]: certificate: {failed.message}")


def written(claim: str, made: Certificate, folder: Path, name: str) -> Certified:
    """Writes a certificate; the file name comes from the question and the content."""
    one = _written(claim, made.packed(), folder, name)
    write_trees(zip(made.document["statement"]["models"], made.files, strict=True), folder)
    left_out = tuple(made.document["about"]["left_out"])
    return replace(one, produced_in=made.produced_in, checked_in=made.checked_in, left_out=left_out)


def written_packed(packed: bytes, query: Query, folder: Path) -> Certified:
    """Writes a certificate made by another process."""
    write_trees(map(model_file, ensembles_of(query)), folder)
    return _written("none", packed, folder, query.name)


def _written(claim: str, packed: bytes, folder: Path, name: str) -> Certified:
    digest = hashlib.sha256(packed).hexdigest()
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[:60]
    path = folder / f"{plain}.{claim}.{digest[:12]}{SUFFIX}"
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, packed)
    return Certified(claim, str(path), digest, len(packed))


def whole_or_nothing(
    claim: str, folder: Path, query: Query, prove: Callable[[Path], list[Certified]]
) -> list[Certified]:
    """Makes certificates in a separate folder, and moves them into `folder` if every claim has one.

    A partial set of certificates is dropped, because it could be mistaken for the answer.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".parts-", dir=folder) as scratch:
            made = prove(Path(scratch))
            if not all(one.path for one in made):
                return made
            names = {Path(one.path).name for one in made}
            for file in Path(scratch).iterdir():
                if file.name in names or file.name.endswith(TREES):
                    file.replace(folder / file.name)
            return [replace(one, path=str(folder / Path(one.path).name)) for one in made]
    except OSError as error:
        return [_failed(claim, error, query)]


def write_trees(files: Iterable[tuple[dict[str, Any], bytes]], folder: Path) -> None:
    """Writes the trees files used by statements to a folder; a model whose own file is named needs no trees file."""
    for stated, content in files:
        path = folder / f"{stated['sha256'][:12]}{TREES}"
        if stated["format"] == "treesens-trees" and not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
