"""`treesens range MODEL`: the smallest and the largest score that any input gets."""

from __future__ import annotations

from pathlib import Path

import click

from treesens.commands.common import (
    EXPECTED,
    INCONCLUSIVE,
    INTERNAL,
    INTERRUPTED,
    Whole,
    certificate_option,
    quiet_option,
    replays_in_library,
    split,
    study_options,
    tolerance_options,
    trust_option,
)
from treesens.compiler.base.interruption import interruptible
from treesens.compiler.base.tolerance import Tolerance
from treesens.report.terminal import say, say_json
from treesens.solve.afterwards import have_own_fault


@click.command("range")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), help="CSV or Parquet: domains are the ranges of its columns.")
@click.option("--label", help="The column that is no input.")
@click.option(
    "--domain",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A .sens file whose `feature` and `onehot` lines say what inputs are possible.",
)
@click.option(
    "--classes", callback=lambda _context, _option, text: split(text), help="Classes, as A,B. Default: all of them."
)
@click.option("--threads", type=Whole(min=1), default=2, show_default=True, help="Threads of one search.")
@trust_option
@certificate_option
@tolerance_options
@study_options(30.0, "Seconds for each end.")
@quiet_option
def command(
    model: Path,
    data: Path | None,
    label: str | None,
    domain: Path | None,
    classes: list[str],
    threads: int,
    trust_pickle: bool,
    certificates: Path | None,
    real: list[str],
    time_limit: float,
    tolerance: float,
    absolute_tolerance: float,
    seed: int,
    form: str | None,
    replay: str,
    as_json: bool,
) -> int:
    """The smallest and the largest score of MODEL (of every class, if there are several), each reached by a verified input, and
    with a proof that no input is beyond.

    Exit codes: 0 every end is closed, 5 some are open, 1 usage, 2 unreadable input, 130 interrupted.
    """
    from treesens.data.tables import read_table
    from treesens.frontends.registry import load
    from treesens.records.answers import SCHEMA_VERSION
    from treesens.report.range_table import show_ranges
    from treesens.report.show import tracker
    from treesens.studies.domain_file import read_domain
    from treesens.studies.score_range import RangeOptions, ends_of, score_ranges

    declared = read_domain(domain)
    loaded = load(model, form, trust_pickle=trust_pickle)
    table = None if data is None else read_table(data, label=label)
    options = RangeOptions(time_limit, threads, seed, classes, real, declared)
    options.replay_in_library, options.certificates = replays_in_library(replay, loaded), certificates
    options.tolerance = Tolerance(tolerance, absolute_tolerance)
    total = len(ends_of(loaded.ensemble, classes))
    found = None
    with interruptible() as interruption, tracker("searching", total) as advance:
        found = score_ranges(loaded, table, options=options, stop=interruption.event, on_result=lambda _: advance())
    if found is None:
        return INTERRUPTED
    for warning in found.warnings:
        say(warning, err=True)
    records = [end.record() for end in found.ends]
    if certificates is not None:
        from treesens.certificates.attach import summary

        say(summary(records), err=True)
    if as_json:
        facts = {"file": str(model), "sha256": loaded.ensemble.source.sha256}
        say_json(
            {"schema_version": SCHEMA_VERSION, "model": facts, "interrupted": found.interrupted, "results": records}
        )
    else:
        show_ranges(records)
    if found.interrupted:
        return INTERRUPTED
    if have_own_fault(records):
        return INTERNAL
    return EXPECTED if all(record["closed"] for record in records) else INCONCLUSIVE
