"""`treesens diff OLD NEW`: two versions of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from treesens.commands.common import EXPECTED, INCONCLUSIVE, INTERRUPTED, SECONDS, VIOLATED, seed_option, trust_option
from treesens.compiler.base.interruption import interruptible
from treesens.report.terminal import say, say_json


@click.command("diff")
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), help="CSV or Parquet: rows to compare, and the domain.")
@click.option("--label", help="The column that is no input.")
@click.option("--time-limit", "-t", type=SECONDS, default=60.0, show_default=True, help="Seconds for every search.")
@click.option(
    "--fail-on", type=click.Choice(["different", "rows"]), help="Exit with 10 if scores, or classes of rows, differ."
)
@click.option("--format", "form", help="The format of both files, where their content does not say it.")
@trust_option
@seed_option()
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def command(
    old: Path,
    new: Path,
    data: Path | None,
    label: str | None,
    time_limit: float,
    fail_on: str | None,
    form: str | None,
    trust_pickle: bool,
    seed: int,
    as_json: bool,
) -> int:
    """Compare two models: equal (proved), or the largest difference of their scores, reached by an input and bounded by a
    proof; with --data also which rows get another class (of regressors: another value).

    Exit codes: 0 every largest difference is closed, 5 some are open, 10 what --fail-on names, 1 usage, 2 unreadable input, 130
    interrupted.
    """
    from treesens.data.tables import read_table
    from treesens.frontends.registry import load
    from treesens.report.records import SCHEMA_VERSION
    from treesens.studies.difference import difference

    models = [load(path, form, trust_pickle=trust_pickle) for path in (old, new)]
    table = None if data is None else read_table(data, label=label)
    found = None
    with interruptible() as interruption:
        found = difference(models[0], models[1], table, time_limit=time_limit, seed=seed, stop=interruption.event)
    if found is None:
        return INTERRUPTED
    for warning in found.warnings:
        say(warning, err=True)
    record = found.record()
    if as_json:
        facts = [{"file": str(p), "sha256": m.ensemble.source.sha256} for p, m in zip((old, new), models, strict=True)]
        say_json({"schema_version": SCHEMA_VERSION, "old": facts[0], "new": facts[1], **record})
    else:
        _show(record)
    rows = record["data"] or {}
    if found.interrupted:
        return INTERRUPTED
    if (fail_on == "different" and found.verdict == "different") or (fail_on == "rows" and rows.get("changed")):
        return VIOLATED
    return EXPECTED if all(_closed(one) for one in record["scores"]) else INCONCLUSIVE


def _closed(score: dict[str, Any]) -> bool:
    """Whether the bound is the value, but for rounding."""
    value, bound = score["largest"], score["bound"]
    return value is not None and bound is not None and bound - value <= 1e-6 * max(1.0, abs(value))


def _show(record: dict[str, Any]) -> None:
    from treesens.report.show import out
    from treesens.report.tables import Table

    bound = record["bound"]
    words = {
        "equal": "equal: proved for every input of the domain",
        "close": f"no input was found that shows a difference; proved: no score differs by more than {bound}",
        "different": "different" + ("" if bound is None else f"; proved: no score differs by more than {bound:.6g}"),
        "unknown": "unknown: nothing was found, and not all is proved",
    }
    say(words[record["verdict"]])
    table = Table(box=None, pad_edge=False)
    for name in ("score", "direction", "largest difference", "proved bound", "input"):
        table.add_column(name)
    for score in record["scores"]:
        value, limit = score["largest"], score["bound"]
        shown = ", ".join(f"{k} {v}" for k, v in (score["input"] or {}).items()) if value else ""
        numbers = ("–" if x is None else f"{x:.6g}" for x in (value, limit))
        table.add_row(score["score"], score["direction"], *numbers, shown)
    table.print_fitted(out(), ("input",))
    rows = record["data"]
    if rows is not None:
        listed = ", ".join(map(str, rows["changed_rows"][:10])) + (", …" if rows["changed"] > 10 else "")
        say(
            f"{rows['changed']} of {rows['rows']} rows change{f': {listed}' if listed else ''}; "
            f"the largest difference of a score on them is {rows['largest_difference']:.6g}"
        )
