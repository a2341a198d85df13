"""An audit as one HTML page without scripts and network access; all its facts are in the records."""

from __future__ import annotations

import hashlib
import json
import shlex
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Any

from treesens.compiler.base.files import write_atomically
from treesens.compiler.base.packages import PURPOSES, imported
from treesens.errors import UsageError
from treesens.extensions.measure.share_words import percent
from treesens.extensions.studies.report import audit_words, front_page
from treesens.extensions.studies.report.audit_table import (
    ROW_FLIPS,
    flips_of_words,
    gap_of,
    priced_on,
    rows_that_flip,
    swing_of,
    swing_units,
    swing_words,
)
from treesens.extensions.studies.report.drawings import heat_map, share_bars, short
from treesens.extensions.studies.report.fact_words import MEANINGS, share_of, typical_of, who_of
from treesens.extensions.studies.report.purpose import FIELDS, SIGNERS
from treesens.report.changes import NO_NUMBER, Names, in_names
from treesens.visible import visible, visible_json

_TEMPLATE, _STYLE = "audit.html.j2", "audit.css"


def write_report(path: Path, records: list[dict[str, Any]], facts: dict[str, Any], *, force: bool = False) -> Path:
    """Writes all facts and records as JSON and, in the same folder, the page with their hash; returns the path of the JSON.

    The records are written first, because writing the page may fail. Neither the records nor the page contain measured times.
    """
    attachment = attachment_of(path)
    facts, records = without_seconds(facts), without_seconds(records)
    text = visible_json(json.dumps({**facts, "results": records}, indent=1, ensure_ascii=False, allow_nan=False)) + "\n"
    content = text.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(content).hexdigest()
    write_atomically(attachment, content, derived=True, force=force)
    write_atomically(path, page(records, {**facts, "attachment": {"file": attachment.name, "sha256": digest}}))
    return attachment


def attachment_of(path: Path) -> Path:
    """The file of the records that belong to a page. Raises UsageError if the name of the page does not end in `.html`."""
    if path.suffix.lower() not in (".html", ".htm"):
        is_pdf = path.suffix.lower() == ".pdf"
        remedy = "call the page NAME.html" + (", and name the PDF next to it: --pdf NAME.pdf" if is_pdf else "")
        raise UsageError(
            f"a page is HTML, and a name in `{path.suffix}` is not"
            if path.suffix
            else "the page is HTML, but its name has no ending",
            place=str(path),
            remedy=remedy,
        )
    return path.with_suffix(".audit.json")


def page(records: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    """The text of the page. Raises UsageError if jinja2 is not installed."""
    jinja2 = imported("jinja2", PURPOSES["jinja2"])
    environment = jinja2.Environment(
        autoescape=jinja2.select_autoescape(default=True),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=seen,
    )
    environment.filters["value"] = shown
    environment.filters["score"] = shown_score
    environment.filters["run"] = shown_run
    environment.filters["features"] = changed_first
    environment.filters["short"] = short
    environment.filters["file_name"] = lambda path: str(path).replace("\\", "/").rsplit("/", 1)[-1]
    environment.filters["named"] = lambda words: in_names(words, Names.of_facts(facts))
    environment.filters["sentence_case"] = lambda words: words[:1].upper() + words[1:]
    environment.filters["method"] = audit_words.method_of
    environment.filters["who"] = who_of
    source = files(__package__)
    template = environment.from_string((source / _TEMPLATE).read_text(encoding="utf-8"))
    groups = audit_words.grouped(records, Names.of_facts(facts))
    gaps = list(dict.fromkeys(gap_of(r) for r in records))
    certificates, units = certificates_of(records), swing_units(records)
    text: str = template.render(
        style=(source / _STYLE).read_text(encoding="utf-8"),
        facts=facts,
        purpose=facts.get("purpose", {}),
        fields=FIELDS,
        signers=facts.get("purpose", {}).get("sign_off") or SIGNERS,
        groups=groups,
        gaps=gaps,
        front=front_page.lines(groups, facts),
        proxies=front_page.proxies(facts),
        methods=front_page.grouped_methods(groups, audit_words.method_of),
        pair_lines=front_page.pair_lines,
        directions=front_page.directions,
        names=Names.of_facts(facts),
        sentence=front_page.sentence,
        summary=audit_words.summary(groups, facts),
        questions=audit_words.questions(records),
        trusted=audit_words.trusted(records),
        limits=[*audit_words.limits(records, facts), *facts.get("purpose", {}).get("limitations", ())],
        map=heat_map(groups, gaps),
        bars=share_bars(groups),
        gap_of=gap_of,
        swing_of=swing_of,
        shapes=audit_words.shapes(groups),
        rows_that_flip=rows_that_flip,
        flips_of_words=flips_of_words,
        row_flips=ROW_FLIPS,
        priced_on=priced_on,
        percent=percent,
        swing_units=units,
        swing_words=swing_words(records, Names.of_facts(facts)),
        headline=audit_words.headline(groups, facts),
        share_of=share_of,
        typical_of=typical_of,
        typical=next((r["typical"] for r in records if r.get("typical")), None),
        shares=next((MEANINGS[r["share"]["measure"]] for r in records if r.get("share")), ""),
        certificates=certificates,
        check_command=check_command(certificates, facts["model"]["file"]),
    )
    return text


def certificates_of(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every claim with a requested certificate: the file of the certificate, or the reason for its absence."""
    return [
        {
            "name": ", ".join(record["varied"]),
            "gap": gap_of(record),
            **claim,
            "folder": str(PurePath(claim["file"]).parent) if claim["file"] else "",
            "file": PurePath(claim["file"]).name if claim["file"] else None,
        }
        for record in records
        for claim in record.get("certificates", ())
    ]


def check_command(certificates: list[dict[str, Any]], model: str) -> str:
    """The command that checks all certificates, quoted for a shell."""
    folders = list(dict.fromkeys(c["folder"] for c in certificates if c["file"]))
    return shlex.join(["treesens", "verify", *folders, "--model", model])


def seen(value: Any) -> Any:
    """A text in which characters that reorder or hide text are made visible; the caller escapes the result for HTML."""
    return visible(value, lines=True) if type(value) is str else value


def changed_first(record: dict[str, Any]) -> list[str]:
    """The features of a pair, starting with the features that differ between its points."""
    points = list(record["points"].values())
    return sorted(points[0], key=lambda name: points[0][name] == points[-1][name])


def shown(value: Any) -> str:
    """A value as a user would type it; a number is the shortest text that parses to the same input."""
    if value is None:
        return "missing"
    return repr(value) if isinstance(value, float) else str(value)


def shown_score(value: Any) -> str:
    """A score with six digits; for several classes, their scores one after another."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {shown_score(one)}" for name, one in value.items())
    if value is None:
        return NO_NUMBER
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def shown_run(run: Any) -> str:
    """The text of a region's part: a label, or a run of numbers."""
    if not isinstance(run, list):
        return shown(run)
    low, high = shown(run[0]), shown(run[1])
    return low if low == high else f"{low} … {high}"


def without_seconds(value: Any) -> Any:
    """A record without measured times, so that two runs of one command give the same record."""
    if isinstance(value, dict):
        return {key: without_seconds(item) for key, item in value.items() if key != "seconds"}
    return [without_seconds(item) for item in value] if isinstance(value, list) else value
