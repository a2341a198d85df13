"""`treesens sets MODEL`: all smallest sets of features that flip a decision, and all largest that do not."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from treesens.commands.beside import write_beside
from treesens.commands.common import (
    EXPECTED,
    INCONCLUSIVE,
    INTERNAL,
    INTERRUPTED,
    Whole,
    quiet_option,
    replays_in_library,
    split,
    study_options,
    trust_option,
)
from treesens.commands.decision_options import Cutoff
from treesens.commands.memory import journal_option, remembered
from treesens.commands.outputs import OutputFile
from treesens.compiler.base.interruption import interruptible
from treesens.errors import UsageError
from treesens.report.terminal import say, say_json
from treesens.solve.afterwards import have_own_fault


@click.command("sets")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--gap", "-g", "gap", help="In probability (of a regressor: in its value); 0 is any change of the decision."
)
@click.option("--margin", "-m", "margin", help="In raw score; between classes the lead of each.")
@click.option("--data", type=click.Path(path_type=Path), help="CSV or Parquet: domains are the ranges of its columns.")
@click.option("--label", help="The column that is no input.")
@click.option(
    "--features", help="The features, as a,b,c, whose sets are asked about. Default: all that the model uses."
)
@click.option("--most", type=Whole(min=1), help="Stop after so many sets that flip.")
@click.option("--threshold", type=Cutoff(), help="The decision is probability >= THRESHOLD (default: the model's own).")
@click.option("--classes", help="Classes, as A,B. One: its score alone; several: changes between them. Default: all.")
@click.option(
    "--domain",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A .sens file whose `feature` and `onehot` lines say what inputs are possible.",
)
@click.option("--plot", type=OutputFile(), help="The sets as a picture (.svg, .png, .pdf), by matplotlib.")
@journal_option
@trust_option
@study_options(10.0, "Seconds per set.")
@quiet_option
def command(
    model: Path,
    gap: str | None,
    margin: str | None,
    data: Path | None,
    label: str | None,
    features: str | None,
    most: int | None,
    threshold: Fraction | None,
    classes: str | None,
    domain: Path | None,
    plot: Path | None,
    journal: Path | None,
    trust_pickle: bool,
    real: list[str],
    time_limit: float,
    form: str | None,
    seed: int,
    replay: str,
    as_json: bool,
) -> int:
    """Which sets of features can take some input from a gap above the decision to a gap below it: all smallest ones, each with
    a verified pair, and all largest ones that cannot, proved. Every other set lies around one of the former or inside one of
    the latter.

    Exit codes: 0 all sets are decided, 5 some are not, 1 usage, 2 unreadable input, 130 interrupted.
    """
    from treesens.data.tables import read_table
    from treesens.frontends.registry import load
    from treesens.records.answers import SCHEMA_VERSION
    from treesens.report.plots import new_axes, save_plot
    from treesens.report.sets_plot import sets_plot
    from treesens.report.sets_table import show_sets
    from treesens.report.show import Progress
    from treesens.studies.decisions import Asked
    from treesens.studies.domain_file import read_domain
    from treesens.studies.minimal_sets import SetOptions, minimal_sets
    from treesens.studies.questions import gaps_of

    if (gap is None) == (margin is None):
        raise UsageError("one size is needed", remedy="give --gap 0.1 (probability) or --margin 1 (raw score)")
    size = gaps_of([gap] if gap is not None else [], [margin] if margin is not None else [])[0]
    declared = read_domain(domain)
    # What is missing for the picture is said before the work.
    axes = None if plot is None else new_axes(plot)
    loaded = load(model, form, trust_pickle=trust_pickle)
    table = None if data is None else read_table(data, label=label)
    options = SetOptions(time_limit, seed, most, replays_in_library(replay, loaded), real, declared)
    asked = Asked(size.kind, threshold, tuple(split(classes)))
    content = (loaded.ensemble.source.sha256, form, None if table is None else table.sha256, label)
    found = None
    with (
        remembered(journal, time_limit, "sets", *content, options.replay_in_library) as memory,
        interruptible() as interruption,
        Progress(1) as progress,
    ):
        progress.start(0, "sets of features")
        found = minimal_sets(
            loaded,
            table,
            size,
            features=split(features) or None,
            asked=asked,
            options=options,
            memory=memory,
            stop=interruption.event,
            on_set=progress.say,
        )
    if found is None:
        return INTERRUPTED
    results, warnings = found
    for warning in warnings:
        say(warning, err=True)
    records: list[dict[str, Any]] = [one.record() for one in results]
    if as_json:
        facts = {"file": str(model), "sha256": loaded.ensemble.source.sha256}
        asked_for = {size.kind: size.value, "interrupted": interruption.happened}
        say_json({"schema_version": SCHEMA_VERSION, "model": facts, **asked_for, "results": records})
    else:
        for record in records:
            show_sets(record)
    if plot is not None:
        write_beside(str(plot), lambda: save_plot(sets_plot(records[0], axes), plot))
    if interruption.happened:
        return INTERRUPTED
    if have_own_fault([one for record in records for one in record["open"]]):
        return INTERNAL
    return EXPECTED if all(record["complete"] for record in records) else INCONCLUSIVE
