"""Joint claims: parts that are certified one by one, and a manifest that lists the parts (docs/certificates.md).

A claim has a kind that the checker defines, and the numbers of its parts. A claim is written only if the checker derives it
from these parts.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import treesens.extensions.treesens_verify as checker
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.files import write_atomically
from treesens.compiler.model import Ensemble
from treesens.compiler.query.query import Query
from treesens.compiler.result import MANIFEST, Certified
from treesens.extensions.certify.attach import write_trees
from treesens.extensions.certify.produce import read_stated
from treesens.extensions.certify.statement import NoCertificate, ensembles_of, model_file

FLATTENED = ("reason", "cases")
"""Kinds whose parts may be the cases of one question."""


@dataclass(frozen=True, eq=False)
class Part:
    """A certificate that a claim needs, or one per case of the part's question; `make` writes to a folder within a budget."""

    query: Query
    make: Callable[[Path, Budget], Sequence[Certified]]


def known(query: Query, *made: Certified) -> Part:
    """A part whose certificates exist already."""
    return Part(query, lambda _folder, _budget: made)


@dataclass(frozen=True, eq=False)
class Claim:
    """The joint claim of some parts. `say` converts the numbers of the parts to the fields of the claim's kind.

    `kept` lists per part the features that keep the row's values, if the kind requires this. `reason` explains missing parts.
    """

    title: str
    kind: str
    parts: Sequence[Part] = ()
    say: Callable[[list[int]], dict[str, Any]] = lambda numbers: {"parts": numbers}
    reason: str = ""
    kept: Sequence[Collection[int]] = ()
    models: tuple[Ensemble, ...] = ()
    """Models that the claim names in addition to its parts' models."""
    told: str = ""
    """The expected result, in the words of the checker's report."""
    in_cases: tuple[str, Callable[[list[list[int]]], dict[str, Any]]] | None = None
    """The kind of the claim if its parts are proved in cases, with the function for its fields."""
    about: int = 0
    """The number of the record that the claim is about."""


def each(title: str, parts: Sequence[Part]) -> Claim:
    """A claim of independent parts."""
    return Claim(title, "each", parts)


def between(title: str, low: Part | None, high: Part | None) -> Claim:
    """The claim that a value is reached (part `low`), and that no value is beyond a bound (part `high`)."""
    parts = [part for part in (low, high) if part is not None]
    at = {"reached": low, "beyond": high}
    return Claim(
        title,
        "between",
        parts,
        lambda numbers: {end: None if part is None else numbers[parts.index(part)] for end, part in at.items()},
    )


def open_claim(title: str, reason: str) -> Claim:
    """A claim without a certificate."""
    return Claim(title, "each", reason=reason)


@dataclass
class Manifest:
    """The result: the file (None if no claim is accepted), its parts, and the claims without a certificate."""

    path: Path | None = None
    accepted: int = 0
    claims: list[tuple[str, str]] = field(default_factory=list)
    """Titles and kinds of accepted claims."""
    open: list[tuple[str, str]] = field(default_factory=list)
    parts: list[Certified] = field(default_factory=list)
    proved: set[int] = field(default_factory=set)
    """The records whose claims are all accepted."""

    @property
    def complete(self) -> bool:
        """True if every claim is accepted."""
        return not self.open

    def certified(self) -> tuple[Certified, ...]:
        """The parts, the manifest itself, and the reason for each claim without a certificate."""
        found = [*self.parts, *(Certified(title, reason=reason) for title, reason in self.open)]
        if self.path is not None:
            data = self.path.read_bytes()
            found.append(Certified("manifest", str(self.path), hashlib.sha256(data).hexdigest(), len(data)))
        return tuple(found)

    def words(self) -> str:
        """A line to display."""
        reasons = "; ".join(dict.fromkeys(f"{title}: {reason}" for title, reason in self.open))
        said = f"certificates: {self.accepted} claims accepted"
        said += f", {len(self.open)} without one ({reasons})" if self.open else ""
        return said + (f"; {self.path}" if self.path is not None else "")


def write_manifest(claims: Iterable[Claim], folder: Path, name: str, *, budget: Callable[[], Budget]) -> Manifest:
    """Makes the parts of claims, each within a `budget`, and writes the manifest of the accepted claims."""
    writer = _Writer(folder, budget)
    unproved = set()
    for claim in claims:
        try:
            writer.add(claim)
            writer.found.proved.add(claim.about)
        except NoCertificate as reason:
            writer.found.open.append((claim.title, str(reason)))
            unproved.add(claim.about)
    writer.found.proved -= unproved
    return writer.finished(name)


class _Writer:
    """The parts and claims of one manifest. `texts` holds the statements of parts; `stated` contains titled claims."""

    def __init__(self, folder: Path, budget: Callable[[], Budget]) -> None:
        self.folder, self.budget, self.found = folder, budget, Manifest()
        self.numbers: dict[str, int] = {}
        self.texts: list[dict[str, Any]] = []
        self.stated: list[tuple[str, dict[str, Any]]] = []

    def add(self, claim: Claim) -> None:
        """Makes the parts of a claim. Raises NoCertificate if a part has no certificate or the parts do not imply the claim."""
        if claim.reason:
            raise NoCertificate(claim.reason)
        files = self._files(claim)
        made = [self._made(part) for part in claim.parts]
        numbers = [[self._number(one) for one in mine if not one.manifest] for mine in made]
        inner = [text for mine in made for one in mine if one.manifest for text in self._inner(one)]
        contents = {stated["sha256"]: data for stated, data in files}
        texts: list[dict[str, Any]]
        if all(len(mine) == 1 for mine in numbers):
            texts = [{"kind": claim.kind, **claim.say([mine[0] for mine in numbers])}]
        elif claim.in_cases is not None:
            texts = []
        elif claim.kind in FLATTENED:
            texts = [{"kind": claim.kind, **claim.say([number for mine in numbers for number in mine])}]
        elif claim.kind in ("between", "each"):
            # A proof in cases is a joint claim, so it has a claim of its own.
            alone = [n for mine, parts in zip(numbers, made, strict=True) for n in mine if not parts[-1].manifest]
            texts = [*([{"kind": "each", "parts": alone}] if alone else []), *inner]
        else:
            raise NoCertificate("a part that is proved in cases")
        if claim.kept:
            # All cases of a part keep the same features.
            texts[0]["kept"] = [sorted(k) for k, mine in zip(claim.kept, numbers, strict=True) for _ in mine]
        if claim.kind == "same":
            texts[0]["models"] = [model_file(e)[0] for e in claim.models]
        reason = self._rejected(texts, contents, claim.told)
        if claim.in_cases is not None and (reason or not texts):
            kind, say = claim.in_cases
            texts = [{"kind": kind, **say(numbers)}]
            reason = self._rejected(texts, contents, claim.told)
        if reason:
            raise NoCertificate(f"the checker does not accept it: {reason}")
        self.found.accepted += 1
        self.stated += [(claim.title, text) for text in texts]
        self.found.claims += [(claim.title, text["kind"]) for text in texts]

    def _rejected(self, texts: list[dict[str, Any]], contents: dict[str, bytes], told: str) -> str:
        """The reason why the checker rejects claims or finds another result than `told`; empty for accepted claims."""
        lines = []
        try:
            for text in texts:
                checker.check_manifest(self._manifest([("", text)]))
                lines += checker.together(text, self.texts, lambda stated: _model(contents, stated))
        except checker.Rejected as reason:
            return str(reason)
        return "" if any(told in line for line in lines) or not texts else "the checker finds another number"

    def _inner(self, made: Certified) -> list[dict[str, Any]]:
        """The claims of the manifest of cases, with the parts renumbered for this manifest."""
        document = json.loads(Path(made.path).read_text("utf-8"))
        folder = Path(made.path).parent
        paths = [str(folder / part["file"]) for part in document["parts"]]
        return [{**claim, "parts": [self.numbers[paths[n]] for n in claim["parts"]]} for claim in document["claims"]]

    def _files(self, claim: Claim) -> list[tuple[dict[str, Any], bytes]]:
        """The statement's entries for the models of a claim, and the contents of their files; one file may hold two models."""
        write_trees([model_file(e) for e in claim.models], self.folder)
        ensembles = [*claim.models, *(e for part in claim.parts for e in ensembles_of(part.query))]
        return [model_file(e) for e in dict.fromkeys(ensembles)]

    def _made(self, part: Part) -> Sequence[Certified]:
        made = part.make(self.folder, self.budget())
        for one in made:
            if not one.path:
                raise NoCertificate(one.reason)
        return made

    def _number(self, made: Certified) -> int:
        if made.path not in self.numbers:
            text = json.loads(lzma.decompress(Path(made.path).read_bytes()))
            self.numbers[made.path] = len(self.texts)
            self.texts.append({name: text[name] for name in ("claim", "statement")})
            self.found.parts.append(made)
        return self.numbers[made.path]

    def _manifest(self, stated: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
        return {
            "format": "treesens-manifest",
            "version": 1,
            "parts": [{"file": Path(one.path).name, "sha256": one.sha256} for one in self.found.parts],
            "claims": [text for _, text in stated],
            "about": {
                "titles": [title for title, _ in stated],
                "without": [{"claim": title, "reason": reason} for title, reason in self.found.open],
            },
        }

    def finished(self, name: str) -> Manifest:
        """Writes the file if it contains claims."""
        if self.stated:
            text = json.dumps(self._manifest(self.stated), indent=1, allow_nan=False).encode() + b"\n"
            plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[:60]
            self.found.path = self.folder / f"{plain}.{hashlib.sha256(text).hexdigest()[:12]}{MANIFEST}"
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self.found.path, text)
        return self.found


def _model(contents: dict[str, bytes], stated: dict[str, Any]) -> Any:
    content = contents.get(stated["sha256"])
    if content is None:
        raise NoCertificate("a part is about another model file")
    return read_stated(content, stated)
