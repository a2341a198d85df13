"""`treesens audit MODEL --data FILE`: the sweep over features and gaps, with real rows."""

from __future__ import annotations

import shlex
import sys
from fractions import Fraction
from pathlib import Path

import click

from treesens.commands.beside import write_beside
from treesens.commands.common import (
    EXPECTED,
    INCONCLUSIVE,
    INTERNAL,
    INTERRUPTED,
    certificate_option,
    replays_in_library,
    set_options,
    split,
    tolerance_options,
    trust_option,
)
from treesens.commands.decision_options import decision_options, failing, typical_options
from treesens.commands.report_options import checked_report, report_options, write_pages
from treesens.compiler.base.interruption import interruptible
from treesens.compiler.base.tolerance import Tolerance
from treesens.report.terminal import say, say_json
from treesens.solve.afterwards import have_own_fault


@click.command("audit")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--data", "data", type=click.Path(path_type=Path), required=True, help="CSV or Parquet: the rows to try.")
@click.option("--label", help="The column that is no input.")
@click.option("--gap", help="Gaps in probability, e.g. 0.1,0.2 (for a regressor: in its value).")
@click.option("--margin", help="Gaps in raw score, e.g. 0.5,1.")
@click.option(
    "--measure",
    type=click.Choice(["uniform", "cells", "marginals", "chow-liu", "rows"]),
    help="Also the share of inputs that flip, by this measure (docs/measures.md).",
)
@report_options
@typical_options
@decision_options
@trust_option
@certificate_option
@tolerance_options
@set_options(seconds=5.0, jobs=2)
def command(
    model: Path,
    data: Path,
    force: bool,
    label: str | None,
    vary: list[list[str]] | None,
    gap: str | None,
    margin: str | None,
    measure: str | None,
    typical: str | None,
    typical_by: str | None,
    report: Path | None,
    pdf: Path | None,
    purpose: Path | None,
    date: str | None,
    threshold: Fraction | None,
    classes: list[str],
    domain: Path | None,
    fail_on: str | None,
    quiet: bool,
    trust_pickle: bool,
    certificates: Path | None,
    real: list[str],
    time_limit: float,
    tolerance: float,
    absolute_tolerance: float,
    jobs: int,
    seed: int,
    form: str | None,
    replay: str,
    as_json: bool,
) -> int:
    """For every feature and gap: how many rows of FILE flip when only that feature changes, a verified pair and its nearest
    row, and the largest swing with its proved bound. Classifiers of more than two classes have one such question for every two
    classes, regressors one about their value.

    Exit codes: 0 every question decided, 5 some inconclusive, 10 what --fail-on names, 1 usage, 2 unreadable input, 130
    interrupted.
    """
    from treesens.data.tables import read_table
    from treesens.frontends.registry import load
    from treesens.report.audit_table import show_audit
    from treesens.report.show import tracker
    from treesens.studies.audit import audit
    from treesens.studies.audit_facts import audit_facts
    from treesens.studies.audit_set import AuditOptions
    from treesens.studies.decisions import decisions_of
    from treesens.studies.domain_file import read_domain
    from treesens.studies.questions import sizes_of
    from treesens.studies.typicality import typical_level

    heading = checked_report(report, pdf, purpose, date, force=force)
    declared = read_domain(domain)
    loaded = load(model, form, trust_pickle=trust_pickle)
    gaps = sizes_of(loaded, split(gap), split(margin), threshold, classes)
    table = read_table(data, label=label)
    options = AuditOptions(time_limit, jobs, seed, replay_in_library=replays_in_library(replay, loaded), real=real)
    options.certificates, options.domain = certificates, declared
    options.threshold, options.classes = threshold, classes
    options.tolerance = Tolerance(tolerance, absolute_tolerance)
    options.measure = measure  # type: ignore[assignment]
    options.typical = typical_level(typical, typical_by, has_table=True)
    sets = len(vary) if vary is not None else loaded.ensemble.n_features
    total = len(gaps) * sets * len(decisions_of(loaded.ensemble, options.asked(gaps[0].kind)))
    found = None
    with interruptible() as interruption, tracker("auditing", total) as advance:
        found = audit(
            loaded,
            table,
            varied=vary,
            gaps=gaps,
            options=options,
            stop=interruption.event,
            on_record=lambda _: advance(),
        )
    if found is None:
        return INTERRUPTED
    for warning in found.warnings:
        say(warning, err=True)
    if certificates is not None:
        from treesens.certificates.attach import summary

        say(summary(found.records), err=True)
    line = shlex.join(["treesens", *sys.argv[1:]])
    settings = {"seconds per set": time_limit, "sets at a time": jobs, "seed": seed, "replay": replay}
    facts = audit_facts(found, str(model), str(data), line, settings=settings)
    if as_json:
        say_json({**facts, "results": found.records})
    elif not quiet:
        write_beside("the table", lambda: show_audit(found.records, facts))
    if report is not None:
        write_pages(report, pdf, found.records, {**facts, **heading}, force=force)
    if found.interrupted:
        return INTERRUPTED
    if failed := failing(found.records, fail_on):
        return failed
    if have_own_fault(found.records):
        return INTERNAL
    return INCONCLUSIVE if any(r["verdict"] == "unknown" for r in found.records) else EXPECTED
