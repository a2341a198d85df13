"""The service "answers": entry points through which the core solves questions by many subquestions."""

from treesens.extensions.answers.explained import explained
from treesens.extensions.answers.nearest_pair import distance_of
from treesens.extensions.answers.reason_words import reason_words
from treesens.extensions.answers.row_counts import count_rows
from treesens.extensions.answers.top import answer_top

__all__ = ["answer_top", "count_rows", "distance_of", "explained", "reason_words"]
