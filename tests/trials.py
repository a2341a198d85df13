"""How many random cases a test tries: a share of them in `make test`, all of them in `make nightly`."""

from __future__ import annotations

import os
from typing import Any

import pytest

THOROUGH = os.environ.get("TREESENS_THOROUGH", "") not in ("", "0")
"""True if tests try all of their random cases, as in `make nightly`."""


def trials(count: int) -> range:
    """The numbers of a test's random cases: all `count` of them if the run is thorough, else the first quarter."""
    return range(count if THOROUGH else -(-count // 4))


def at_night(value: Any) -> Any:
    """A parameter of `parametrize` that thorough runs try alone."""
    return pytest.param(value, marks=pytest.mark.thorough)
