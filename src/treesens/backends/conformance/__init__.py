"""The conformance kit for backends. Ships with the package, so that the author of a backend runs it on their own:

from treesens.backends import conformance
conformance.run("mine").raise_if_wrong()
"""

from treesens.backends.conformance.kit import run

__all__ = ["run"]
