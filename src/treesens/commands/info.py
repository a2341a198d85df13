"""`treesens info MODEL`: describes a model file without the library that made it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from treesens.commands.common import EXPECTED, INCONCLUSIVE, VIOLATED, Whole, option_like, trust_option
from treesens.compiler.model.kinds import Accumulation
from treesens.frontends.base import LoadedModel
from treesens.report.terminal import say_json, say_wrapped


@click.command("info")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--format", "-f", "format_name", help="Name of the format, if the content does not determine the format.")
@trust_option
@click.option("--check", is_flag=True, help="Compare with the model's own library, on and around every threshold.")
@click.option("--rows", type=Whole(min=1), default=1000, show_default=True, help="Random rows of --check.")
@option_like("seed", 0, "Seed of these rows.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def command(
    model: Path, format_name: str | None, trust_pickle: bool, check: bool, rows: int, seed: int, as_json: bool
) -> int:
    """Describe a model file: trees, features, guards, outputs, arithmetic.

    Exit codes: 0, 2 if the model cannot be represented; with --check also 10 if the library contradicts the loaded model, and 5
    if nothing could be checked.
    """
    from treesens.frontends.registry import load
    from treesens.records.model import model_record

    loaded = load(model, format_name, trust_pickle=trust_pickle)
    facts = model_record(loaded)
    code = EXPECTED
    if check:
        facts["check"] = fidelity(loaded, rows, seed)
        code = {True: EXPECTED, False: VIOLATED, None: INCONCLUSIVE}[facts["check"]["ok"]]
    if as_json:
        say_json(facts)
    else:
        _show(facts, loaded.ensemble.link.advice, printed=loaded.printed)
    return code


def fidelity(loaded: LoadedModel, rows: int, seed: int) -> dict[str, Any]:
    """The result of the fidelity check; `ok` is None if nothing could be checked."""
    from treesens.builtin import service
    from treesens.frontends.registry import frontend

    library = frontend(loaded.frontend).library
    if not library:
        return {
            "ok": None,
            "rows": 0,
            "mismatches": 0,
            "summary": "none: the format has no Python library to compare with",
        }
    if find_spec(library.partition(".")[0]) is None:
        extra = "onnx" if library == "onnxruntime" else library
        reason = f"{library} is not installed: pip install 'treesens[{extra}]'"
        return {"ok": None, "rows": 0, "mismatches": 0, "summary": reason}
    report = service("conformance").formats.check(loaded, rows=rows, seed=seed)
    ok = report.ok if report.rows else None
    return {"ok": ok, "rows": report.rows, "mismatches": report.count, "summary": str(report)}


def _off(band: list[float] | None) -> str:
    """The bound on the error of sums, as text; empty if the bound depends on a feature's domain."""
    return "" if band is None else "; differs from the exact sum by at most " + ", ".join(f"{b:.2g}" for b in band)


def _show(facts: dict[str, Any], advice: str, *, printed: bool) -> None:
    from treesens.report.show import out
    from treesens.report.tables import Table

    console = out()
    version = f", written by version {facts['library_version']}" if facts["library_version"] else ""
    say_wrapped(f"{facts['path']}: {facts['format']}{version}")
    depth = facts["depth"]
    constant = f" ({facts['constant_trees']} constant)" if facts["constant_trees"] else ""
    apart = ", up to the order of additions" if Accumulation(facts["accumulation"]).any_order else ""
    averaged = f", sums divided by {facts['average']}" if facts["average"] != 1 else ""
    exactly = f"exactly: leaves and sums are those of the library{apart} (compare with --check)"
    lines = {
        "read": "as printed: the library that printed this table may have more digits (see the note)"
        if printed
        else exactly,
        "ask": advice,
        "task": f"{facts['task']}, {facts['outputs']} output(s), link {facts['link']}{averaged}",
        "trees": f"{facts['trees']:,}{constant}, depth {depth['max']} at most, {depth['mean']} on average",
        "leaves": f"{facts['leaves']:,} of {facts['nodes']:,} nodes",
        "classes": ", ".join(map(str, facts["classes"])) or "none",
        "base margin": ", ".join(f"{b:.9g}" for b in facts["base_margin"]),
        "inputs": f"{facts['number_type']}, a node goes left where x {facts['comparison']} threshold",
        "sums": f"{facts['accumulation']}{_off(facts['numerical_band'])}",
        "missing": f"left at {facts['missing']['nodes_left']:,} nodes, right at {facts['missing']['nodes_right']:,}",
        "options": ", ".join(f"{k} {v}" for k, v in facts["options"].items()),
        "sha256": facts["sha256"] or "",
    }
    for name, text in lines.items():
        if text:
            say_wrapped(f"  {name:12} {text}", 13)
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
    table.add_column("  feature")
    table.add_column("kind")
    for name in ("guards", "splits", "trees"):
        table.add_column(name, justify="right")
    table.add_column("cuts or categories")
    for f in facts["features"]:
        ends = f["range_of_cuts"]
        where = f"{ends[0]:.6g} .. {ends[1]:.6g}" if ends else ""
        if f["categories"]:
            where = f"{f['categories']} categories" + (
                f": {' · '.join(map(str, f['labels'][:6]))}" if f["labels"] else ""
            )
        row = (f"  {f['name']}", f["kind"], f"{f['guards']:,}", f"{f['splits']:,}", f"{f['trees']:,}", where)
        table.add_row(*row, style=None if f["splits"] else "dim")
    table.print_fitted(console, ("trees", "splits"))
    for note in facts["notes"]:
        say_wrapped(f"  note: {note}")
    if "check" in facts:
        say_wrapped(f"  library: {facts['check']['summary']}")
