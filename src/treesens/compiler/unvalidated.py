"""The unvalidated plug-in passes on which an answer depends, collected over all searches that contribute to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from treesens.compiler.result import Proof, Result, Verdict, unvalidated

_RESTS: ContextVar[dict[str, None] | None] = ContextVar("rests", default=None)
"""The unvalidated passes on which claims of the current answer, or of a question that it asks, depend."""


@contextmanager
def resting_on() -> Iterator[dict[str, None]]:
    """Collects the unvalidated passes of all searches in a block; an enclosing block collects them, too."""
    mine: dict[str, None] = {}
    outer = _RESTS.get()
    token = _RESTS.set(mine)
    try:
        yield mine
    finally:
        _RESTS.reset(token)
        if outer is not None:
            outer.update(mine)


def rest_on(passes: Iterable[str]) -> None:
    """Adds unvalidated passes to those of the enclosing block."""
    collected = _RESTS.get()
    if collected is not None:
        collected.update(dict.fromkeys(passes))


def marked(result: Result, passes: Iterable[str]) -> Result:
    """The result with a proof that names these unvalidated passes, if it claims more than a verified witness."""
    names = list(passes)
    if not names or not claims_proof(result):
        return result
    parts = dict.fromkeys((*(unvalidated([name]) for name in names), *result.proof_dependencies))
    ranked = result.ranked
    if ranked is not None and ranked.complete:
        ranked = replace(ranked, proof=Proof.UNVALIDATED)
    return replace(result, proof=Proof.UNVALIDATED, proof_dependencies=tuple(parts), ranked=ranked)


def claims_proof(result: Result) -> bool:
    """True if a result claims that some inputs do not exist: a `none`, a bound, or a complete list or count."""
    bounded = result.objective is not None and result.objective.bound is not None
    listed = result.count is not None or result.explanation is not None
    complete = result.ranked is not None and result.ranked.complete
    return result.verdict is Verdict.NONE or (result.verdict is Verdict.FOUND and (bounded or listed or complete))
