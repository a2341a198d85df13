"""Certificates of questions about tiny models: the greatest gaps at which the answer is `none`, and beyond."""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.extensions.certify.models import DECLARATIONS, FEATURES, QUESTIONS, file_of, train
from tests.extensions.certify.truth import Truth
from treesens.binder.file import bind
from treesens.compiler.query.query import Query
from treesens.extensions.certify.produce import refutation
from treesens.extensions.certify.statement import NoCertificate
from treesens.grammar.parsing.parser import parse


@dataclass
class Made:
    """A model file, what is true about it, and certificates of `none` by name."""

    data: bytes
    truth: Truth
    documents: dict[str, dict[str, Any]]
    refused: dict[str, str]


def parts_of(manifest: Path) -> list[dict[str, Any]]:
    """The certificates that a manifest names, in its order."""
    named = json.loads(manifest.read_text())["parts"]
    return [json.loads(lzma.decompress((manifest.parent / part["file"]).read_bytes())) for part in named]


def query_of(text: str, folder: Path) -> Query:
    """The one question of a text."""
    return bind(parse(text, "<test>"), folder).queries[0].query


def make(seed: int, folder: Path, gaps: tuple[str, ...] = ("0.4", "0.8", "1.2", "2")) -> Made:
    """A model, and a certificate of every question that has no answer."""
    model = folder / f"tiny{seed}.json"
    booster = train(seed, model)
    made = Made(model.read_bytes(), Truth(booster, FEATURES), {}, {})
    for kind, question in QUESTIONS.items():
        for style, declared in DECLARATIONS.items():
            for gap in gaps:
                name = f"{kind}-{style}-{gap}"
                query = query_of(file_of(model, question, declared, gap, str(float(gap) / 8)), folder)
                try:
                    made.documents[name] = json.loads(json.dumps(refutation(query).document))
                except NoCertificate as reason:
                    made.refused[name] = str(reason)
    return made
