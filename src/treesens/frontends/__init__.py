"""Readers that convert model files to ensembles: one folder or file per format. `load` selects the format."""

from treesens.frontends.base import Frontend, LoadedModel
from treesens.frontends.registry import frontend, frontend_names, load

__all__ = ["Frontend", "LoadedModel", "frontend", "frontend_names", "load"]
