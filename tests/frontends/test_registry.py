"""Formats are found by content, plug-ins by entry points, and nothing heavy is imported on the way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tests.frontends.trained import MODELS
from treesens.errors import ModelError
from treesens.frontends import Frontend, frontend, frontend_names, load, registry

LIBRARIES = {"xgboost", "lightgbm", "sklearn", "catboost", "onnx", "treelite", "skops", "joblib", "pandas", "scipy"}


def test_the_built_in_formats_fulfil_the_interface() -> None:
    for name in frontend_names():
        assert isinstance(frontend(name), Frontend)
        assert frontend(name).name == name


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Another package's entry point of a name and a value, as long as the test runs."""

    def entry(name: str, value: str) -> None:
        points = [EntryPoint(name, value, registry.FORMATS.group)]
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
        monkeypatch.setattr("treesens.compiler.base.plugins.may_have_plugins", lambda: True)
        monkeypatch.setattr(registry, "FORMATS", replace(registry.FORMATS, _plugins=None))

    return entry


def test_names_that_collide_are_rejected(install: Callable[[str, str], None]) -> None:
    install("xgboost", "other.package:Frontend")
    with pytest.raises(ModelError, match=r"other\.package:Frontend and treesens itself both provide the model format"):
        frontend_names()


def test_a_broken_plug_in_is_named_but_harms_no_other(install: Callable[[str, str], None]) -> None:
    install("broken", "package_that_is_not_there:Frontend")
    assert load(MODELS["logistic"]()).frontend == "xgboost"
    with pytest.raises(ModelError, match=r"`broken` cannot be imported"):
        frontend("broken")
    with pytest.raises(ModelError, match="unknown model format `xgbost`") as caught:
        frontend("xgbost")
    assert "xgboost" in caught.value.remedy


def test_a_plug_in_without_the_interface_is_refused(install: Callable[[str, str], None]) -> None:
    install("odd", "fractions:Fraction")
    with pytest.raises(ModelError, match="lacks members"):
        frontend("odd")


def test_foreign_objects_are_refused_by_type() -> None:
    with pytest.raises(ModelError, match=r"builtins\.dict is not a model"):
        load({})


def test_reading_a_file_imports_no_model_library(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    MODELS["logistic"]().save_model(path)
    code = f"""
import sys, treesens.frontends as f
f.load({str(path)!r}).ensemble.grid()
print(sorted({{m.split('.')[0] for m in sys.modules}} & {LIBRARIES!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "[]"


def test_a_folder_that_is_no_model_says_what_to_give(tmp_path: Path) -> None:
    """Spark saves a folder with `metadata`; others hold a model file."""
    (tmp_path / "spark" / "metadata").mkdir(parents=True)
    for name, remedy in (("spark", "pass its whole folder"), (".", "pass the model file inside it")):
        with pytest.raises(ModelError) as refused:
            registry.load(tmp_path / name)
        assert remedy in str(refused.value)
