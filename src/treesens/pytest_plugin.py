"""The pytest plug-in of the extension for CI, if the extension is installed."""

from treesens.builtin import SERVICES, has_extensions

pytest_plugins = [SERVICES["pytest"]] if has_extensions() else []
