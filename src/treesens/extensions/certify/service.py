"""The service "certificates": the certificates of an answer and of its share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result
from treesens.extensions.certify import answers
from treesens.extensions.certify.claims import claims_of
from treesens.extensions.certify.share_claim import claim_of_share
from treesens.extensions.certify.together import write_manifest
from treesens.solve.methods.probability_rows import lines_of
from treesens.solve.options import Options


def certified(query: Query, result: Result, options: Options, budget: Budget, ask: Callable[..., Result]) -> Result:
    """The result with its certificates, and with the reason for every claim without a certificate."""
    folder, bare = options.certificates, options.uncertified
    assert folder is not None
    if query.explained is None and result.count is None and result.ranked is None:
        return answers.certified(
            query,
            result,
            folder,
            budget=budget,
            lines=lambda asked: lines_of(ask, asked, bare, budget.share(0.5)),
        )
    claims = claims_of(query, result, lambda asked: ask(asked, bare, budget))
    made = write_manifest(claims, folder, query.name, budget=lambda: budget)
    return replace(result, certificates=made.certified())


def certified_share(
    query: Query, result: Result, options: Options, budget: Budget, ask: Callable[..., Result]
) -> Result:
    """The result with the certificates of its share added. If certificates are required, the share is the proved share."""
    folder, share, bare = options.certificates, result.share, options.uncertified
    assert folder is not None
    assert share is not None
    claim, proved = claim_of_share(query, share, lambda asked: ask(asked, bare, budget), budget, folder)
    made = write_manifest([claim], folder, f"{query.name}.share", budget=lambda: budget)
    kept = proved if options.require_certificate and made.complete else share
    return replace(result, share=kept, certificates=(*result.certificates, *made.certified()))
