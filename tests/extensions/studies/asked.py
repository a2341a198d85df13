"""A study asked with models that are loaded, as its command and its call ask it."""

from __future__ import annotations

from typing import Any

from treesens.data.tables import Table
from treesens.extensions.studies.registry import study_of
from treesens.extensions.studies.study import Asking, Found
from treesens.frontends.base import LoadedModel


def found(name: str, *models: LoadedModel, table: Table | None = None, **options: Any) -> Found[Any]:
    """The findings of a study with options by their names."""
    study = study_of(name)
    return study.asked(Asking(models, table, study.options(**options)))
