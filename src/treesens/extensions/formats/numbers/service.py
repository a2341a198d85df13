"""The service "numbers": the core's entry point for models in which a number enters the score with a coefficient."""

from treesens.extensions.formats.numbers.boosters import read_linear
from treesens.extensions.formats.numbers.closing import close_over
from treesens.extensions.formats.numbers.tables import closed_over

__all__ = ["close_over", "closed_over", "read_linear"]
