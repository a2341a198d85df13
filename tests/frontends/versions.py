"""Tests of what a later version of a library brought; `make oldest` runs them with the earliest one that is supported."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest


def before(module: str, first: str) -> bool:
    """True if the installed version of a library is earlier than `first`."""
    return _numbers(import_module(module).__version__) < _numbers(first)


def since(module: str, first: str) -> pytest.MarkDecorator:
    """Skips a test where the library is earlier than `first`, which brought what the test is about."""
    return pytest.mark.skipif(before(module, first), reason=f"came with {module} {first}")


def voting() -> dict[str, Any]:
    """Options with which AdaBoost adds votes, as it always does since scikit-learn 1.6."""
    return {"algorithm": "SAMME"} if before("sklearn", "1.6") else {}


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")[:2]]
