"""`treesens repair MODEL`: the model with less sensitivity, in its library's file, and the proof."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from treesens.commands.common import (
    EXPECTED,
    INCONCLUSIVE,
    INTERRUPTED,
    SECONDS,
    certificate_option,
    quiet_option,
    seed_option,
    split,
    time_limit_option,
    trust_option,
    vary_option,
)
from treesens.commands.decision_options import Cutoff
from treesens.commands.outputs import OutputFile
from treesens.compiler.base.files import check_writable
from treesens.compiler.base.interruption import interruptible
from treesens.errors import UsageError
from treesens.report.terminal import say, say_json


@click.command("repair")
@click.argument("model", type=click.Path(path_type=Path))
@vary_option
@click.option("--gap", help="No pair across the cut-off by this probability (regressors: value), e.g. 0.1 or 0.05,0.1.")
@click.option("--margin", help="The same in raw score: by how much both inputs may lie beyond the decision.")
@click.option("--swing", help="No pair further apart than this raw score.")
@click.option("--data", type=click.Path(path_type=Path), required=True, help="CSV or Parquet: the training rows.")
@click.option("--test", type=click.Path(path_type=Path), help="Rows that were held out: the prices that count.")
@click.option("--label", required=True, help="The column of labels, in both tables.")
@click.option("--output", "-o", type=OutputFile(), help="The repaired model, in the format of MODEL.")
@click.option(
    "--method",
    type=click.Choice(["auto", "average", "blend", "leaves"]),
    default="auto",
    show_default=True,
    help="How; auto is the one with the least loss on the training rows.",
)
@click.option("--keep", callback=lambda _context, _option, text: split(text), help="Trees that ask for these stay.")
@click.option("--threshold", type=Cutoff(), help="The decision is probability >= THRESHOLD (default: the model's own).")
@click.option("--classes", callback=lambda _context, _option, text: split(text), help="Classes, as A,B. Default: all.")
@click.option(
    "--domain",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A .sens file whose `feature` and `onehot` lines say what inputs are possible (default: all numbers).",
)
@time_limit_option(120.0, "Seconds for the search for the best leaves, per size.")
@click.option("--proof-time", type=SECONDS, default=60.0, show_default=True, help="Seconds for each proof.")
@seed_option()
@click.option("--format", "form", help="The format of the model, if its content does not show it.")
@trust_option
@certificate_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@quiet_option
def command(
    model: Path,
    vary: list[list[str]] | None,
    gap: str | None,
    margin: str | None,
    swing: str | None,
    data: Path,
    test: Path | None,
    label: str,
    output: Path | None,
    method: str,
    keep: list[str],
    threshold: Fraction | None,
    classes: list[str],
    domain: Path | None,
    time_limit: float,
    proof_time: float,
    seed: int,
    form: str | None,
    trust_pickle: bool,
    certificates: Path | None,
    as_json: bool,
) -> int:
    """Changes the trees that ask for the features of --vary, as little as it can, until no pair of inputs breaks the
    promise, and proves that of the written file. Several sizes make a file each.

    Exit codes: 0 proved and written, 5 not proved (then there is no file), 1 usage, 2 unreadable input, 130 interrupted
    (what was proved by then is written).
    """
    from treesens.data.tables import read_table
    from treesens.frontends.registry import load
    from treesens.records.plain import SCHEMA_VERSION
    from treesens.repairs.run import Repaired, place_of, repair_all, write_all
    from treesens.repairs.sizes import options_of
    from treesens.report.repair_table import show_repairs
    from treesens.studies.domain_file import read_domain

    if vary is None:
        raise UsageError("no feature is named", remedy="add --vary FEATURE")
    options = options_of(
        vary, {"gap": gap, "margin": margin, "swing": swing}, method=method, keep=tuple(keep), threshold=threshold,
        classes=tuple(classes), domain=read_domain(domain), time_limit=time_limit, proof_time=proof_time, seed=seed,
        certificates=certificates,
    )  # fmt: skip
    loaded = load(model, form, trust_pickle=trust_pickle)
    train = read_table(data, label=label)
    held_out = None if test is None else read_table(test, label=label)
    for size in options.sizes if output is not None else ():
        assert output is not None
        check_writable(place_of(output, size, options))
    found: list[Repaired] = []  # an interruption may come before there is one
    with interruptible() as interruption:
        found = repair_all(
            loaded, train, held_out, label, options, interruption.event, lambda words: say(words, err=True)
        )
        if output is not None:
            write_all(output, found, options)
    stopped = interruption.event.is_set()
    records = [one.record() for one in found]
    if as_json:
        facts = {"file": str(model), "sha256": loaded.ensemble.source.sha256}
        about = {"model": facts, "vary": vary, "kind": options.kind, "interrupted": stopped}
        say_json({"schema_version": SCHEMA_VERSION, **about, "results": records})
    else:
        show_repairs(records, options.kind)
    for record in records:
        if not record["proved"]:
            say(f"{options.kind} {record['size']:g}: no file, {record['reason']}", err=True)
    if stopped:
        return INTERRUPTED
    return EXPECTED if all(record["proved"] for record in records) else INCONCLUSIVE
