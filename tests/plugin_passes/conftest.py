"""A distribution with the passes of `wrong.py`, installed into a folder on the search path of this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from treesens.compiler.base import plugins
from treesens.compiler.passes.registry import PASSES

PACKAGE, VERSION = "treesens-careless", "0.3"


def _forget() -> None:
    PASSES._plugins = None
    plugins.may_have_plugins.cache_clear()
    plugins.plugin_versions.cache_clear()


@pytest.fixture(autouse=True)
def careless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    info = tmp_path / "site" / f"treesens_careless-{VERSION}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {VERSION}\n")
    lines = [f"{name.lower()} = tests.plugin_passes.wrong:{name}" for name in ("Wrong", "Right", "Raises")]
    (info / "entry_points.txt").write_text("\n".join(["[treesens.passes]", *lines]) + "\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    _forget()
    yield
    _forget()
