"""An audit as one HTML page: no script, no network, nothing that is not in the records."""

from __future__ import annotations

import math
import shlex
from importlib.resources import files
from itertools import groupby
from pathlib import PurePath
from typing import Any

from treesens.errors import UsageError
from treesens.report.audit_table import gap_of, swing_of
from treesens.visible import visible

_CELL = 92
_LINE = 26
_STEP = 52
_LEGEND = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_LONGEST = 40
_TEMPLATE = "audit.html.j2"


def page(records: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    """The page; UsageError where jinja2 is not installed."""
    try:
        from jinja2 import Environment, StrictUndefined, select_autoescape
    except ImportError:
        raise UsageError(
            "reports are written with jinja2, which is not installed", remedy="pip install jinja2"
        ) from None
    environment = Environment(
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=seen,
    )
    environment.filters["value"] = shown
    environment.filters["score"] = shown_score
    environment.filters["run"] = shown_run
    environment.filters["features"] = changed_first
    environment.filters["short"] = short
    template = environment.from_string((files("treesens.report") / _TEMPLATE).read_text(encoding="utf-8"))
    groups = [
        {"name": ", ".join(varied), "varied": list(varied), "records": list(mine)}
        for varied, mine in groupby(records, key=lambda r: tuple(r["varied"]))
    ]
    gaps = list(dict.fromkeys(gap_of(r) for r in records))
    certificates = certificates_of(records)
    return template.render(
        facts=facts,
        groups=groups,
        gaps=gaps,
        map=heat_map(groups, gaps),
        gap_of=gap_of,
        swing_of=swing_of,
        certificates=certificates,
        check_command=check_command(certificates, facts["model"]["file"]),
    )


def certificates_of(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every claim of the records for which a certificate was asked, with its file or the reason why it has none."""
    return [
        {
            "name": ", ".join(record["varied"]),
            "gap": gap_of(record),
            **claim,
            "folder": str(PurePath(claim["file"]).parent) if claim["file"] else "",
            "file": PurePath(claim["file"]).name if claim["file"] else None,
            "checked": claim["seconds"]["checked"] if claim["file"] else None,
        }
        for record in records
        for claim in record.get("certificates", ())
    ]


def check_command(certificates: list[dict[str, Any]], model: str) -> str:
    """The command that checks all certificates, as one types it in a shell."""
    folders = list(dict.fromkeys(c["folder"] for c in certificates if c["file"]))
    return shlex.join(["treesens", "verify", *folders, "--model", model])


def seen(value: Any) -> Any:
    """Texts with what would reorder or hide them made visible; they are escaped for HTML after that."""
    return visible(value, lines=True) if type(value) is str else value


def heat_map(groups: list[dict[str, Any]], gaps: list[str]) -> dict[str, Any]:
    """Squares of the map: how many rows flip, on a logarithmic scale of the share of rows."""
    left = 12 + 7.5 * max((len(short(g["name"])) for g in groups), default=1)
    squares = []
    for y, group in enumerate(groups):
        for record in group["records"]:
            strength = strength_of(record["rows_flipped"] / max(1, record["rows"]))
            squares.append(
                {
                    "x": left + _CELL * gaps.index(gap_of(record)),
                    "y": _LINE * (y + 1),
                    "fill": colour(strength),
                    "ink": "#fff" if strength > 0.6 else "#222",
                    "text": f"{record['rows_flipped']:,}",
                    "mark": {"found": "", "none": " ∅", "unknown": " ?"}[record["verdict"]],
                    "title": f"{group['name']}, {gap_of(record)}: {record['rows_flipped']} of {record['rows']} rows",
                }
            )
    bottom = _LINE * (len(groups) + 1) + 8
    legend = [
        {
            "x": left + _STEP * i,
            "y": bottom,
            "width": _STEP,
            "fill": colour(strength_of(share)),
            "text": f"{100 * share:g} %",
        }
        for i, share in enumerate(_LEGEND)
    ]
    return {
        "legend": legend,
        "width": left + max(_CELL * len(gaps), _STEP * len(_LEGEND)) + 4,
        "height": bottom + 32,
        "left": left,
        "cell": _CELL,
        "line": _LINE,
        "squares": squares,
    }


def strength_of(share: float) -> float:
    """How dark a share of the rows is, 0 to 1: logarithmic, as one row in many thousands counts."""
    return 0.0 if share == 0 else max(0.08, 1 + math.log10(share) / 5)


def short(name: str) -> str:
    """A name that fits beside the map."""
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def changed_first(record: dict[str, Any]) -> list[str]:
    """The features of a pair, those that differ between its points before the others."""
    points = list(record["points"].values())
    return sorted(points[0], key=lambda name: points[0][name] == points[-1][name])


def colour(strength: float) -> str:
    """White to dark blue."""
    ends = ((247, 250, 253), (8, 64, 129))
    return "#" + "".join(f"{round(a + (b - a) * min(1.0, strength)):02x}" for a, b in zip(*ends, strict=True))


def shown(value: Any) -> str:
    """A value as people type it: a number is the shortest text that reads back to the same input."""
    if value is None:
        return "missing"
    return repr(value) if isinstance(value, float) else str(value)


def shown_score(value: Any) -> str:
    """A score with six digits."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def shown_run(run: Any) -> str:
    """A label or a run of numbers of a region."""
    return f"{shown(run[0])} … {shown(run[1])}" if isinstance(run, list) else shown(run)
