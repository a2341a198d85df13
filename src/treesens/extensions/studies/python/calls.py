"""The studies as functions, each made when it is asked for; `calls.pyi` has their types."""

from __future__ import annotations

from typing import Any

from treesens.extensions.studies.python.study import study_call
from treesens.extensions.studies.registry import CALLS, STUDIES, study_of


def __getattr__(name: str) -> Any:
    study = CALLS.get(name, name)
    if study not in STUDIES or study_of(study).call is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made = study_call(study_of(study))
    return made
