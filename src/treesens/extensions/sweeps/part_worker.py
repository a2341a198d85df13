"""One part of a question in a worker: is there an answer in it, perhaps a better one than is known; or its certificate."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from fractions import Fraction

from treesens.compiler.base.budget import Budget
from treesens.compiler.query.query import AtLeast, Query
from treesens.compiler.result import Result
from treesens.errors import told
from treesens.extensions.certify.produce import beyond, refutation
from treesens.extensions.certify.statement import NoCertificate
from treesens.extensions.sweeps.parts import Part, within
from treesens.solve.options import Options
from treesens.solve.question import answer


@dataclass(frozen=True)
class PartTask:
    """`beyond` is what an objective has to be better than, as its form counts it; None if there is no objective, or none known.
    With `certify` the certificate is wanted that the part has no answer.
    """

    part: Part
    beyond: Fraction | None = None
    certify: bool = False


@dataclass(frozen=True)
class Packed:
    """A certificate as it travels, or the reason why there is none; times in seconds."""

    content: bytes = b""
    reason: str = ""
    left_out: tuple[str, ...] = ()
    produced_in: float = 0.0
    checked_in: float = 0.0

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


def part_of(query: Query, task: PartTask) -> tuple[Query, tuple[AtLeast, ...]]:
    """The question about a part, and the row that asks for more than is known."""
    bare, rows = (replace(query, objective=None), ()) if task.beyond is None else beyond(query, task.beyond)
    return within(replace(bare, objective=None), task.part), rows


def answer_part(query: Query, task: PartTask, options: Options, budget: Budget) -> Result:
    """Whether a part has an answer."""
    asked, rows = part_of(query, task)
    return answer(replace(asked, constraints=(*asked.constraints, *rows)), options, budget)


def certify_part(query: Query, task: PartTask, budget: Budget) -> Packed:
    """The certificate that a part has no answer."""
    asked, rows = part_of(query, task)
    try:
        made = refutation(asked, rows, budget=budget)
    except NoCertificate as reason:
        return Packed(reason=str(reason))
    except Exception as error:  # noqa: BLE001 - every kind of error becomes a typed one here
        failed = told(error, f"a certificate for a part of {query.name}")
        return Packed(reason=f"error[{failed.code}]: certificate: {failed.message}")
    left_out = tuple(made.document["about"]["left_out"])
    return Packed(made.packed(), "", left_out, made.produced_in, made.checked_in)
