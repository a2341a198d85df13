"""What all tests share."""

from __future__ import annotations

import gc
import os
import random
import re
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from tests.trials import THOROUGH
from treesens.builtin import has_extensions

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

QUICK = ("house", "runtime", "compiler", "values", "engine", "grammar", "binder")
"""Folders whose tests `make quick` runs: they need XGBoost alone of the libraries, no processes and no pages."""
EXTENSION = re.compile(r"\b(treesens|tests)\.extensions\b")
"""What the tests of the core do not name."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part", choices=["quick", "rest"], help="the quick tests of the core, or all others (CI runs both)"
    )


def is_quick(path: Path, slow: bool) -> bool:
    """Whether a test belongs to the quick part; each test is in exactly one."""
    folder = path.relative_to(Path(__file__).parent).parts[0]
    return folder in QUICK and not slow and path.name != "test_differential.py"


def place(item: pytest.Item) -> list[int]:
    """Which value a test has on each axis; parameters of one `parametrize` are one axis."""
    names = (marker.args[0] for marker in item.iter_markers("parametrize"))
    first = (name.split(",")[0].strip() if isinstance(name, str) else name[0] for name in names)
    return [item.callspec.indices[name] for name in first]  # type: ignore[attr-defined]


def sampled(items: list[pytest.Item]) -> list[pytest.Item]:
    """The tests of `make test`: every fourth random seed, and a diagonal of combinations that meets each value."""
    places = {id(x): place(x) for x in items if x.get_closest_marker("sampled") is not None}
    sizes: dict[object, list[int]] = {}
    for item in items:
        if (found := places.get(id(item))) is not None:
            size = sizes.setdefault(item.function, [0] * len(found))  # type: ignore[attr-defined]
            size[:] = map(max, size, (index + 1 for index in found))
    kept = [x for x in items if x.get_closest_marker("thorough") is None]
    return [x for x in kept if id(x) not in places or sum(places[id(x)]) % step(sizes[x.function]) == 0]  # type: ignore[attr-defined]


def step(sizes: list[int]) -> int:
    """The distance of sampled places. No more than the second largest axis, so that each value of each axis is met."""
    return min([4, *sorted(sizes)[-2:-1]])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda x: x.get_closest_marker("long") is None)
    part = config.getoption("--part")
    chosen = [
        x
        for x in items
        if part is None or is_quick(x.path, x.get_closest_marker("slow") is not None) == (part == "quick")
    ]
    named = any("[" in argument for argument in config.args)
    if not THOROUGH and not named:
        chosen = sampled(chosen)
    if not has_extensions():
        chosen = [x for x in chosen if x.get_closest_marker("extensions") is None]
    kept = set(map(id, chosen))
    config.hook.pytest_deselected(items=[x for x in items if id(x) not in kept])
    items[:] = chosen


def at_the_root() -> set[str]:
    """Entries of the checkout, without `build` and the caches of tools."""
    names = (entry.name for entry in os.scandir(Path(__file__).parents[1]))
    return {name for name in names if name != "build" and not name.startswith(".")}


BEFORE = at_the_root()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run whose tests left files at the root: tests write into their own folders."""
    left = at_the_root() - BEFORE
    if left and not hasattr(session.config, "workerinput"):
        print(f"\ntests left at the root: {', '.join(sorted(left))}", file=sys.stderr)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


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


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup() -> None:
    """Servers of processes have one environment, and are started again where it changes: not for the name of each test."""
    os.environ.pop("PYTEST_CURRENT_TEST", None)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call() -> None:
    os.environ.pop("PYTEST_CURRENT_TEST", None)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Figures stay open until somebody closes them, and Matplotlib warns when one process has more than twenty."""
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files whose libraries may be missing: other folders than the quick ones, or what uses an extension."""
    if (
        collection_path.suffix == ".py"
        and not has_extensions()
        and EXTENSION.search(collection_path.read_text("utf-8"))
    ):
        return True
    here = Path(__file__).parent
    if config.getoption("--part") == "quick" and collection_path.parent == here and collection_path.is_dir():
        return collection_path.name not in QUICK or None
    return None
