"""`treesens gap MODEL`: the largest certified gap of every feature."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from treesens.commands.common import (
    EXPECTED,
    INCONCLUSIVE,
    INTERNAL,
    INTERRUPTED,
    Number,
    Whole,
    certificate_option,
    replays_in_library,
    set_options,
    trust_option,
)
from treesens.commands.decision_options import decision_options, failing, typical_options
from treesens.compiler.base.interruption import interruptible
from treesens.report.terminal import say, say_json
from treesens.solve.afterwards import have_own_fault


@click.command("gap")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), help="CSV or Parquet: domains are the ranges of its columns.")
@click.option("--label", help="The column that is no input.")
@click.option(
    "--close",
    type=Number(min=0.0, max=1.0),
    default=0.02,
    show_default=True,
    help="Stop at this relative gap.",
)
@click.option("--threads", type=Whole(min=1), default=2, show_default=True, help="Threads of one search.")
@decision_options
@typical_options
@trust_option
@certificate_option
@set_options(seconds=30.0, jobs=1)
def command(
    model: Path,
    data: Path | None,
    label: str | None,
    vary: list[list[str]] | None,
    threshold: Fraction | None,
    classes: list[str],
    domain: Path | None,
    fail_on: str | None,
    quiet: bool,
    typical: str | None,
    typical_by: str | None,
    trust_pickle: bool,
    certificates: Path | None,
    real: list[str],
    time_limit: float,
    close: float,
    threads: int,
    jobs: int,
    seed: int,
    form: str | None,
    replay: str,
    as_json: bool,
) -> int:
    """For every feature the greatest margin g such that changing that feature alone takes some input from g above the cut-off
    to g below it: reached by a verified pair, and bounded by a proof. Between two of several classes g is the lead of each,
    and for regressors the largest difference of two values. With --typical both inputs are typical of the data.

    Exit codes: 0 every gap closed, 5 some still open, 10 what --fail-on names, 1 usage, 2 unreadable input, 130 interrupted.
    """
    from treesens.data.tables import read_table
    from treesens.frontends.registry import load
    from treesens.records.answers import SCHEMA_VERSION
    from treesens.report.largest_table import show_largest
    from treesens.report.show import tracker
    from treesens.studies.decisions import decisions_of, natural_question
    from treesens.studies.domain_file import read_domain
    from treesens.studies.largest_gap import LargestOptions, largest_gaps
    from treesens.studies.typicality import typical_level

    declared = read_domain(domain)
    loaded = load(model, form, trust_pickle=trust_pickle)
    table = None if data is None else read_table(data, label=label)
    options = LargestOptions(time_limit, threads, jobs, seed, close, replays_in_library(replay, loaded), real)
    options.certificates, options.domain = certificates, declared
    options.threshold, options.classes = threshold, classes
    options.typical = typical_level(typical, typical_by, has_table=table is not None)
    sets = len(vary) if vary is not None else loaded.ensemble.n_features
    total = sets * len(decisions_of(loaded.ensemble, natural_question(loaded.ensemble, threshold, classes)))
    found = None
    with interruptible() as interruption, tracker("searching", total) as advance:
        found = largest_gaps(
            loaded, table, varied=vary, options=options, stop=interruption.event, on_result=lambda _: advance()
        )
    if found is None:
        return INTERRUPTED
    for warning in found.warnings:
        say(warning, err=True)
    records = [result.record() for result in found.results]
    if certificates is not None:
        from treesens.certificates.attach import summary

        say(summary(records), err=True)
    if as_json:
        facts = {"file": str(model), "sha256": loaded.ensemble.source.sha256}
        say_json(
            {"schema_version": SCHEMA_VERSION, "model": facts, "interrupted": found.interrupted, "results": records}
        )
    elif not quiet:
        show_largest(records)
    if found.interrupted:
        return INTERRUPTED
    if failed := failing(records, fail_on):
        return failed
    if have_own_fault(records):
        return INTERNAL
    return EXPECTED if all(record["closed"] for record in records) else INCONCLUSIVE
