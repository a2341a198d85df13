"""The built-in extensions by name: the only place of the core that names them.

The core answers and explains one question. Everything in `treesens.extensions` registers here as "module" or
"module:attribute", as entry points of other distributions do (docs/extending.md), and is imported on first use. An installation
without that folder (`make core`) lacks these names, and an option that needs one of them fails with a remedy.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from treesens.errors import UsageError

FORMATS: Final = {
    "catboost": "treesens.extensions.formats.catboost.frontend:CatBoostFrontend",
    "onnx": "treesens.extensions.formats.onnx.frontend:ONNXFrontend",
    "treelite": "treesens.extensions.formats.treelite:TreeliteFrontend",
    "interpret": "treesens.extensions.formats.interpret.frontend:InterpretFrontend",
    "pmml": "treesens.extensions.formats.pmml.frontend:PMMLFrontend",
    "spark": "treesens.extensions.formats.spark.frontend:SparkFrontend",
    "h2o": "treesens.extensions.formats.h2o.frontend:H2OFrontend",
    "scorecard": "treesens.extensions.formats.scorecard.frontend:ScorecardFrontend",
}
"""Model formats."""
SERVICES: Final = {
    "certificates": "treesens.extensions.certify.service",
    "shares": "treesens.extensions.measure.service",
    "parts": "treesens.extensions.sweeps.service",
    "studies": "treesens.extensions.studies.service",
}
"""Modules behind options of the core. Each is typed by a protocol next to the code that calls it."""


@cache
def has_extensions() -> bool:
    """True unless this is the core alone."""
    return find_spec("treesens.extensions") is not None


def service(name: str) -> Any:
    """The module of `SERVICES`. Raises UsageError if this is the core alone."""
    if not has_extensions():
        raise UsageError(
            f"this installation of treesens lacks {name}", remedy="install the whole package: pip install treesens"
        )
    return import_module(SERVICES[name])
