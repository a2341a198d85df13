"""Imports optional packages; if a package is missing, the error names the package."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from treesens.errors import MissingPackageError

INSTALLED_BY = {
    "z3": "z3-solver",
    "jinja2": "'treesens[report]'",
    "matplotlib": "'treesens[plot]'",
    "shap": "'treesens[shap]'",
    "sklearn": "'treesens[sklearn]'",
    "pyarrow": "pyarrow",
    "distributed": "'treesens[dask]'",
    "ray": "'treesens[ray]'",
    "onnxruntime": "'treesens[onnx]'",
}
"""The argument of `pip install` for each module."""
PURPOSES = {"jinja2": "reports are written with jinja2", "matplotlib": "pictures are drawn with matplotlib"}
"""The purpose of each package that outputs need: the first words of an error message."""


def is_installed(module: str) -> bool:
    """True if a top-level module can be found; the module is not imported."""
    return find_spec(module) is not None


def imported(module: str, purpose: str, *, place: str = "", installed_by: str | None = None) -> Any:
    """A module of a package that may be missing, such as `sklearn.ensemble`.

    `purpose` is the first part of the message of `MissingPackageError`, e.g. "reports are written with jinja2". `installed_by`
    is the argument of `pip install`, if different from `INSTALLED_BY`.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise MissingPackageError(
                f"{package} does not work here: it needs {error.name}, which is not installed", place=place
            ) from error
        remedy = f"pip install {installed_by or INSTALLED_BY[package]}"
        raise MissingPackageError(f"{purpose}, which is not installed", remedy=remedy, place=place) from None
