"""The service "numbers": the entry point of the core for models in which numbers with coefficients enter the score."""

from treesens.extensions.formats.numbers.boosters import read_linear
from treesens.extensions.formats.numbers.closing import close_over
from treesens.extensions.formats.numbers.tables import closed_over

__all__ = ["close_over", "closed_over", "read_linear"]
