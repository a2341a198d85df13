"""The conformance kit for backends. Part of the package, so that authors can test their backends:

from treesens.backends import conformance
conformance.run("mine").raise_if_wrong()
"""

from treesens.backends.conformance.kit import run

__all__ = ["run"]
