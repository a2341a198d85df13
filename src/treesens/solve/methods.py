"""All methods that answer a question, in the order in which they are asked, and the loop that asks them.

A method tells a result that `conclude` has judged, and `combine` joins it with what is known. This list alone says which method
is asked when, and for how long. docs/solving.md is made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from treesens.compiler.base.budget import Budget
from treesens.compiler.query.cases import MOST_CASES, too_many_to_split
from treesens.compiler.query.probabilities import names_probabilities
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result
from treesens.errors import InternalError
from treesens.solve import fits
from treesens.solve.bounds import CLOSE, left_open
from treesens.solve.combine import combine
from treesens.solve.method import Asked, Method, Stage
from treesens.solve.options import Options
from treesens.values.contradictions import without_clashes
from treesens.values.witness import Witness

METHODS: Final = (
    Method(
        name="reason",
        questions="`explain row`",
        fits=lambda query, _: query.explained is not None,
        proves="that the named features decide the class of the row, or that they do not",
        run="explain_row:search_reason",
        always=True,
    ),
    Method(
        name="contradiction",
        questions="constraints on one sum that contradict each other",
        fits=lambda query, _: fits.contradicts_itself(query),
        proves="`none`",
        run="steps:state_contradiction",
        stage=Stage.STEP,
        always=True,
    ),
    Method(
        name="brief search, small domain",
        questions=f"domains of at most {fits.MOST_COMBINATIONS:,} combinations of cells, asked of the engine",
        fits=lambda query, options: fits.by_engine(options) and fits.is_small(query),
        proves="what the searches below prove: the first that fits is asked",
        run="steps:search_briefly",
        stage=Stage.STEP,
        share=0.5,
        most=0.2,
        to_the_last_unit=True,
    ),
    Method(
        name="combinations",
        questions="the same, if something is open",
        fits=lambda query, options: fits.by_engine(options) and fits.is_small(query),
        proves="verdict and optimum, by trying every combination of cells (Z3 decides values inside them)",
        run="enumerate_rows:search_combinations",
        stage=Stage.STEP,
        takes_over=True,
    ),
    Method(
        name="brief search, disjunction",
        questions=f"a disjunction of at most {MOST_CASES} alternatives, asked of the engine",
        fits=lambda query, options: fits.by_engine(options) and fits.has_cases(query),
        proves="what the searches below prove: the first that fits is asked",
        run="steps:search_briefly",
        stage=Stage.STEP,
        share=0.5,
        most=2.0,
    ),
    Method(
        name="cases",
        questions="the same, if something is open",
        fits=lambda query, options: fits.by_engine(options) and fits.has_cases(query),
        proves="verdict and optimum, from the answers to one question per alternative, which share the time",
        run="cases:search_cases",
        stage=Stage.STEP,
        share=0.5,
    ),
    Method(
        name="probability rows",
        questions="sums of probabilities that are not linear in scores",
        fits=lambda query, _: names_probabilities(query.constraints),
        proves="verdict and bound, by linear questions without these sums that get tighter with each wrong candidate",
        run="probabilities:search_probabilities",
        always=True,
    ),
    Method(
        name="nearest pair",
        questions="the least distance to the nearest row of a table",
        fits=lambda query, _: fits.names_rows(query),
        proves="verdict and bound, by branch and bound over groups of rows",
        run="nearest_pair:search_nearest",
        always=True,
    ),
    Method(
        name="cheapest cells",
        questions="the least l0, l1 or l2 distance from a row, on the trees",
        fits=lambda query, options: fits.on_trees(options) and fits.is_cheapest(query),
        proves="verdict and bound, exactly; half a second if scores are rounded for the engine",
        run="cheapest:search_cheapest",
        share=0.9,  # the rest is for what it leaves open
    ),
    Method(
        name="least radius",
        questions="the least linf distance from a row",
        fits=lambda query, options: fits.by_engine(options) and fits.is_radius(query),
        proves="verdict and bound, exactly: below this radius there is no answer",
        run="radius:search_radius",
        share=0.9,  # the rest is for what it leaves open
    ),
    Method(
        name="refinement",
        questions="relations between values inside cells, and objectives over values",
        fits=lambda query, _: fits.needs_refinement(query),
        proves="verdict and bound, by searches over cells that exclude cells without fitting values",
        run="refine:search_refined",
        always=True,
    ),
    Method(
        name="attainable sums",
        questions="one or two bounds on scores of trees that fall apart into groups without a common feature",
        fits=lambda query, options: fits.on_trees(options) and fits.may_be_additive(query),
        proves="verdict, exactly, if the leaves are multiples of one number and the sums fit into a table",
        run="attainable_sums:search_sums",
        stage=Stage.CELLS,
        share=0.5,
    ),
    Method(
        name="trees, large model",
        questions=f"scores of models with at least {fits.MANY_LEAVES:,} leaves",
        fits=lambda query, options: fits.on_trees(options) and fits.is_large(query),
        proves="verdict, value and bound, exactly; nothing is compiled",
        run="direct:search_trees",
        stage=Stage.CELLS,
    ),
    Method(
        name="trees, typical inputs",
        questions="inputs that are typical of a table, without an objective",
        fits=lambda query, options: _decides_on_trees(query, options) and fits.names_forests(query),
        proves="verdict, exactly; nothing is compiled",
        run="direct:search_trees",
        stage=Stage.CELLS,
        share=2 / 3,  # the way through the IR takes several times as long for the same
    ),
    Method(
        name="trees",
        questions="scores, without an objective",
        fits=lambda query, options: _decides_on_trees(query, options) and not fits.names_forests(query),
        proves="verdict, exactly; nothing is compiled",
        run="direct:search_trees",
        stage=Stage.CELLS,
        share=1 / 8,
        most=1.0,
        per_leaf=2e-5,  # about what the way through the IR takes until it can begin
    ),
    Method(
        name="compiled",
        questions="every question",
        fits=lambda *_: True,
        proves="what the backend proves: one backend, or a race of the engine and the solvers (`auto`)",
        run="portfolio:search_compiled",
        stage=Stage.CELLS,
        always=True,
    ),
)

UNSPLIT: Final = "E502"
"""The code of the note on a disjunction that is too long to split."""

SEARCHES: Final = tuple(method for method in METHODS if method.stage is not Stage.STEP)
"""One search of what is asked, without the steps before."""
CELL_SEARCHES: Final = tuple(method for method in METHODS if method.stage is Stage.CELLS)
"""One search over cells alone."""


def _decides_on_trees(query: Query, options: Options) -> bool:
    return fits.on_trees(options) and query.objective is None and not fits.is_large(query)


def ask_methods(asked: Asked, budget: Budget, methods: Sequence[Method] = METHODS) -> Result:
    """Asks the methods that fit, in their order, until the question is closed; each goes on from what is known."""
    for method in methods:
        if not method.fits(asked.query, asked.options):
            continue
        result: Result | None = method.function()(asked, method.part(asked.query, budget))
        if result is None:
            continue
        known = result if asked.known is None or method.takes_over else combine(asked.known, result)
        if method.stage is not Stage.STEP or _settles(method, known, asked.options, budget):
            return known
        asked = replace(asked, known=known)
    raise InternalError(f"no method has answered `{asked.query.name}`", remedy="please report this with the file")


def _settles(method: Method, known: Result, options: Options, budget: Budget) -> bool:
    if method.to_the_last_unit:
        return not left_open(known)
    return budget.over or not left_open(known, CLOSE, options.closeness)


def search_cells(
    query: Query,
    options: Options,
    budget: Budget,
    *,
    on_better: Callable[[Witness], None] | None = None,
) -> Result:
    """One search over cells; `refuted` says which candidates failed for want of values."""

    def ask(*_: object, **__: object) -> Result:
        raise InternalError("a search over cells asks no other question", remedy="please report this with the file")

    return ask_methods(Asked(query, options, ask, on_better), budget, CELL_SEARCHES)


def as_asked(query: Query) -> Query:
    """The question as the methods get it: without alternatives that cannot hold."""
    return query if names_probabilities(query.constraints) or query.explained is not None else without_clashes(query)


def note_on_cases(query: Query) -> str | None:
    """What is said of a disjunction that is too long to split; None if there is none."""
    alternatives = too_many_to_split(query)
    if not alternatives:
        return None
    words = f"a disjunction of {alternatives} alternatives is searched as a whole"
    return f"{UNSPLIT}: {words}: at most {MOST_CASES} are split into cases"


def methods_for(query: Query, options: Options) -> list[Method]:
    """The methods that fit a question, in their order, to the first that always has a result."""
    query, found = as_asked(query), list[Method]()
    for method in METHODS:
        if method.fits(query, options):
            found.append(method)
            if method.always:
                break
    return found
