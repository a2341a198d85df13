"""The phrases and codes of reasons, from a TOML file that its owner writes: a table per feature.

    [income]
    code = "3"
    phrase = "Income insufficient for amount of credit requested"

`["*"]` stands for every other feature. Codes are those of whoever reads them: HMDA has 1 to 9, the sample forms of Regulation B
have phrases alone (12 CFR 1002, Appendix C).
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.base.files import MOST_TEXT_BYTES, read_regular
from treesens.errors import UsageError

OTHERS = "*"


@dataclass(frozen=True)
class Words:
    """What a letter says of a feature."""

    phrase: str
    code: str | None


def read_codes(path: Path | None, features: Sequence[str], needed: Sequence[str]) -> dict[str, Words]:
    """The words of every feature that is `needed`; its name without a file. UsageError for a file that cannot be read, for
    features that the model does not have, and if one that is needed has no words.
    """
    if path is None:
        return {name: Words(name, None) for name in needed}
    try:
        given = tomllib.loads(read_regular(path, MOST_TEXT_BYTES).decode("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the file cannot be read: {error}", place=str(path), remedy="name a TOML file") from None
    except tomllib.TOMLDecodeError as error:
        remedy = 'write [FEATURE], and below it phrase = ".." and code = ".."'
        raise UsageError(f"this is no TOML: {error}", place=str(path), remedy=remedy) from None
    known = {name: _words(name, entry, str(path)) for name, entry in given.items()}
    for name in known:
        if name not in features and name != OTHERS:
            remedy = did_you_mean(name, list(features))
            raise UsageError(f"the model has no feature `{name}`", place=str(path), remedy=remedy)
    silent = [name for name in needed if name not in known]
    if silent and OTHERS not in known:
        listed = ", ".join(f"`{name}`" for name in silent[:8]) + (", …" if len(silent) > 8 else "")
        remedy = f'add [{silent[0]}] with phrase and code, or ["*"] for all others, or make it --protected'
        raise UsageError(f"there are no words for {listed}", place=str(path), remedy=remedy)
    return {name: known.get(name) or known[OTHERS] for name in needed}


def _words(name: str, entry: object, place: str) -> Words:
    remedy = f'write [{name}], and below it phrase = ".." and code = ".."'
    if not isinstance(entry, dict) or not isinstance(entry.get("phrase"), str) or not entry["phrase"].strip():
        raise UsageError(f"`{name}` has no phrase", place=place, remedy=remedy)
    if unknown := sorted(set(entry) - {"phrase", "code"}):
        raise UsageError(f"`{name}` has a field `{unknown[0]}`", place=place, remedy=remedy)
    code = entry.get("code")
    if code is not None and (isinstance(code, bool) or not isinstance(code, str | int)):
        raise UsageError(f"the code of `{name}` is no text and no whole number", place=place, remedy=remedy)
    return Words(entry["phrase"].strip(), None if code is None else str(code))
