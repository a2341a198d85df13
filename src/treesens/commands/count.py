"""`treesens count MODEL`: how much of the inputs changing some features flips, and who is concerned."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from treesens.commands.common import (
    EXPECTED,
    INCONCLUSIVE,
    INTERNAL,
    INTERRUPTED,
    SECONDS,
    Number,
    seed_option,
    split,
    trust_option,
)
from treesens.commands.decision_options import Cutoff
from treesens.compiler.base.interruption import interruptible
from treesens.report.terminal import say, say_json
from treesens.solve.afterwards import have_own_fault


@click.command("count")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), help="CSV or Parquet: domains, and what measures learn from.")
@click.option("--label", help="The column that is no input.")
@click.option(
    "--measure",
    type=click.Choice(["uniform", "cells", "marginals", "chow-liu", "rows"]),
    default="uniform",
    show_default=True,
    help="What a share is a share of (docs/measures.md).",
)
@click.option(
    "--vary",
    "-v",
    multiple=True,
    callback=lambda _context, _option, texts: [split(text) for text in texts] or None,
    help="A feature, or a set as a,b; repeatable. Default: every feature alone.",
)
@click.option("--gap", help="Gaps in probability, e.g. 0.1,0.2 (for a regressor: in its value).")
@click.option("--margin", help="Gaps in raw score, e.g. 0.5,1.")
@click.option("--threshold", type=Cutoff(), help="The decision is probability >= THRESHOLD (default: the model's own).")
@click.option(
    "--classes",
    callback=lambda _context, _option, text: split(text),
    help="Classes, as A,B. One: its score alone; several: changes between them. Default: all.",
)
@click.option(
    "--domain",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A .sens file whose `feature` lines say what inputs are possible.",
)
@click.option(
    "--real",
    multiple=True,
    callback=lambda _context, _option, texts: [name for text in texts for name in split(text)],
    help="Features, as a,b, that take fractions although their columns hold whole numbers.",
)
@click.option(
    "--epsilon", type=Number(min=1e-6, max=0.5), default=0.05, show_default=True, help="Relative error that is enough."
)
@click.option(
    "--delta",
    type=Number(min=1e-12, max=0.5),
    default=1e-6,
    show_default=True,
    help="Probability with which an estimate may be further off.",
)
@click.option(
    "--negligible",
    type=Number(min=0.0, max=1.0),
    default=1e-6,
    show_default=True,
    help="A share that is proved to be no larger needs no estimate.",
)
@click.option("--time-limit", "-t", type=SECONDS, default=10.0, show_default=True, help="Seconds per question.")
@seed_option()
@click.option("--format", "form", help="The format of the model, if its content does not show it.")
@click.option("--quiet", "-q", is_flag=True, help="No table: warnings, and the exit code.")
@trust_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def command(
    model: Path,
    data: Path | None,
    label: str | None,
    measure: str,
    vary: list[list[str]] | None,
    gap: str | None,
    margin: str | None,
    threshold: Fraction | None,
    classes: list[str],
    domain: Path | None,
    real: list[str],
    epsilon: float,
    delta: float,
    negligible: float,
    time_limit: float,
    seed: int,
    form: str | None,
    quiet: bool,
    trust_pickle: bool,
    as_json: bool,
) -> int:
    """For every feature and gap the share of inputs for which changing that feature alone flips the decision: an interval that
    is proved, and inside it an estimate whose error is bounded with a probability of 1 - DELTA. Sets, gaps, cut-offs and
    classes are those of `treesens audit`.

    Exit codes: 0 every share is known precisely enough, 5 some are not, 1 usage, 2 unreadable input, 130 interrupted.
    """
    from treesens.data.tables import read_table
    from treesens.frontends.registry import load
    from treesens.measure.sampler import Precision
    from treesens.records.answers import SCHEMA_VERSION
    from treesens.report.share_table import show_shares
    from treesens.report.show import tracker
    from treesens.studies.domain_file import read_domain
    from treesens.studies.questions import sizes_of
    from treesens.studies.shares import CountOptions, count_shares

    declared = read_domain(domain)
    loaded = load(model, form, trust_pickle=trust_pickle)
    gaps = sizes_of(loaded, split(gap), split(margin), threshold, classes)
    table = None if data is None else read_table(data, label=label)
    options = CountOptions(measure, time_limit, seed, Precision(epsilon, delta, negligible))  # type: ignore[arg-type]
    options.real, options.threshold, options.classes, options.domain = real, threshold, classes, declared
    found = None
    total = len(gaps) * (len(vary) if vary is not None else loaded.ensemble.n_features)
    with interruptible() as interruption, tracker("counting", total) as advance:
        found = count_shares(
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
    if as_json:
        facts = {"file": str(model), "sha256": loaded.ensemble.source.sha256}
        settings = {"epsilon": epsilon, "delta": delta, "negligible": negligible, "seed": seed}
        say_json(
            {
                "schema_version": SCHEMA_VERSION,
                "model": facts,
                "settings": settings,
                "interrupted": found.interrupted,
                "results": found.records,
            }
        )
    elif not quiet:
        show_shares(found.records)
    if found.interrupted:
        return INTERRUPTED
    if have_own_fault(found.records):
        return INTERNAL
    return EXPECTED if all(record["closed"] for record in found.records) else INCONCLUSIVE
