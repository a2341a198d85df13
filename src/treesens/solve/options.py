"""The options of a question: backend, pipeline, limits, tolerances, second opinions, and known results.

Options are declared only here. The commands `check`, `compare` and `sweep`, the Python calls, SPEC files, journal keys and
worker messages are generated from these declarations (docs/adr/0039).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

from treesens.compiler.base.budget import Budget, StopEvent
from treesens.compiler.base.option_kinds import (
    Bytes,
    Choice,
    Door,
    Flag,
    Number,
    Option,
    OutputPath,
    Passes,
    Seconds,
    Solver,
    Whole,
    given,
)  # fmt: skip
from treesens.compiler.base.tolerance import RELATIVE, Tolerance

if TYPE_CHECKING:
    from treesens.compiler.base.arrays import FloatArray, Int32Array
    from treesens.compiler.model.evaluate import LibraryReplay

Replay: TypeAlias = Literal["auto", "emulated", "library"]

EVERYWHERE = Door.COMMAND | Door.PYTHON | Door.COMPARE | Door.SWEEP | Door.SPEC | Door.MODULE
"""All commands and calls that answer questions."""

BACKEND = Option(
    Solver(), "auto or the name of a solver (see doctor).", short="-b", door=EVERYWHERE & ~Door.COMPARE,
    more="`auto` is the native engine, with exact solvers racing it.",
)  # fmt: skip # `compare` takes several
PIPELINE = Option(
    Passes(), "A list of passes, and of kant, ensense, independent, bounded and default.", short="-p", door=EVERYWHERE,
    more="[Encodings](encodings.md) lists them; a list is written as `default,order-predicates{by=gain}`.",
)  # fmt: skip
TIME_LIMIT = Option(
    Seconds(), "Seconds for each question.", short="-t", door=EVERYWHERE,
    more="The answer and each requested extra (second opinion, certificates, core, share) get equal parts, and each"
    " step may use the time left over by earlier steps. Reading, compiling and replay are not counted.",
)  # fmt: skip
THREADS = Option(
    Whole(1, 4096), "Threads of one solver.", door=EVERYWHERE & ~Door.SWEEP,
    more="Under `auto`, the native engine and every racing solver use this number.",
)  # fmt: skip
MEMORY_LIMIT = Option(Bytes(), "Memory per solver process (megabytes; bytes in Python).", door=EVERYWHERE & ~Door.SWEEP)
SEED = Option(Whole(0, 2**31 - 1), None, door=EVERYWHERE)
REPLAY = Option(
    Choice(("auto", "emulated", "library"), old=(("native", "library"),)),
    "Replay witnesses in the library's arithmetic, or in the library itself.",
    door=EVERYWHERE & ~Door.MODULE,
    more="`auto` is the library if the library is imported already.",
)
TOLERANCE = Option(Number(0.0, 1.0), "The relative gap at which an optimum counts as proved.", door=EVERYWHERE)
ABSOLUTE = Option(Number(0.0, 1e300), "The same gap in the units of the objective.", door=EVERYWHERE)
OPTIMAL = Option(
    Flag(), "Optima to the last unit: both tolerances are 0.", door=Door.COMMAND | Door.COMPARE | Door.MODULE
)
CONFIRM = Option(
    Solver(also=("library",)),
    "Run this backend too; its proof upgrades the answer, and a contradiction is an error. `library`: a `none` must hold "
    "however the library rounds.",
    metavar="BACKEND|library",
    more="This backend runs without the engine's help. See [proof classes](semantics.md#proof-classes).",
)
CHECK_EACH = Option(
    Solver(also=("brute",)),
    "Prove by this solver (auto: cpsat, z3; brute: by enumeration) that every pass of the pipeline is right on each module.",
    metavar="BACKEND",
    door=Door.COMMAND,
    more="Passes of plug-ins are always checked. See [validation](extending.md#validation).",
)
REPRODUCER = Option(
    OutputPath(folder=True),
    "A folder for the input of a pass that fails (default: that of temporary files).",
    metavar="DIR",
    door=Door.COMMAND,
)
CORE = Option(Flag(), "Name the constraints that clash for every none; needs further searches.")
CERTIFICATE = Option(
    OutputPath(folder=True, made_by="certificates"),
    "A folder for certificates of the answers, which can be checked independently (docs/certificates.md).",
    name="certificate",
    door=Door.COMMAND | Door.SWEEP | Door.NAMED,
    last=True,
)
REQUIRE = Option(
    Flag(),
    "Claims whose proof lacks an accepted certificate become unknown.",
    door=Door.COMMAND | Door.SWEEP,
    last=True,
    more="Bounds, shares and cores without a certificate are left out, and so are regions and nearest rows.",
)
REGIONS = Option(
    Flag(), "Compute witness regions even if tables need none; only records show these regions.", door=Door.NAMED
)


class CallOptions(TypedDict, total=False):
    """The options of a Python call that answers questions, such as `treesens.check`; `regions` is for sessions."""

    backend: str
    pipeline: str
    time_limit: float
    threads: int
    memory_limit: int | None
    seed: int
    tolerance: float
    absolute_tolerance: float
    replay: Replay
    confirm: str | None
    core: bool
    regions: bool
    certificates: str | Path | None


@dataclass(frozen=True)
class Options:
    """The options of a question. Times are in seconds, memory is in bytes.

    An optimum may differ from its bound by `tolerance` of its value, or by `absolute_tolerance`; if both are 0, value and bound
    must be equal, and `optimal` sets both to 0. `library_predict` holds the library's own predict per model, for replay.
    """

    backend: str = given(BACKEND, "auto")
    pipeline: str = given(PIPELINE, "default")
    time_limit: float = given(TIME_LIMIT, 60.0)
    threads: int = given(THREADS, 1)
    memory_limit: int | None = given(MEMORY_LIMIT, None)
    seed: int = given(SEED, 0)
    tolerance: float = given(TOLERANCE, RELATIVE)
    absolute_tolerance: float = given(ABSOLUTE, 0.0)
    optimal: bool = given(OPTIMAL, False)
    replay: str = given(REPLAY, "auto")
    confirm: str | None = given(CONFIRM, None)
    core: bool = given(CORE, False)
    check_each: str | None = given(CHECK_EACH, None)
    reproducer: Path | None = given(REPRODUCER, None)
    regions: bool = given(REGIONS, True)
    certificates: Path | None = given(CERTIFICATE, None)
    require_certificate: bool = given(REQUIRE, False)
    library_predict: Sequence[LibraryReplay] | None = None
    near: FloatArray | None = None
    hints: Int32Array | None = None
    verify_each: bool = False
    watch: bool = False
    """Record bound and incumbent over time (`Attempt.trajectory`)."""
    log: Path | None = None
    """The file of the solver's own log."""

    def __post_init__(self) -> None:
        from treesens.backends.base import BACKENDS

        object.__setattr__(self, "backend", BACKENDS.canonical(self.backend))
        if self.optimal:
            for name in ("tolerance", "absolute_tolerance"):
                object.__setattr__(self, name, 0.0)
            object.__setattr__(self, "optimal", False)

    def budget(self, stop: StopEvent | None = None, *, spent: float = 0.0) -> Budget:
        """The budget of one question, for all work on it; `spent` seconds are already used.

        The budget is created once per question and passed on, so that no step restarts the time limit.
        """
        return Budget.of(max(0.0, self.time_limit - spent), stop)

    @property
    def uncertified(self) -> Options:
        """The same options without certificates, for a question that is a step towards the answer to another question."""
        return replace(self, certificates=None, require_certificate=False)

    @property
    def closeness(self) -> Tolerance:
        """The relative and the absolute tolerance."""
        return Tolerance(self.tolerance, self.absolute_tolerance)

    def asking_for(self, closeness: Tolerance) -> Options:
        """The same options with another tolerance."""
        return replace(self, tolerance=closeness.relative, absolute_tolerance=closeness.absolute)


class EngineOptions(TypedDict):
    """The named options of a search of the native engine."""

    hints: Int32Array | None
    seed: int
    memory_limit: int | None
    verify_each: bool


def for_engine(options: Options) -> EngineOptions:
    """The options that `IncrementalSearch` accepts."""
    return {
        "hints": options.hints,
        "seed": options.seed,
        "memory_limit": options.memory_limit,
        "verify_each": options.verify_each,
    }
