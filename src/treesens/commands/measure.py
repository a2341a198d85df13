"""Measurements in `compare` and `bench`: several runs with seeds and logs, and the facts about runs in records and tables."""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from treesens.commands.common import Whole, reads, split
from treesens.commands.emit import file_name
from treesens.commands.outputs import OutputFile
from treesens.errors import UsageError

if TYPE_CHECKING:
    from treesens.compiler.result import Moment, Result
    from treesens.solve.options import Options

Function = TypeVar("Function", bound=Callable[..., Any])
COUNTS = ("nodes", "branches", "conflicts", "decisions")
"""Statistics that count the work of a search. A table shows the first one that the solver reports."""
_LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True)
class Runs:
    """The runs of one question on one backend and pipeline, `repeat` per seed; `logs` is the folder of the solvers' logs."""

    repeat: int = 1
    seeds: tuple[int, ...] = ()
    logs: Path | None = None

    def seeds_or(self, seed: int) -> tuple[int, ...]:
        return self.seeds or (seed,)

    def log(self, question: str, options: Options, number: int) -> Path | None:
        """The new log file of one run; None without a folder, and under `auto`, whose solvers would share the file."""
        if self.logs is None or options.backend == "auto":
            return None
        parts = (question, options.backend, options.pipeline, f"seed{options.seed}", f"run{number}")
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]  # several texts may become the same letters
        shown = "-".join(file_name(part).encode("ascii", "ignore").decode()[:40] for part in parts)
        path = self.logs.absolute() / f"{shown}-{digest}.log"
        path.unlink(missing_ok=True)
        return path


ONE_RUN = Runs()


def measure_options(function: Function) -> Function:
    """Adds `--repeat`, `--seeds` and `--logs` to a command, which receives them as `runs`."""

    @functools.wraps(function)
    def measured(*args: Any, repeat: int, seeds: tuple[int, ...], logs: Path | None, **given: Any) -> Any:
        context = click.get_current_context()
        if seeds and context.get_parameter_source("seed") is not ParameterSource.DEFAULT:
            raise UsageError("--seed and --seeds in one command", remedy="omit --seed")
        return function(*args, runs=Runs(repeat, seeds, logs), **given)

    each = click.option("--repeat", type=Whole(min=1), default=1, show_default=True, help="Runs per seed.")
    seeds = click.option(
        "--seeds", callback=reads(_seeds), metavar="N,N,…", help="Seeds; one run each, in place of --seed."
    )
    logs = click.option(
        "--logs", type=OutputFile(folder=True), help="A folder for the solvers' own logs, a file per run."
    )
    return cast(Function, each(seeds(logs(measured))))


def _seeds(text: str | None) -> tuple[int, ...]:
    parts = split(text)
    for part in parts:
        if not (part.isascii() and part.isdigit() and len(part) <= 10 and int(part) <= _LARGEST_SEED):
            raise UsageError(
                f"`{part[:40]}` is not a seed", remedy=f"write integers from 0 to {_LARGEST_SEED}, as in 0,1,2"
            )
    return tuple(dict.fromkeys(map(int, parts)))


def run_facts(result: Result, seed: int, number: int) -> dict[str, Any]:
    """The fields of a run in records. `search` contains the counts that the solver reports; `trajectory` contains moments as
    [seconds, bound, incumbent]. Both are null if unknown, and so is the trajectory of solvers that run at once (`auto`).
    """
    search = Counter[str]()
    moments: list[Moment] = []
    before = 0.0
    for attempt in result.attempts:
        search.update({name: int(attempt.statistics[name]) for name in COUNTS if name in attempt.statistics})
        moments += [(round(before + at, 6), bound, value) for at, bound, value in attempt.trajectory or ()]
        before += attempt.seconds.get("solve", 0.0)
    one = len({attempt.backend for attempt in result.attempts}) == 1
    return {
        "seed": seed,
        "repetition": number,
        "search": dict(search) or None,
        "trajectory": moments if one and moments else None,
    }


def spread_text(times: Sequence[float]) -> str:
    """The median of the times of several runs, with their range; the time of a single run."""
    middle = f"{median(times):.2f}"
    return middle if len(times) == 1 else f"{middle} ({min(times):.2f}–{max(times):.2f})"


def plotted(records: Sequence[dict[str, Any]]) -> str:
    """Charts as SVG: the decided runs within a time, and the bound over time of every question with an objective."""
    from treesens.report.curves import curves_svg, lines_svg, stacked_svg

    one = {part: len({record[part] for record in records}) < 2 for part in ("pipeline", "seed", "repetition")}

    def name_of(record: dict[str, Any]) -> str:
        return str(record["backend"]) + ("" if one["pipeline"] else f"/{record['pipeline']}")

    times: dict[str, list[float]] = {name_of(record): [] for record in records}
    lines: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for record in records:
        name = name_of(record)
        if record["verdict"] != "unknown":
            times[name].append(record["timings"]["solve"])
        for part, place in (("bound", 1), ("incumbent", 2)):
            moments = [(one[0], one[place]) for one in record["trajectory"] or () if one[place] is not None]
            if moments:
                which = "".join(f", {kind} {record[kind]}" for kind in ("seed", "repetition") if not one[kind])
                lines.setdefault(record["query"], {})[f"{name}{which}: {part}"] = moments
    charts = [curves_svg(times, title="decided runs within a time", across="runs", unit=" s")]
    charts += [
        lines_svg(mine, title=f"{query}: bound and incumbent", across="seconds") for query, mine in lines.items()
    ]
    return stacked_svg(charts)


def work_text(search: Iterable[dict[str, int] | None]) -> str:
    """The median of the first count that the solver reports, for tables."""
    known = [one for one in search if one]
    name = next((name for name in COUNTS if any(name in one for one in known)), None)
    if name is None:
        return ""
    count = f"{int(median(one.get(name, 0) for one in known)):,}"
    return count if name == "nodes" else f"{count} {name}"
