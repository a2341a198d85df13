"""`treesens bench INSTANCES.jsonl`: runs a list of instances on chosen backends and pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from treesens.commands.common import (
    EXPECTED,
    INTERNAL,
    INTERRUPTED,
    Whole,
    certificate_summary,
    option_like,
    quiet_option,
    split,
    write_output,
)
from treesens.commands.measure import Runs, measure_options
from treesens.commands.outputs import OutputFile, warn_of_journal
from treesens.compiler.base.files import write_atomically
from treesens.report.terminal import say, say_json
from treesens.runtime.interruption import interruptible


@click.command("bench")
@click.argument("instances", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--models", type=click.Path(path_type=Path, exists=True, file_okay=False), required=True)
@click.option("--backends", "-b", default="native", show_default=True, help="Comma-separated.")
@click.option("--pipelines", default="default", show_default=True, help="Semicolon-separated.")
@option_like("time_limit", 60.0)
@option_like("seed", 0)
@measure_options
@option_like("certificates", None)
@click.option("--sample", type=Whole(min=1), help="Use this number of instances, evenly spread over the list.")
@click.option("--jobs", "-j", type=Whole(min=1), default=1, show_default=True, help="Instances at a time.")
@click.option("--output", "-o", type=OutputFile(), default=Path("bench.jsonl"), show_default=True)
@click.option("--plot", type=OutputFile(), help="Write a cactus plot (SVG).")
@click.option(
    "--time",
    "measure",
    type=click.Choice(["solve", "total", "cpu", "engine"]),
    default="solve",
    show_default=True,
    help="The time that the summary compares.",
)
@click.option("--replay", type=click.Choice(["library", "emulated"]), default="library", show_default=True)
@click.option("--json", "as_json", is_flag=True)
@quiet_option
def command(
    instances: Path,
    models: Path,
    backends: str,
    pipelines: str,
    time_limit: float,
    seed: int,
    runs: Runs,
    certificates: Path | None,
    sample: int | None,
    jobs: int,
    output: Path,
    plot: Path | None,
    measure: str,
    replay: str,
    as_json: bool,
) -> int:
    """Run INSTANCES (JSON lines: model, feature or features, margin or gap, optionally the known verdict) and check every
    verdict against the other verdicts and the known verdict. A second run continues from the journal next to the results.

    With several runs, the numbers of the table are numbers of runs, and its times are those of runs, with quartiles.
    """
    from treesens.backends.base import BACKENDS
    from treesens.backends.worker import check_options
    from treesens.compiler.pipeline import Pipeline
    from treesens.extensions.sweeps.executor import INLINE, Executor
    from treesens.extensions.sweeps.instances import Setting, contradictions, read_instances, read_records, run
    from treesens.extensions.sweeps.report import cactus_svg, summary
    from treesens.extensions.sweeps.settings import Settings
    from treesens.report.show import Progress

    names = [BACKENDS.canonical(n) for n in split(backends)]
    texts = [text.strip() for text in pipelines.split(";") if text.strip()]
    for name in names:
        if name != "auto":
            check_options(name)
    for text in texts:
        Pipeline.parse(text)
    listed = read_instances(instances)
    if sample is not None and sample < len(listed):
        listed = [listed[i * len(listed) // sample] for i in range(sample)]
    # The native engine has its own compiler: one pipeline is enough for it.
    settings = [
        Setting(name, text) for text in texts for name in names if name not in {"native", "auto"} or text == texts[-1]
    ]
    seeds = runs.seeds_or(seed)
    total = len(listed) * len(settings) * len(seeds) * runs.repeat
    records: list[dict[str, Any]] = []
    with interruptible() as interruption, Progress(total) as progress:

        def on_answer(record: dict[str, Any]) -> None:
            progress.start(
                len(records), f"{record['model']} {record['features']} {record['clause']} on {record['backend']}"
            )
            records.append(record)

        run(
            listed,
            settings,
            models,
            output,
            Settings(time_limit=time_limit, seed=seed, certificates=certificates, replay=replay),
            runs=runs,
            executor=INLINE if jobs == 1 else Executor("local", jobs),
            stop=interruption.event,
            on_answer=on_answer,
            tell=warn_of_journal,
        )
    records = records or read_records(output)  # those of earlier runs if this one was interrupted at once
    wanted = {(x.key, s.backend, s.pipeline) for x in listed for s in settings}
    records = [r for r in records if (r["key"], r["backend"], r["pipeline"]) in wanted]
    records = [r for r in records if r.get("seed", seed) in seeds and r.get("repetition", 1) <= runs.repeat]
    wrong = contradictions(records)
    rows = summary(records, measure)
    if plot is not None:
        title = f"{len(listed)} instances of {instances.name}"
        write_output(str(plot), lambda: write_atomically(plot, cactus_svg(records, measure, title=title)))
    if as_json:
        say_json({"summary": rows, "contradictions": wrong, "records": len(records)})
    else:
        show(rows)
    for text in wrong:
        say(f"contradiction: {text}", err=True)
    if certificates is not None:
        say(certificate_summary(records), err=True)
    if wrong:
        return INTERNAL
    return INTERRUPTED if interruption.happened else EXPECTED


def show(rows: list[dict[str, Any]]) -> None:
    """Prints the summary as a table."""
    from treesens.report.show import out
    from treesens.report.tables import Table

    table = Table(box=None, padding=(0, 2))
    for name in rows[0] if rows else ():
        table.add_column(name, justify="left" if name == "setting" else "right")
    for row in rows:
        table.add_row(*("" if v is None else f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()))
    table.print_fitted(out())
