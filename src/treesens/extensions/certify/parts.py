"""The parts of claims: what a certificate is made of when the claim is written."""

from __future__ import annotations

from treesens.compiler.query.query import Query
from treesens.extensions.certify.answers import Existing, certified_bound, certified_found, certified_none
from treesens.extensions.certify.produce import existence, reached
from treesens.extensions.certify.together import Part
from treesens.values.witness import Witness


def lacking(query: Query) -> Part:
    """That a question has no answer."""
    return Part(query, lambda folder, budget: certified_none(query, folder, budget=budget))


def not_beyond(query: Query, limit: float) -> Part:
    """That no answer has an objective beyond a limit, as its form counts it."""
    return Part(query, lambda folder, budget: certified_bound(query, limit, folder, budget=budget))


def having(query: Query, witness: Witness) -> Part:
    """That a question has this answer; with an objective, that its value is reached."""
    make: Existing = existence if query.objective is None else reached
    return Part(query, lambda folder, _: [certified_found(query, witness, folder, make, by_value="cells")])
