"""Reads SPEC files: a TOML table of models, features and gaps, from which `.sens` documents are made, or a `.sens` file."""

from __future__ import annotations

import glob
import random
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

from treesens.commands.parameters import given_parameters, read_file
from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.base.files import read_text
from treesens.compiler.base.option_kinds import Bytes, Door, Number, Seconds
from treesens.compiler.model import Task
from treesens.errors import DataError, UsageError
from treesens.extensions.sweeps.settings import Settings, settings_of
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast
from treesens.python.settings import taken
from treesens.records.questions import Document, Question, document_of, questions_of

_EXAMPLE = """\
models = ["models/*.json"]
features = "all"
margins = [0.5, 1.0, 1.5]"""

_BLOCK = {
    "models": "paths or patterns, relative to this file",
    "data": "a CSV or Parquet file, which provides the domains, and whose rows are tried first",
    "label": "the column of `data` that is not an input",
    "features": '"all", or names: each alone',
    "pairs": '"all", or a list of pairs',
    "sets": "a list of lists of features",
    "random": "{size = 3, count = 20}: random sets",
    "margins": "gaps in raw score",
    "gaps": "gaps in probability",
    "factors": "ratios of probabilities, for classes",
    "classes": '"all", or a list of pairs [from, to]',
}
_MOST_SETS = 1_000_000


@dataclass(frozen=True)
class Spec:
    """The content of a SPEC file: its questions and settings."""

    questions: list[Question]
    settings: Settings
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Place:
    """The place of a table in a SPEC file, for messages."""

    path: Path
    text: str
    name: str = ""

    def error(self, key: str, message: str, remedy: str) -> DataError:
        where = re.search(rf"^\s*{re.escape(key)}\s*=", self.text, re.MULTILINE)
        line = f":{self.text.count(chr(10), 0, where.start(0)) + 1 + where[0].count(chr(10))}" if where else ""
        return DataError(f"{self.name}{message}", place=f"{self.path}{line}", remedy=remedy)


def read_spec(path: Path, *, trust_pickle: bool = False) -> Spec:
    """The questions of a SPEC. Raises DataError with place and remedy; models and data are opened once and then released."""
    if path.suffix == ".sens":
        document, session = document_of(str(path), read_file(path), path.parent, trust_pickle=trust_pickle)
        told = tuple(item.render() for item in session.warnings)
        return Spec(list(questions_of(document, session)), Settings(), told)
    if given := given_parameters():
        raise UsageError(f"{path} has no parameter `{next(iter(given))}`", remedy="parameters belong to a .sens file")
    text = read_text(path, "sweep", "save it as UTF-8")
    try:
        data = tomllib.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise DataError(f"this is not TOML: {error}", place=str(path), remedy=f"write e.g.\n{_EXAMPLE}") from None
    place = _Place(path, text)
    settings = _settings(data, place)
    blocks = data.pop("sweep", [{}])
    if not isinstance(blocks, list) or not all(isinstance(b, dict) for b in blocks):
        raise place.error("sweep", "`sweep` is not a list of tables", "write [[sweep]] before each of them")
    _known(data, {*_BLOCK, "sweep"}, place)
    shared = {key: value for key, value in data.items() if key in _BLOCK}
    questions: list[Question] = []
    warnings: list[str] = []
    for number, block in enumerate(blocks, 1):
        inside = replace(place, name=f"[[sweep]] {number}: " if "sweep" in text and len(blocks) > 1 else "")
        _known(block, set(_BLOCK), inside)
        for found in _block({**shared, **block}, inside, settings.seed, trust_pickle):
            questions += found[0]
            warnings += found[1]
    return Spec(list({q.digest: q for q in questions}.values()), settings, tuple(dict.fromkeys(warnings)))


def _known(data: dict[str, Any], names: set[str], place: _Place) -> None:
    for key in data:
        if key not in names:
            raise place.error(key, f"a sweep has no `{key}`", did_you_mean(key, sorted(names)))


def _settings(data: dict[str, Any], place: _Place) -> Settings:
    """The settings of the sweep, which are removed from `data`. Memory sizes are given in megabytes."""
    given: dict[str, Any] = {}
    for one in settings_of(Door.SPEC):
        key, kind = one.field, one.option.kind
        if key not in data:
            continue
        value = data.pop(key)
        value = float(value) if isinstance(value, Decimal) else value
        if isinstance(kind, Bytes) and isinstance(value, int):
            value *= kind.in_words
        try:
            value = taken(one, value)
        except UsageError as error:
            raise place.error(key, error.message, error.remedy) from None
        given[key] = float(value) if isinstance(kind, Number | Seconds) else value
    return Settings(**given)


def _block(
    block: dict[str, Any], place: _Place, seed: int, trust_pickle: bool
) -> Iterator[tuple[list[Question], list[str]]]:
    """The questions of one table for each of its models, with warnings."""
    from treesens.frontends.registry import load

    for path in _models(block, place):
        model = load(path, trust_pickle=trust_pickle)
        file = _file(block, place, path, model, seed)
        document, session = document_of(path.stem, file, place.path.parent, trust_pickle=trust_pickle)
        yield list(questions_of(document, session)), [item.render() for item in session.warnings]


def _models(block: dict[str, Any], place: _Place) -> list[Path]:
    if "models" not in block:
        raise place.error("models", "the sweep names no models", f"write e.g.\n{_EXAMPLE}")
    found: dict[Path, None] = {}
    for pattern in _texts(block, "models", place):
        base = place.path.parent
        matches = [base / p for p in sorted(glob.glob(pattern, root_dir=base))]
        if not matches and not glob.has_magic(pattern):
            matches = [base / pattern]
        if not matches:
            raise place.error("models", f"no file matches `{pattern}`", f"patterns are relative to {base.resolve()}")
        found |= dict.fromkeys(matches)
    return list(found)


def _file(block: dict[str, Any], place: _Place, path: Path, model: LoadedModel, seed: int) -> ast.File:
    """The document of one model: a query per level and pair of classes, with `for each` over the sets of features."""
    names = model.ensemble.feature_names
    base = place.path.parent
    declarations: list[ast.Declaration] = [ast.Model(ast.Name("m"), ast.Text(_relative(path, base)))]
    if "data" in block:
        label = ast.Name(_text(block, "label", place)) if "label" in block else None
        declarations.append(ast.Data(ast.Name("d"), ast.Text(_text(block, "data", place)), label))
        declarations.append(ast.DomainFrom(ast.Name("d")))
    parameter = "f"
    while parameter in names:
        parameter += "_"
    sets = _sets(block, place, model, seed)
    choices = tuple(ast.Features(tuple(ast.Name(name) for name in group)) for group in sets)
    each = (ast.Each((ast.Name(parameter),), choices),)
    varied = ast.Features((ast.Name(parameter),))
    for level, number in _levels(block, place):
        for flip in _flips(block, place, model):
            title = " ".join([f"{level} {number}" if number is not None else "flip", *(str(x) for x in flip or ())])
            value = None if number is None else ast.Number(Fraction(number))
            body = ast.Sensitive(
                None,
                varied,
                gap=value if level == "gap" else None,
                margin=value if level == "margin" else None,
                factor=value if level == "factor" else None,
                flip=None if flip is None else ast.Flip(_label(flip[0]), _label(flip[1])),
            )
            declarations.append(ast.Query(ast.Name(title), body, each))
    return ast.File(tuple(declarations))


def _relative(path: Path, base: Path) -> str:
    return str(path.relative_to(base)) if path.is_relative_to(base) else str(path.resolve())


def _sets(block: dict[str, Any], place: _Place, model: LoadedModel, seed: int) -> list[tuple[str, ...]]:
    """The sets of features that may vary, without repetition."""
    names = model.ensemble.feature_names
    used = model.ensemble.used_features
    groups: list[tuple[str, ...]] = []
    if not {"features", "pairs", "sets", "random"} & set(block):
        block = {**block, "features": "all"}
    if block.get("features") == "all":
        groups += [(name,) for name in used]
    elif "features" in block:
        groups += [(name,) for name in _texts(block, "features", place)]
    if block.get("pairs") == "all" and len(used) ** 2 > 2 * _MOST_SETS:
        raise place.error("pairs", f"{len(used):,} features have more than {_MOST_SETS:,} pairs", "list the pairs")
    if block.get("pairs") == "all":
        groups += list(combinations(used, 2))
    for key in ("pairs", "sets"):
        if key in block and block[key] != "all":
            listed = block[key]
            good = isinstance(listed, list) and all(
                isinstance(group, list) and group and all(isinstance(n, str) for n in group) for group in listed
            )
            if not good or (key == "pairs" and any(len(set(group)) != 2 for group in listed)):
                raise place.error(key, f"`{key}` is {listed!r}", 'write a list of lists, e.g. [["age", "sex"]]')
            groups += [tuple(group) for group in listed]
    if "random" in block:
        groups += _random(block["random"], place, used, seed)
    for name in (name for group in groups for name in group):
        if name not in names:
            key = next(k for k in ("features", "pairs", "sets") if k in block and name in str(block[k]))
            raise place.error(key, f"{model.ensemble.name} has no feature `{name}`", did_you_mean(name, names))
    return list({frozenset(group): group for group in groups}.values())


def _random(given: Any, place: _Place, used: Sequence[str], seed: int) -> list[tuple[str, ...]]:
    groups: list[tuple[str, ...]] = []
    for item in given if isinstance(given, list) else [given]:
        good = isinstance(item, dict) and set(item) == {"size", "count"} and all(type(v) is int for v in item.values())
        if not good or item["size"] < 1 or not 1 <= item["count"] <= _MOST_SETS:
            raise place.error("random", f"`random` is {str(item)[:80]}", "write e.g. {size = 3, count = 20}")
        if item["size"] > len(used):
            raise place.error("random", f"the model uses {len(used)} features only", "make `size` smaller")
        rng = random.Random(f"{seed} {item['size']}")
        groups += [tuple(sorted(rng.sample(used, item["size"]), key=used.index)) for _ in range(item["count"])]
    return groups


def _levels(block: dict[str, Any], place: _Place) -> list[tuple[str, str | None]]:
    found: list[tuple[str, str | None]] = []
    for key, word in (("margins", "margin"), ("gaps", "gap"), ("factors", "factor")):
        if key not in block:
            continue
        values = block[key] if isinstance(block[key], list) else [block[key]]
        for value in values:
            if (
                isinstance(value, bool)
                or not isinstance(value, int | Decimal)
                or not Decimal(value).is_finite()
                or not 1e-300 < value < 1e300
            ):
                raise place.error(key, f"`{value}` is not a positive number", f"write e.g. {key} = [0.5, 1.0]")
            found.append((word, f"{Decimal(value):f}"))
        if not values:
            raise place.error(key, f"`{key}` is empty", f"write e.g. {key} = [0.5, 1.0]")
    return list(dict.fromkeys(found)) or [("", None)]


def _flips(block: dict[str, Any], place: _Place, model: LoadedModel) -> list[tuple[Any, Any] | None]:
    if "classes" not in block:
        return [None]
    known = model.ensemble.classes
    if model.ensemble.task not in {Task.BINARY, Task.MULTICLASS}:
        raise place.error("classes", f"{model.ensemble.name} has no classes", "leave `classes` out")
    if block["classes"] == "all":
        return list(permutations(known, 2))
    pairs = block["classes"]
    if not isinstance(pairs, list) or not all(isinstance(p, list) and len(p) == 2 for p in pairs):
        raise place.error("classes", f"`classes` is {pairs!r}", "write a list of pairs, e.g. [[0, 1]]")
    for label in (label for pair in pairs for label in pair):
        if label not in known:
            listed = ", ".join(str(c) for c in known)
            raise place.error("classes", f"{model.ensemble.name} has no class {label!r}", f"its classes are {listed}")
    return [tuple(pair) for pair in pairs]


def _label(value: Any) -> ast.Label:
    return ast.Name(value) if isinstance(value, str) else ast.Number(Fraction(value))


def _text(block: dict[str, Any], key: str, place: _Place) -> str:
    value = block[key]
    if not isinstance(value, str):
        raise place.error(key, f"`{key}` is {str(value)[:40]}", "write a text in quotes")
    return value


def _texts(block: dict[str, Any], key: str, place: _Place) -> list[str]:
    values = block[key] if isinstance(block[key], list) else [block[key]]
    if not values or not all(isinstance(v, str) for v in values):
        raise place.error(key, f"`{key}` is {block[key]!r}", f"write {_BLOCK[key]}")
    return values


def documents(questions: Sequence[Question]) -> list[Document]:
    """The documents of questions, without repetition."""
    return list({q.document.digest: q.document for q in questions}.values())
