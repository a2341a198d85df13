"""Documents (`.sens` texts with their files) and the questions in them, small enough to keep thousands in memory.

A question is identified by a digest of its own text without shorthand, its declarations, and the content of every file. Names
of files and questions are not included.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from treesens.binder.file import Asked
from treesens.binder.session import Session
from treesens.binder.shares import expected_words
from treesens.compiler.base.arrays import frozen
from treesens.compiler.base.files import open_regular
from treesens.compiler.base.folders import folder_digest, read_folder
from treesens.grammar.parsing.parser import parse
from treesens.grammar.printing.print_terms import decimal
from treesens.grammar.printing.printer import identity, placed
from treesens.grammar.tree import ast


@dataclass(frozen=True)
class Document:
    """Questions, the folder to which their paths are relative, and the SHA-256 of every file that they name.

    `text` is the source or the canonical text. `tree` is set if names have no text; `text` then only identifies the document.
    """

    name: str
    text: str
    base: str
    files: tuple[tuple[str, str], ...]
    trust_pickle: bool = False
    tree: ast.File | None = None

    def file(self) -> ast.File:
        """The syntax tree."""
        return parse(self.text, self.name) if self.tree is None else self.tree

    @cached_property
    def digest(self) -> str:
        """Digest of the text and the contents of the files, by which workers identify documents."""
        parts = [self.text, str(self.trust_pickle), *(f"{path}\0{sha}" for path, sha in self.files)]
        return sha256("\0".join(parts))


@dataclass(frozen=True)
class Question:
    """One question of a document.

    Questions of one `family` differ only in the features that may vary and in the `level` (the gap, margin or factor): a pair
    for one question is a pair for every question with a lower level and more features. All other questions have family None.
    """

    document: Document
    name: str
    digest: str
    features: frozenset[str]
    family: str | None
    level: Fraction
    expect: str | None
    interest: float = 0.0
    """The features' importance to the model: the fraction of the model's splits that use them."""
    parameters: tuple[tuple[str, str], ...] = ()
    """The names and numbers of the document's parameters on which the question depends."""

    def is_harder_than(self, other: Question) -> bool:
        """True if every pair that answers this question also answers `other`."""
        return (
            self.family is not None
            and self.family == other.family
            and self.level >= other.level
            and self.features <= other.features
        )


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_digest(path: Path) -> str:
    """The SHA-256 of a file, or of a folder that is a model."""
    if path.is_dir():
        return folder_digest(read_folder(path))
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def document_of(
    name: str, source: str | ast.File, base: Path, *, trust_pickle: bool = False
) -> tuple[Document, Session]:
    """A document (from a text, from its tree, or from nodes), whose files are opened.

    Raises the errors of reading and binding, and `ModelError` or `DataError` for files.
    """
    source = parse(source, name) if isinstance(source, str) else source
    built = source.span == ast.NOWHERE
    plain = not built and not source.expanded
    again = source if plain else placed(source, name)
    file = again if built else source  # messages about a text show its lines
    session = open_session(file, base, trust_pickle=trust_pickle)
    files = contents_of(file, base)
    text = source.span.source.text if plain else identity(source)
    tree = source if again is source and not plain else None
    return Document(name, text, str(base), files, trust_pickle, tree), session


def contents_of(file: ast.File, base: Path) -> tuple[tuple[str, str], ...]:
    """The SHA-256 of every file that declarations name, by path."""
    paths = dict.fromkeys(d.path.value for d in file.declarations if isinstance(d, ast.Model | ast.Data))
    return tuple((path, file_digest(base / path)) for path in paths)


def open_session(file: ast.File, base: Path, *, trust_pickle: bool) -> Session:
    """The declarations, read with the registry of frontends."""
    from treesens.frontends.registry import load

    return Session(file, base, load_model=lambda path, form: load(path, form, trust_pickle=trust_pickle))


def questions_of(
    document: Document, session: Session, wanted: Callable[[str], bool] = lambda _: True
) -> Iterator[Question]:
    """The questions of a document; a query's first question is bound, to find mistakes before any question is solved."""
    context = context_of(session.file, document.files)
    shares = _shares(session)
    bound: set[str] = set()
    for asked in session.asked():
        if asked.node.name.text not in bound:
            session.question(asked)
            bound.add(asked.node.name.text)
        if not wanted(asked.name):
            continue
        features, family, level = _family(asked)
        yield Question(
            document,
            asked.name,
            digest_of(context, asked.find),
            features,
            None if family is None else sha256(f"{context}\0{family}"),
            level,
            expected_words(asked.body.expect),
            sum(shares.get(name, 0.0) for name in features),
            tuple((name, decimal(number.value)) for name, number in asked.node.parameters),
        )


def digest_of(context: str, find: ast.Find | ast.Count | ast.Explain) -> str:
    """The identity of a question without shorthand under its declarations."""
    return sha256(f"{context}\0{identity(find)}")


def context_of(file: ast.File, files: tuple[tuple[str, str], ...]) -> str:
    """The declarations in canonical form, with files represented by their content."""
    contents = dict(files)
    declarations = []
    for item in file.declarations:
        if isinstance(item, ast.Query):
            continue
        if isinstance(item, ast.Model | ast.Data):
            declarations.append(identity(replace(item, path=replace(item.path, value=contents[item.path.value]))))
        else:
            declarations.append(identity(item))
    return "\n".join(declarations)


def _family(asked: Asked) -> tuple[frozenset[str], str | None, Fraction]:
    """The features, the family's text, and the level. An objective, `top` or a share needs more than an arbitrary pair."""
    body = asked.body
    if not isinstance(body, ast.Sensitive):
        return frozenset(), None, Fraction(0)
    features = frozenset(name.text for name in body.features.names)
    if body.near is not None or body.top is not None or body.share is not None:
        return features, None, Fraction(0)
    given = {word: getattr(body, word) for word in ("gap", "margin", "factor") if getattr(body, word) is not None}
    if len(given) > 1:
        return features, None, Fraction(0)
    kind, number = next(iter(given.items()), ("", None))
    bare = replace(body, features=replace(body.features, names=()), gap=None, margin=None, factor=None, expect=None)
    return features, f"{kind} {asked.suffix} {identity(bare)}", Fraction(0) if number is None else number.value


def _shares(session: Session) -> dict[str, float]:
    """For every feature, its share of the splits of all models."""
    import numpy as np

    result: dict[str, float] = {}
    for model in session.models.values():
        asked = model.ensemble.node_feature[model.ensemble.node_feature >= 0]
        counts = frozen(np.bincount(asked, minlength=model.ensemble.n_features))
        for name, count in zip(model.ensemble.feature_names, counts.tolist(), strict=True):
            result[name] = result.get(name, 0.0) + count / max(1, len(asked))
    return result
