"""What all tests share."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# The same examples in every run, so that a red run is the fault of its change. New ones are drawn by
# `pytest --hypothesis-profile=random`. Time limits of single examples say nothing on a shared machine.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None)
settings.load_profile("fixed")

# Tests run beside each other, one to a core: with two threads for each, the libraries' threads wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Python looks for cycles after each 700 new objects: a tenth of the time of the tests. Commands look more seldom, too
# (`treesens.cli`); what the modules of the tests hold is left out for good (`pytest_collection_finish`).
gc.set_threshold(50_000, 20, 100)

# A shell that starts the tests in the background lets them ignore Ctrl-C, and what they start as well; tests of
# interruptions send the signal themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

QUICK = ("house", "compiler", "values", "measure", "engine", "grammar", "binder", "builder")
"""Folders whose tests `make quick` runs: they need XGBoost alone of the libraries, no processes and no pages."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part", choices=["quick", "rest"], help="the quick tests of the core, or all others (CI runs both)"
    )


def is_quick(path: Path, slow: bool) -> bool:
    """Whether a test belongs to the quick part; each test is in exactly one."""
    folder = path.relative_to(Path(__file__).parent).parts[0]
    return folder in QUICK and not slow and path.name != "test_differential.py"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda x: x.get_closest_marker("long") is None)
    part = config.getoption("--part")
    if part is None:
        return
    chosen = [x for x in items if is_quick(x.path, x.get_closest_marker("slow") is not None) == (part == "quick")]
    kept = set(map(id, chosen))
    config.hook.pytest_deselected(items=[x for x in items if id(x) not in kept])
    items[:] = chosen


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Libraries that are given no seed (scikit-learn without `random_state`) draw from these two generators.

    Each run trains the same models, so that a red run is the fault of its change.
    """
    random.seed(0)
    np.random.seed(0)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Figures stay open until somebody closes them, and Matplotlib warns when one process has more than twenty."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The quick part does not import the tests of other folders, whose libraries may be missing."""
    here = Path(__file__).parent
    if config.getoption("--part") == "quick" and collection_path.parent == here and collection_path.is_dir():
        return collection_path.name not in QUICK or None
    return None
