"""Makes certificates of answers: the native engine proves the statement again and records the proof; the checker decides.

Certificates do not depend on the correctness of this module: `verify/src/treesens_verify/core.py` checks its output.
"""

from __future__ import annotations

import json
import lzma
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import treesens.extensions.treesens_verify as checker
from treesens.backends.native.backend import NativeArtifact, NativeBackend
from treesens.backends.native.solver import Solver
from treesens.compiler.base.budget import Budget
from treesens.compiler.base.dyadic import Unit
from treesens.compiler.pipeline import compile_query
from treesens.compiler.query import query as q
from treesens.compiler.query.bounds import LogRational
from treesens.compiler.query.evaluate import form_value, inputs_of
from treesens.compiler.query.values import ValueSum
from treesens.extensions.certify.combined_rows import with_combined_rows
from treesens.extensions.certify.proof_text import Layout, ProofText, layout_of_module, layout_of_trees
from treesens.extensions.certify.short_proofs import (
    BY_SUMS,
    has_small_parts,
    may_be_refuted_by_sums,
    may_clash,
    proof_by_clash,
)
from treesens.extensions.certify.statement import NoCertificate, Statement, learnt_of, model_file, statement_of
from treesens.extensions.certify.sums import with_cell_rows
from treesens.extensions.certify.tree_proof import TreeProof, prove_on_trees
from treesens.extensions.certify.whole import unsaid, whole_of_inputs
from treesens.runtime.kept import Kept, reuse
from treesens.values.relations import better_than
from treesens.values.verify import Witness

if TYPE_CHECKING:
    from treesens._engine import ProofFacts

ByValue: TypeAlias = Literal["no", "alone", "cells"]

SECONDS, LEAST_SECONDS = 60.0, 10.0
"""Seconds for a proof on its own, and the minimum for the proof of a study's answer."""
LARGE, MANY_NODES = 1_000_000, 100
"""Sizes of model files (bytes) and of proofs (nodes) above which proofs without messages are checked with numpy."""
FIRST_SECONDS = 0.5
"""Seconds for the search on trees if a list of sums may be a shorter proof."""


@dataclass(frozen=True)
class Certificate:
    """A certificate that the checker has accepted: the JSON object, and the seconds for making and checking it.

    `files` holds the model files named in the statement.
    """

    document: dict[str, Any]
    files: tuple[bytes, ...]
    produced_in: float
    checked_in: float

    def packed(self) -> bytes:
        """The content of the certificate's file."""
        text = json.dumps(self.document, separators=(",", ":"), allow_nan=False).encode()
        # Clearing the preset's 8 MB dictionary takes longer than compressing most certificates.
        window = min(max(1 << len(text).bit_length(), 1 << 12), 1 << 23)
        return lzma.compress(text, filters=[{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": window}])


def proof_budget(seconds: float) -> Budget:
    """The budget for the proof of one claim of a study: the `seconds` of its answer, but at least `LEAST_SECONDS`."""
    return Budget.of(max(seconds, LEAST_SECONDS))


def refutation(
    query: q.Query,
    extra: tuple[q.AtLeast, ...] = (),
    *,
    budget: Budget | None = None,
    check: bool = True,
    own_grids: bool = False,
) -> Certificate:
    """A certificate that no inputs satisfy the question and the `extra` rows. Raises NoCertificate if no certificate is found.

    The default budget is a minute. With `check=False`, the caller checks the proof. `own_grids` is as for `statement_of`.
    """
    start = time.perf_counter()
    statement = statement_of(query, extra, own_grids=own_grids)
    if statement.left_out:
        statement = statement_of(with_cell_rows(query), extra, own_grids=own_grids)
    document = _document(statement, query, "none")
    budget = budget or Budget.of(SECONDS)
    if may_clash(statement):
        clash = proof_by_clash(statement, _problem(statement))
        if clash is not None:
            return _finished(document | clash, statement.files, start, check)
    additive = may_be_refuted_by_sums(statement)
    try:
        proof = _prove_on_trees(statement, min(FIRST_SECONDS, budget.left()) if additive else budget.left())
        if proof is not None:
            return _finished(document | proof, statement.files, start, check)
    except NoCertificate:
        pass  # the compiled question has fewer cells and trees, and perhaps a shorter proof
    if additive and has_small_parts(_problem(statement)):
        try:
            return _checked(document | BY_SUMS, statement.files, start)
        except NoCertificate:
            pass  # the omitted parts may be needed
    try:
        return _finished(
            document | _prove_compiled(statement, _problem(statement), budget.left()), statement.files, start, check
        )
    except NoCertificate:
        more = with_combined_rows(with_cell_rows(query), _said_by_objective(query, extra))
        if more is None:
            raise
    statement = statement_of(more, extra, own_grids=own_grids)
    document = _document(statement, query, "none")
    return _finished(
        document | _prove_compiled(statement, _problem(statement), budget.left()), statement.files, start, check
    )


def _said_by_objective(query: q.Query, extra: tuple[q.AtLeast, ...]) -> list[ValueSum]:
    """For each row from `beyond`: the relation stating that an objective over values is beyond the row's limit."""
    goal = query.objective
    if goal is None or not goal.values or goal.form.pairs or goal.form.scores or goal.largest:
        return []
    sign = -1 if goal.maximize else 1
    terms = tuple(replace(term, factor=sign * term.factor) for term in goal.values)
    limits = (-sign * (row.bound.rational - _slack(goal)) for row in extra if row.name == "objective")
    return [ValueSum(terms, sign * limit, strict=True, name="objective") for limit in limits]


def _finished(document: dict[str, Any], files: tuple[bytes, ...], start: float, check: bool) -> Certificate:
    if check:
        return _checked(document, files, start)
    return Certificate(document, files, time.perf_counter() - start, 0.0)


def existence(
    query: q.Query, witness: Witness, extra: tuple[q.AtLeast, ...] = (), *, by_value: ByValue = "no"
) -> Certificate:
    """A certificate of a found pair that satisfies the `extra` rows. Raises NoCertificate if none is possible. `by_value`
    selects the check of constraints that the statement would omit: `no`, with bounds of single `cells`, or by values `alone`.
    """
    start = time.perf_counter()
    statement = statement_of(query, extra)
    if statement.left_out:
        reasons = statement.left_out if by_value == "no" else unsaid(query)
        if reasons:
            raise NoCertificate(f"the format cannot express {' or '.join(dict.fromkeys(reasons))}")
        whole = whole_of_inputs(query, extra, in_cells=by_value == "cells", answer=witness)
        text = whole.pop("statement") | {"further": whole}
        named = [*(m.ensemble for m in query.models), *(forest.ensemble for forest in learnt_of(query, extra))]
        statement = replace(statement, text=text, files=tuple(model_file(e)[1] for e in named), left_out=[])
    values = [[None if math.isnan(x) else float(x) for x in point] for point in witness.values]
    return _checked(_document(statement, query, "found") | {"inputs": values}, statement.files, start)


def bound(query: q.Query, limit: float, *, budget: Budget | None = None) -> Certificate:
    """A certificate that no answer to the question has an objective beyond `limit`, in units of the objective's form."""
    return refutation(*beyond(query, limit), budget=budget)


def beyond(query: q.Query, limit: float | Fraction) -> tuple[q.Query, tuple[q.AtLeast, ...]]:
    """The question for answers beyond a limit of the objective, with its row. Raises NoCertificate if that is impossible."""
    goal = query.objective
    if goal is None or goal.nearest is not None:
        raise NoCertificate("an objective that one row of costs cannot express")
    if goal.probability is not None:
        beyond_it = better_than(goal, Fraction(limit), strict=True)
        return replace(query, objective=None, constraints=(*query.constraints, beyond_it)), ()
    if goal.largest and goal.reaching is not None:
        # A limit on a maximum norm is a box of cells rather than a sum.
        within = goal.reaching(Fraction(limit))
        return replace(query, objective=None, constraints=(*query.constraints, within)), ()
    if goal.values and goal.form.pairs:
        sign = -1 if goal.maximize else 1
        terms = tuple(replace(term, factor=sign * term.factor) for term in goal.values)
        reaches = ValueSum(terms, sign * (Fraction(limit) * goal.unit + goal.offset), strict=True, name="objective")
        return replace(query, objective=None, constraints=(*query.constraints, reaches)), ()
    level = LogRational(Fraction(limit) * (1 if goal.maximize else -1) + _slack(goal))
    return query, (q.AtLeast(_signed(goal), level, strict=True, name="objective"),)


def _slack(goal: q.Objective) -> Fraction:
    """The slack for the limit of an objective: each cell cost is rounded by less than a unit."""
    return sum((Unit(cost.shift).size for cost in goal.form.costs), Fraction(0)) if goal.values else Fraction(0)


def reached(query: q.Query, witness: Witness, *, by_value: ByValue = "no") -> Certificate:
    """A certificate of an answer that reaches the value of its objective, as in `bound`. `by_value` is as for `existence`."""
    goal = query.objective
    if goal is None or goal.nearest is not None or goal.values or goal.probability is not None:
        return existence(replace(query, objective=None), witness, by_value=by_value)
    form = _signed(goal)
    value = LogRational(form_value(form, inputs_of(query, witness.values)))
    return existence(query, witness, (q.AtLeast(form, value, name="objective"),), by_value=by_value)


def _signed(goal: q.Objective) -> q.LinearForm:
    """The form to maximise."""
    form = goal.form
    if goal.maximize or form.pairs or form.levels:
        return form  # `statement_of` refuses forms of pairs and levels by name
    return form.negative()


def _document(statement: Statement, query: q.Query, claim: str) -> dict[str, Any]:
    return {
        "format": "treesens-certificate",
        "version": 1,
        "claim": claim,
        "statement": statement.text,
        "about": {"question": query.name, "text": query.text, "left_out": list(dict.fromkeys(statement.left_out))},
    }


def _checked(document: dict[str, Any], files: tuple[bytes, ...], start: float) -> Certificate:
    middle = time.perf_counter()
    try:
        # The question is about these trees, whatever their file is; users of the checker name the allowed models.
        _checker_for(document, files)(document, files, read_stated, first_trees=True, trees_alone=True)
    except checker.Rejected as reason:
        raise NoCertificate(f"the checker does not accept the certificate: {reason}") from None
    return Certificate(document, files, middle - start, time.perf_counter() - middle)


def _checker_for(document: dict[str, Any], files: tuple[bytes, ...]) -> Callable[..., Any]:
    """The checker; with numpy for long proofs without messages and for large models, which would take minutes otherwise."""
    nodes = document.get("nodes", ())
    large = len(nodes) >= MANY_NODES or sum(map(len, files)) >= LARGE
    if not nodes or not large or any(len(node) == 3 and node[2] for node in nodes):
        return checker.check  # type: ignore[no-any-return]
    from treesens.extensions.treesens_verify import boxes

    return boxes.check  # type: ignore[no-any-return]


def _problem(statement: Statement) -> checker.Problem:
    """The checker's own view of the statement: cells, variables, factors and units of rows."""
    try:
        models = [read_stated(data, m) for data, m in zip(statement.files, statement.text["models"], strict=True)]
        return checker.Problem(statement.text, models)
    except checker.Rejected as reason:
        raise NoCertificate(f"the checker cannot read the model: {reason}") from None


def read_stated(data: bytes, stated: dict[str, Any]) -> Any:
    """The checker's view of a model; made once and reused for all certificates of the model."""
    name, trees, base = stated["format"], stated["trees"], list(stated["base"])

    def read() -> tuple[Any, int]:
        return checker.read_model(data, {"format": name, "trees": trees, "base": base}), len(data)

    return _READ.of((), (data, name, trees, tuple(base)), read)[0]


_READ: Kept[tuple[Any, int]] = Kept(8, lambda made: made[1])


def _prove_on_trees(statement: Statement, seconds: float) -> dict[str, Any] | None:
    """The proof for a question about scores alone, from the search that decided the question; None for other questions."""
    proof = prove_on_trees(statement.query, seconds)
    return None if proof is None else _text_on_trees(proof, statement)


def _text_on_trees(proof: TreeProof, statement: Statement) -> dict[str, Any]:
    if proof.found is None:
        weights = [int(r == proof.failing_row) for r in range(len(statement.rows))]
        return {"apart": [], "nodes": [[weights, 0, []] if proof.failing_row >= 0 else []]}
    return _text(proof.found, layout_of_trees(proof), _problem(statement), statement)


def _text(found: ProofFacts, layout: Layout, problem: checker.Problem, statement: Statement) -> dict[str, Any]:
    if not found["complete"]:
        raise NoCertificate(f"the proof is not complete: {found['reason']}")
    return ProofText(layout, problem, statement).document(found)


def _prove_compiled(statement: Statement, problem: checker.Problem, seconds: float) -> dict[str, Any]:
    module = compile_query(statement.query, "native").module
    if module.contradictory:
        return _without_messages(problem)
    artifact = reuse(module, (NativeBackend.name,), lambda: NativeBackend().emit(module))
    assert isinstance(artifact, NativeArtifact)
    if artifact.adapted is None or artifact.merged is None:
        return _without_messages(problem)
    found = Solver(artifact.adapted.problem, mode="decide").certify(seconds)
    return _text(found, layout_of_module(artifact.merged, artifact.adapted.row_dropped, statement), problem, statement)


def _without_messages(problem: checker.Problem) -> dict[str, Any]:
    """The leaf for a contradiction that the compiler detects in the domain and clauses alone, or in a single row."""
    if not problem.propagate(list(problem.domain)):
        return {"apart": [], "nodes": [[]]}
    count = len(problem.constant)
    for row in range(count):
        leaf = [[int(r == row) for r in range(count)], 0, []]
        try:
            checker.Proof(problem).check([leaf])
        except checker.Rejected:
            continue
        return {"apart": [], "nodes": [leaf]}
    raise NoCertificate("the contradiction is neither in the domain nor in a single row")
