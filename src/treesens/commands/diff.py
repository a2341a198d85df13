"""`treesens diff OLD NEW`: two versions of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from treesens.commands.common import (
    EXPECTED,
    INCONCLUSIVE,
    INTERNAL,
    INTERRUPTED,
    SECONDS,
    VIOLATED,
    Number,
    quiet_option,
    seed_option,
    split,
    trust_option,
    vary_option,
)
from treesens.compiler.base.interruption import interruptible
from treesens.compiler.base.tolerance import RELATIVE, Closeness, Tolerance
from treesens.errors import UsageError
from treesens.report.terminal import say, say_json, say_wrapped
from treesens.solve.afterwards import have_own_fault


@click.command("diff")
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), help="CSV or Parquet: rows to compare, and the domain.")
@click.option("--label", help="The column that is no input.")
@click.option("--gap", help="Compare the sensitivities at these gaps in probability, too, e.g. 0.1,0.2; needs --data.")
@click.option("--margin", help="The same at gaps in raw score, e.g. 0.5,1.")
@vary_option
@click.option("--time-limit", "-t", type=SECONDS, default=60.0, show_default=True, help="Seconds for every search.")
@click.option(
    "--set-limit", type=SECONDS, default=5.0, show_default=True, help="Seconds for every set of features and model."
)
@click.option(
    "--fail-on",
    type=click.Choice(["different", "rows", "sensitivities"]),
    help="Exit with 10 if scores, or classes of rows, differ, or if a sensitivity appears.",
)
@click.option(
    "--tolerance",
    type=Number(min=0.0, max=1.0),
    default=RELATIVE,
    show_default=True,
    help="The relative gap at which a largest difference counts as proved. That models are equal is proved exactly.",
)
@click.option("--optimal", is_flag=True, help="Largest differences to the last unit: the tolerance is 0.")
@click.option("--format", "form", help="The format of both files, if their content does not show it.")
@trust_option
@seed_option()
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@quiet_option
def command(
    old: Path,
    new: Path,
    data: Path | None,
    label: str | None,
    gap: str | None,
    margin: str | None,
    vary: list[list[str]] | None,
    time_limit: float,
    set_limit: float,
    fail_on: str | None,
    tolerance: float,
    optimal: bool,
    form: str | None,
    trust_pickle: bool,
    seed: int,
    as_json: bool,
) -> int:
    """Compare two models: equal (proved), or the largest difference of their scores, reached by an input and bounded by a
    proof; with --data also which rows get another class (of regressors: another value), and with --gap which sensitivities
    appear, and which go.

    Exit codes: 0 every largest difference is closed and every sensitivity decided, 5 some are open, 10 what --fail-on names,
    1 usage, 2 unreadable input, 130 interrupted.
    """
    from treesens.data.tables import read_table
    from treesens.frontends.registry import load
    from treesens.records.plain import SCHEMA_VERSION
    from treesens.studies.audit_set import AuditOptions
    from treesens.studies.difference import difference
    from treesens.studies.questions import gaps_of

    gaps = gaps_of(split(gap), split(margin)) if gap or margin else []
    if vary and not gaps:
        raise UsageError("--vary names features whose sensitivities are compared", remedy="add --gap, e.g. --gap 0.1")
    models = [load(path, form, trust_pickle=trust_pickle) for path in (old, new)]
    table = None if data is None else read_table(data, label=label)
    found = None
    with interruptible() as interruption:
        found = difference(
            models[0],
            models[1],
            table,
            time_limit=time_limit,
            seed=seed,
            stop=interruption.event,
            gaps=gaps,
            varied=vary,
            audit=AuditOptions(set_limit, seed=seed, tolerance=Tolerance(0.0 if optimal else tolerance)),
            tolerance=0.0 if optimal else tolerance,
        )
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
    changes = [one.change for one in found.sensitivities or ()]
    wrong = {
        "different": found.verdict == "different",
        "rows": bool(rows.get("changed")),
        "sensitivities": "appears" in changes,
    }
    if fail_on is not None and wrong[fail_on]:
        return VIOLATED
    if have_own_fault(record["scores"]):
        return INTERNAL
    return EXPECTED if all(map(_closed, record["scores"])) and "unknown" not in changes else INCONCLUSIVE


def _closed(score: dict[str, Any]) -> bool:
    """Whether the bound is the value, or within the tolerance of it."""
    return bool(score["status"] != Closeness.OPEN)


def _status(score: dict[str, Any]) -> str:
    """`optimal`, within which tolerance a bound is closed, or `open`."""
    if score["status"] != Closeness.WITHIN:
        return str(score["status"])
    return f"closed within {Tolerance(**score['tolerance']).words()}"


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
    say_wrapped(words[record["verdict"]])
    table = Table(box=None, pad_edge=False)
    for name in ("score", "direction", "largest difference", "proved bound", "", "input"):
        table.add_column(name)
    for score in record["scores"]:
        value, limit = score["largest"], score["bound"]
        shown = ", ".join(f"{k} {v}" for k, v in (score["input"] or {}).items()) if value else ""
        numbers = ("–" if x is None else f"{x:.6g}" for x in (value, limit))
        table.add_row(score["score"], score["direction"], *numbers, _status(score), shown)
    table.print_fitted(out(), ("input",))
    rows = record["data"]
    if rows is not None:
        listed = ", ".join(map(str, rows["changed_rows"][:10])) + (", …" if rows["changed"] > 10 else "")
        say_wrapped(
            f"{rows['changed']} of {rows['rows']} rows change{f': {listed}' if listed else ''}; "
            f"the largest difference of a score on them is {rows['largest_difference']:.6g}"
        )
    if record["sensitivities"] is not None:
        _show_sensitivities(record["sensitivities"])


def _show_sensitivities(records: list[dict[str, Any]]) -> None:
    """What changes first; a line per set of features and gap."""
    from treesens.report.show import out
    from treesens.report.tables import Table

    order = ("appears", "goes", "unknown", "stays", "never")
    several = any("classes" in one for one in records)
    table = Table(box=None, pad_edge=False)
    for name in ("varied", "gap", *(("classes",) if several else ()), "sensitivity", "rows that flip", "largest swing"):
        table.add_column(name)
    for one in sorted(records, key=lambda one: order.index(one["change"])):
        sides = [one["old"], one["new"]]
        rows = " → ".join(str(side["rows_flipped"]) for side in sides)
        swings = " → ".join("–" if side["max_swing"] is None else f"{side['max_swing']:.4g}" for side in sides)
        classes = [" / ".join(map(str, one.get("classes", ())))] if several else []
        table.add_row(
            ", ".join(one["varied"]), str(one.get("gap", one.get("margin"))), *classes, one["change"], rows, swings
        )
    table.print_fitted(out(), ("classes", "largest swing", "rows that flip"))
