"""All methods for answering questions, in the order in which they are tried.

Only this list determines when a method is tried, and for how long. docs/solving.md is generated from this list;
`solve/question.py` uses it.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from treesens.builtin import METHODS as EXTRA
from treesens.builtin import has_extensions
from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.base.plugins import Registry
from treesens.compiler.query.cases import MOST_CASES
from treesens.compiler.query.probabilities import names_probabilities
from treesens.compiler.query.query import Query
from treesens.errors import UsageError
from treesens.solve import fits
from treesens.solve.method import Method, Stage
from treesens.solve.options import Options

METHODS: Final = (
    Method(
        name="contradiction",
        questions="constraints on one sum (on the tree path, also on one score of two points) that contradict each other",
        fits=lambda query, _: fits.contradicts_itself(query),
        proves="`none`",
        run="treesens.solve.methods.steps:state_contradiction",
        stage=Stage.STEP,
        always=True,
    ),
    Method(
        name="best probability",
        questions="the best sum of probabilities that is not linear in scores",
        fits=lambda query, _: fits.wants_probability(query),
        proves="verdict and bound, by successive decisions about single values; for a single probability, by its score",
        run="treesens.solve.methods.best_probability:search_best_probability",
        always=True,
    ),
    Method(
        name="brief search, disjunction",
        questions=f"a disjunction of at most {MOST_CASES} alternatives, on the engine",
        fits=lambda query, options: fits.by_engine(options) and fits.has_cases(query),
        proves="facts proved by the searches below: the first search that fits is used",
        run="treesens.solve.methods.steps:search_briefly",
        stage=Stage.STEP,
        share=0.5,
        most=2.0,
    ),
    Method(
        name="cases",
        questions="the same questions, if still open",
        fits=lambda query, options: fits.by_engine(options) and fits.has_cases(query),
        proves="verdict and optimum, from the answers to one question per alternative; these questions share the time",
        run="treesens.solve.methods.steps:search_cases",
        stage=Stage.STEP,
        share=0.5,
    ),
    Method(
        name="probability rows",
        questions="sums of probabilities that are not linear in scores",
        fits=lambda query, _: names_probabilities(query.constraints),
        proves="verdict and bound, by linear questions without these sums, tightened by each wrong candidate",
        run="treesens.solve.methods.probability_rows:search_probabilities",
        always=True,
    ),
    Method(
        name="any answer",
        questions="on the tree path, objectives over values if cells decide the constraints",
        fits=lambda query, options: fits.on_trees(options) and fits.is_plain_but_for_values(query),
        proves="verdict, from the question without its objective; the searches below start from the answer",
        run="treesens.solve.methods.steps:search_any_answer",
        stage=Stage.STEP,
        share=1 / 8,
    ),
    Method(
        name="refinement",
        questions="relations between values inside cells, and objectives over values",
        fits=lambda query, _: fits.needs_refinement(query),
        proves="verdict and bound, by searches over cells that exclude cells without fitting values",
        run="treesens.solve.methods.refine:search_refined",
        always=True,
    ),
    Method(
        name="trees, large model",
        questions=f"scores of models with at least {fits.MANY_LEAVES:,} leaves",
        fits=lambda query, options: fits.on_trees(options) and fits.is_large(query),
        proves="exact verdict, value and bound; nothing is compiled",
        run="treesens.solve.methods.trees:search_trees",
        stage=Stage.CELLS,
    ),
    Method(
        name="trees, typical inputs",
        questions="inputs that are typical of a table, without an objective",
        fits=lambda query, options: _decides_on_trees(query, options) and fits.names_forests(query),
        proves="verdict, exactly; nothing is compiled",
        run="treesens.solve.methods.trees:search_trees",
        stage=Stage.CELLS,
        share=2 / 3,  # the compiled path takes several times as long for the same
    ),
    Method(
        name="trees",
        questions="scores, without an objective",
        fits=lambda query, options: _decides_on_trees(query, options) and not fits.names_forests(query),
        proves="verdict, exactly; nothing is compiled",
        run="treesens.solve.methods.trees:search_trees",
        stage=Stage.CELLS,
        share=1 / 8,
        most=1.0,
        per_leaf=2e-5,  # roughly the time the compiled path needs to start
    ),
    Method(
        name="compiled",
        questions="every question",
        fits=lambda *_: True,
        proves="what the backend proves: one backend, or a race of the engine and the solvers (`auto`)",
        run="treesens.solve.methods.portfolio:search_compiled",
        stage=Stage.CELLS,
        always=True,
    ),
)

PLUGINS: Final = Registry(
    kind="method",
    group="treesens.methods",
    builtin={**dict.fromkeys((method.name for method in METHODS), ""), **(EXTRA if has_extensions() else {})},
    error=UsageError,
)
"""The methods of extensions and plug-ins, each a `Method`."""


@cache
def all_methods() -> tuple[Method, ...]:
    """All methods in their order: built-in methods, with each plug-in method before the method that it names.

    Raises UsageError if a plug-in cannot be imported, or refers to an unknown built-in method.
    """
    listed = list(METHODS)
    for name in PLUGINS.names()[len(METHODS) :]:
        added: Method = PLUGINS.get(name)
        places = [number for number, method in enumerate(listed) if method.name == added.before]
        if not places:
            raise UsageError(
                f"the plug-in method `{name}` of {PLUGINS.owner(name)} comes before `{added.before}`, which is unknown",
                remedy=did_you_mean(added.before, [method.name for method in METHODS]),
            )
        listed.insert(places[0], added)
    return tuple(listed)


def searches() -> tuple[Method, ...]:
    """The methods of one search, without the steps that precede a search."""
    return tuple(method for method in all_methods() if method.stage is not Stage.STEP)


def cell_searches() -> tuple[Method, ...]:
    """The methods of one search over cells alone."""
    return tuple(method for method in all_methods() if method.stage is Stage.CELLS)


def _decides_on_trees(query: Query, options: Options) -> bool:
    return fits.on_trees(options) and query.objective is None and not fits.is_large(query)
