"""The service "answers": what the core calls for a question whose answer comes from many questions."""

from treesens.extensions.answers.explained import explained
from treesens.extensions.answers.row_counts import count_rows
from treesens.extensions.answers.top import answer_top

__all__ = ["answer_top", "count_rows", "explained"]
