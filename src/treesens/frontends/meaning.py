"""Facts about a model's use that affect answers: protected features, class names, and the favourable class. The facts are read
from a TOML file next to the model: `NAME.treesens.toml` for the model NAME, or `treesens.toml` for all models in the folder:

protected = ["sex", "age"]
classes = {0 = "granted", 1 = "refused"}
favourable = "granted"

The terms are from the fairness literature (Barocas, Hardt and Narayanan, Fairness and Machine Learning, 2023).
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.base.files import read_regular
from treesens.compiler.model import Ensemble
from treesens.errors import UsageError

FILE = "treesens.toml"
KEYS = ("protected", "classes", "favourable")
_MOST_BYTES = 1_000_000


@dataclass(frozen=True)
class Meaning:
    """`classes` maps labels of the model to names, and `favourable` is one of these labels; `place` is the file that contains
    these facts, and `sha256` is the file's digest.
    """

    protected: tuple[str, ...] = ()
    classes: Mapping[str, str] = field(default_factory=dict)
    favourable: str | None = None
    place: str = ""
    sha256: str | None = None
    suggested: bool = False
    """True if the protected features are suggested by their names, and not stated."""
    none_protected: bool = False
    """True if the file states that no feature is protected."""

    def __bool__(self) -> bool:
        return bool(self.protected or self.none_protected or self.classes or self.favourable is not None)

    @property
    def stated(self) -> tuple[str, ...] | None:
        """The features that are stated as protected, or None without such a statement."""
        return None if self.suggested or not (self.protected or self.none_protected) else self.protected

    def is_protected(self, features: Sequence[str]) -> bool:
        """True if one of the features is protected."""
        return not set(self.protected).isdisjoint(features)


NOTHING_SAID = Meaning()


def meaning_beside(path: Path, ensemble: Ensemble) -> Meaning:
    """The meaning stated in the file next to the model; empty without a file. Raises UsageError with the location if the file
    does not fit the model."""
    for place in (path.with_name(f"{path.stem}.{FILE}"), path.with_name(FILE)):
        if place.is_file():
            content = _read(place)
            digest = hashlib.sha256(content).hexdigest()
            return replace(meaning_of(_parsed(content, place), ensemble, str(place)), sha256=digest)
    return NOTHING_SAID


def toml_of(protected: Sequence[str] | None, classes: Mapping[str, str], favourable: str | None) -> str:
    """The TOML text that states these facts about a model."""
    lines = []
    if protected is not None:
        lines.append(f"protected = {json.dumps(list(protected), ensure_ascii=False)}")
    if classes:
        named = (
            f"{json.dumps(k, ensure_ascii=False)} = {json.dumps(v, ensure_ascii=False)}" for k, v in classes.items()
        )
        lines.append(f"classes = {{{', '.join(named)}}}")
    if favourable is not None:
        lines.append(f"favourable = {json.dumps(favourable, ensure_ascii=False)}")
    return "\n".join(lines)


_REMEDY = 'write e.g. protected = ["sex"] (docs/protected.md)'


def _read(place: Path) -> bytes:
    try:
        return read_regular(place, _MOST_BYTES)
    except OSError as error:
        raise UsageError(f"the file cannot be read: {error}", place=str(place), remedy=_REMEDY) from None


def _parsed(content: bytes, place: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise UsageError(f"the file cannot be read: {error}", place=str(place), remedy=_REMEDY) from None
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise UsageError(f"this is not valid TOML: {error}", place=str(place), remedy=_REMEDY) from None


def meaning_of(given: Mapping[str, Any], ensemble: Ensemble, place: str = "") -> Meaning:
    """The entries, checked against the model. Raises UsageError with the entry's location and a remedy."""
    for key in given:
        if key not in KEYS:
            raise UsageError(f"unknown entry `{key}`", place=place, remedy=did_you_mean(key, KEYS))
    protected = _protected(given.get("protected", ()), ensemble, place)
    classes = _classes(given.get("classes", {}), ensemble, place)
    favourable = _favourable(given.get("favourable"), classes, ensemble, place)
    return Meaning(protected, classes, favourable, place, none_protected="protected" in given and not protected)


def feature_named(name: str, ensemble: Ensemble) -> str:
    """The feature with this name, in which LightGBM replaces each blank by `_`; other names are returned unchanged."""
    spelled = name.replace(" ", "_")
    renamed = "lightgbm" in ensemble.source.format and name not in ensemble.feature_names
    return spelled if renamed and spelled in ensemble.feature_names else name


def _protected(value: Any, ensemble: Ensemble, place: str) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, Sequence) or not all(isinstance(name, str) for name in listed):
        raise UsageError("`protected` is not a list of names", place=place, remedy='write protected = ["sex", "age"]')
    listed = [feature_named(name, ensemble) for name in listed]
    for number, name in enumerate(listed, 1):
        if name not in ensemble.feature_names:
            remedy = did_you_mean(name, ensemble.feature_names)
            raise UsageError(
                f"`protected`, name {number}: the model has no feature `{name}`", place=place, remedy=remedy
            )
    return tuple(dict.fromkeys(listed))


def _classes(value: Any, ensemble: Ensemble, place: str) -> dict[str, str]:
    remedy = 'write classes = {0 = "granted", 1 = "refused"}' if place else 'pass classes={0: "granted", 1: "refused"}'
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value.values()):
        raise UsageError(
            f"`classes` is {value!r:.60}, which does not name the classes by their labels", place=place, remedy=remedy
        )
    named = {str(label): name for label, name in value.items()}
    known = [str(label) for label in ensemble.classes]
    for label, name in named.items():
        if label not in known:
            has = f"its classes are {', '.join(known)}" if known else "it has none"
            raise UsageError(f"`classes`: the model has no class `{label}`", place=place, remedy=has)
        if not name.strip() or list(named.values()).count(name) > 1 or name in {*known} - {label}:
            raise UsageError(f"`classes`: `{name}` is not the name of a single class", place=place, remedy=remedy)
    return named


def _favourable(value: Any, classes: Mapping[str, str], ensemble: Ensemble, place: str) -> str | None:
    if value is None:
        return None
    labels = {str(label): str(label) for label in ensemble.classes} | {name: label for label, name in classes.items()}
    if isinstance(value, bool) or not isinstance(value, str | int) or str(value) not in labels:
        remedy = did_you_mean(str(value), labels)
        if isinstance(value, str) and not classes and len(labels) == 2:
            named = 'classes = {{0 = "{}", ..}}' if place else 'classes={{0: "{}", ..}}'
            remedy += f"; to use a name, state {named.format(value)}"
        raise UsageError(
            f"`favourable` is {value!r:.60}, which is not a class of the model", place=place, remedy=remedy
        )
    return labels[str(value)]
