"""The conformance kits, with which authors of backends, passes and formats test their own code.

from treesens.extensions import conformance

conformance.backends.run("mine").raise_if_wrong()  # every fact against brute force, on small modules
conformance.passes.run("my-pass").raise_if_wrong()  # the declared relation by brute force, on the same modules
conformance.formats.check(load("model.json")).raise_if_wrong()  # leaves, margins and classes of the library, bit for bit
"""

from treesens.extensions.conformance import backends, formats, passes

__all__ = ["backends", "formats", "passes"]
