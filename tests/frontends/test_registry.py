"""Formats are found by content, plug-ins by entry points, and nothing heavy is imported on the way."""

from __future__ import annotations

import subprocess
import sys
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


def test_names_that_collide_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("xgboost", "other.package:Frontend", registry.GROUP)]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    with pytest.raises(ModelError, match="two frontends are called `xgboost`"):
        frontend_names()


def test_a_broken_plug_in_is_named_but_harms_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("broken", "package_that_is_not_there:Frontend", registry.GROUP)]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    assert load(MODELS["logistic"]()).frontend == "xgboost"
    with pytest.raises(ModelError, match=r"`broken`.*cannot be loaded"):
        frontend("broken")
    with pytest.raises(ModelError, match="no model format `xgbost`") as caught:
        frontend("xgbost")
    assert "xgboost" in caught.value.remedy


def test_a_plug_in_without_the_interface_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("odd", "fractions:Fraction", registry.GROUP)]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
