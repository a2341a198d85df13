"""Runs the paper's experiments, writes records, tables and plots, and says which of its findings the records bear out.

    python -m benchmarks.paper --size small --jobs 2
    python -m benchmarks.paper --size full --only runtime,ablation --limit 60 --budget 36000

Records (JSON lines) are written as answers come; a second run goes on where the first one ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import click
from benchmarks.paper import ablation, multifeature, runtime, scaling
from benchmarks.paper.experiment import Finding, Measured, measure
from benchmarks.paper.models import Plan
from benchmarks.published import FOLDER

from treesens import __version__
from treesens.commands.common import EXPECTED, INTERNAL, INTERRUPTED
from treesens.errors import TreesensError
from treesens.records.installation import machine_facts, package_versions
from treesens.runtime.interruption import interruptible
from treesens.solve.options import Options

ROOT = Path(__file__).resolve().parents[2]
MODULES = {m.NAME: m for m in (runtime, ablation, multifeature, scaling)}
LIMITS = {"tiny": 1.0, "small": 8.0, "full": 60.0}
"""Seconds per question."""
BUDGETS = {"tiny": 600.0, "small": 13 * 60.0, "full": 24 * 3600.0}
"""Seconds for everything that is asked; the rest of a quarter of an hour is training, loading and writing."""
SHARES = {"runtime": 0.26, "ablation": 0.52, "multifeature": 0.13, "scaling": 0.09}
"""Of the budget, per experiment; what one leaves goes to those after it."""


@click.command()
@click.option("--size", type=click.Choice(list(LIMITS)), default="small", show_default=True)
@click.option("--only", default=",".join(MODULES), show_default=True, help="Comma-separated experiments.")
@click.option("--backends", help="Comma-separated backends, of those that an experiment compares.  [default: all]")
@click.option("--limit", type=click.FloatRange(min=0.001), help="Seconds per question.")
@click.option("--budget", type=click.FloatRange(min=0.0), help="Seconds for all experiments together.")
@click.option("--jobs", "-j", type=click.IntRange(min=1), default=1, show_default=True, help="Questions at a time.")
@click.option("--seed", type=int, default=7, show_default=True)
@click.option("--bench", type=click.Path(path_type=Path), default=FOLDER, help="Folder of published models and data.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Folder of everything that is written.")
def main(
    size: str,
    only: str,
    backends: str | None,
    limit: float | None,
    budget: float | None,
    jobs: int,
    seed: int,
    bench: Path,
    output: Path | None,
) -> None:
    """Run the experiments of section 6 of the paper. A second run goes on where the first one ended."""
    names = [name.strip() for name in only.split(",") if name.strip()]
    if unheard := [name for name in names if name not in MODULES]:
        raise click.UsageError(f"no experiment `{unheard[0]}`: choose from {', '.join(MODULES)}")
    folder = output or Path(__file__).resolve().parents[1] / "out" / "paper" / size
    plan = Plan(size, limit or LIMITS[size], seed, bench.resolve(), folder.resolve())
    try:
        chosen = None if backends is None else frozenset(name.strip() for name in backends.split(","))
        sys.exit(perform(plan, names, BUDGETS[size] if budget is None else budget, jobs, chosen))
    except TreesensError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)


def perform(plan: Plan, names: list[str], budget: float, jobs: int, backends: frozenset[str] | None = None) -> int:
    """All chosen experiments in turn, on all their backends or some of them; the exit code. UsageError if none is left."""
    options = Options(time_limit=plan.limit, seed=plan.seed)
    facts = facts_of(plan, options, jobs)
    plan.out.mkdir(parents=True, exist_ok=True)
    done: list[Measured] = []
    findings: list[Finding] = []
    # A budget that ends cancels what is on its way to workers, as it should.
    warnings.filterwarnings("ignore", message=".*have been cancelled", category=UserWarning)
    left, shares = budget, sum(SHARES[name] for name in names)
    with interruptible() as interruption:
        for name in names:
            mine, experiments = {}, [one.on(backends) for one in MODULES[name].experiments(plan)]
            available = left * SHARES[name] / shares
            shares -= SHARES[name]
            for number, experiment in enumerate(experiments):
                if interruption.happened:
                    break
                started = time.monotonic()
                path = plan.out / f"{experiment.name}.jsonl"
                share = available * experiment.questions / sum(e.questions for e in experiments[number:])
                m = mine[experiment.name] = measure(experiment, path, options, jobs, share, facts, interruption)
                spent = time.monotonic() - started
                available, left = max(0.0, available - spent), max(0.0, left - spent)
                (plan.out / f"{experiment.name}.md").write_text(m.markdown())
                (plan.out / f"{experiment.name}.svg").write_text(m.plot())
                done.append(m)
                click.echo(
                    f"{experiment.name}: {len(m.records)} answers count, {m.unasked} not asked, {spent:.0f} s", err=True
                )
            if len(mine) == len(experiments):
                findings += MODULES[name].findings(mine)
        happened = interruption.happened
    report(plan, facts, done, findings)
    if any(m.contradictions for m in done):
        return INTERNAL
    return INTERRUPTED if happened else EXPECTED


def report(plan: Plan, facts: dict[str, Any], done: list[Measured], findings: list[Finding]) -> None:
    """`paper.md` with everything; the findings on standard output."""
    commits = sorted({r["run"]["commit"] for m in done for r in m.records} or {facts["commit"]})
    machine = facts["machine"]
    lines = [
        f"# The paper's experiments, size {plan.size}",
        "",
        f"Commit {', '.join(commits)}; treesens {facts['treesens']}; {machine['processor']}, {machine['cores']} cores, "
        f"{facts['jobs']} questions at a time, one thread each; {plan.limit:g} s per question; seed {plan.seed}; "
        + ", ".join(f"{name} {version}" for name, version in facts["packages"].items())
        + ". Times in seconds; PAR2 counts an unsolved question as twice the limit.",
        "",
        "## Findings",
        "",
        *(f"- {finding}" for finding in findings),
        "",
    ]
    (plan.out / "paper.md").write_text("\n".join([*lines, *(m.markdown() for m in done)]))
    for finding in findings:
        click.echo(str(finding))
    for m in done:
        for text in m.contradictions:
            click.echo(f"contradiction: {text}", err=True)
    click.echo(f"tables and plots: {plan.out / 'paper.md'}")


def facts_of(plan: Plan, options: Options, jobs: int) -> dict[str, Any]:
    """What goes with every record, so that it can be repeated."""
    return {
        "commit": commit(),
        "treesens": __version__,
        "packages": package_versions(),
        "machine": machine_facts(),
        "size": plan.size,
        "seed": plan.seed,
        "jobs": jobs,
        "threads": options.threads,
        "memory_limit": options.memory_limit,
        "replay": "library",
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def commit() -> str:
    """The commit of this repository, with `+` where files differ from it; `unknown` outside of one."""
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + "+" * bool(git("status", "--porcelain", "-uno"))
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


if __name__ == "__main__":
    main()
