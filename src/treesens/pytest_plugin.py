"""The plug-in of pytest: that of the extension for CI, if it is installed."""

from treesens.builtin import SERVICES, has_extensions

pytest_plugins = [SERVICES["pytest"]] if has_extensions() else []
