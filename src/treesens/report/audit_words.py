"""An audit in plain words: a summary, what each claim rests on, and what it does not say."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from treesens.report.audit_table import classes_of, gap_of
from treesens.report.share_words import share_of

Record = dict[str, Any]


def grouped(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Records by what is varied and which classes are meant, protected features first and then those with the greatest effect:
    rows that flip at the smallest gap, then at larger ones, then the largest swing.
    """
    groups = [
        {"name": " ".join(filter(None, (", ".join(varied), f"({classes})" if classes else ""))), "records": list(mine)}
        for (varied, classes), mine in groupby(records, key=lambda r: (tuple(r["varied"]), classes_of(r)))
    ]

    def effect(group: dict[str, Any]) -> tuple[Any, ...]:
        flips = tuple(-r["rows_flipped"] for r in group["records"])
        return (*flips, -(group["records"][0]["max_swing"] or 0.0))

    return sorted(groups, key=lambda group: (not group["records"][0].get("protected"), *effect(group)))


def summary(groups: Sequence[dict[str, Any]], facts: Record) -> list[str]:
    """What was found, a sentence each; of protected features first."""
    lines = [_protected_line(group) for group in groups if group["records"][0].get("protected")]
    for gap in dict.fromkeys(gap_of(r) for group in groups for r in group["records"]):
        mine = [(g["name"], r) for g in groups for r in g["records"] if gap_of(r) == gap]
        flips = [(name, r) for name, r in mine if r["rows_flipped"]]
        if flips:
            name, most = max(flips, key=lambda item: item[1]["rows_flipped"])
            share = 100 * most["rows_flipped"] / max(1, most["rows"])
            lines.append(
                f"{_at(gap).capitalize()}, {len(flips)} of {len(mine)} features (or sets) "
                f"{'changes' if len(flips) == 1 else 'change'} "
                "the answer for rows of the data; "
                f"{name} does so for most: {most['rows_flipped']:,} of {most['rows']:,} rows ({share:.2g} %)."
            )
        else:
            lines.append(
                f"{_at(gap).capitalize()}, no row of the data changes its answer, whichever of {len(mine)} features is changed."
            )
        other = [r for _, r in mine if not r["rows_flipped"]]
        found, none, unknown = (sum(r["verdict"] == v for r in other) for v in ("found", "none", "unknown"))
        parts = [f"{found} {'changes' if found == 1 else 'change'} it for an input that is no row"] if found else []
        parts += [f"{none} {'is' if none == 1 else 'are'} proved to change it for no input"] if none else []
        parts += [f"{unknown} {'is' if unknown == 1 else 'are'} undecided"] if unknown else []
        if parts:
            lines.append(f"Of the others {_at(gap)}, {', '.join(parts)}.")
        lines += _share_lines(gap, mine) + _typical_lines(gap, mine)
    swings = [(g["name"], g["records"][0]) for g in groups if g["records"][0]["max_swing"] is not None]
    if swings:
        name, most = max(swings, key=lambda item: item[1]["max_swing"])
        lines.append(f"The largest swing of the score by one change is {most['max_swing']:.6g}, by {name}.")
    if facts["data"]["excluded"]:
        lines.append(
            f"{facts['data']['excluded']:,} of {facts['data']['rows']:,} rows lie outside the domain and were left out."
        )
    if facts["interrupted"]:
        lines.append("The audit was interrupted: what is missing below was not asked.")
    return lines


def _at(gap: str) -> str:
    """At which gap, or by which decision."""
    return f"by {gap}" if gap.startswith("decision ") else f"at {gap}"


def _protected_line(group: dict[str, Any]) -> str:
    """What is known of a protected feature, gap by gap."""
    words = {
        "found": "other inputs of the domain change their answer",
        "none": "proved for no input",
        "unknown": "undecided",
    }
    told = [
        f"{r['rows_flipped']:,} of {r['rows']:,} rows change their answer" if r["rows_flipped"] else words[r["verdict"]]
        for r in group["records"]
    ]
    parts = [f"{_at(gap_of(r))} {text}" for r, text in zip(group["records"], told, strict=True)]
    return f"Protected: {group['name']}: {'; '.join(parts)}."


def _share_lines(gap: str, mine: Sequence[tuple[str, Record]]) -> list[str]:
    """Which feature flips the largest share of inputs, as far as is known."""
    known = [(name, record) for name, record in mine if record.get("share")]
    if not known:
        return []
    name, most = max(known, key=lambda item: _share_value(item[1]["share"]))
    least = sum(r["share"]["upper"] == 0 for _, r in known)
    words = f"{_at(gap).capitalize()}, {name} flips the largest share of inputs: {share_of(most)}."
    return [words + (f" For {least} of {len(known)} it is proved to be 0." if least else "")]


def _share_value(share: Record) -> float:
    return float(share["lower"] if share["estimate"] is None else share["estimate"]["value"])


def _typical_lines(gap: str, mine: Sequence[tuple[str, Record]]) -> list[str]:
    """What changes if only typical inputs count."""
    found = [r for _, r in mine if r.get("typical") and r["verdict"] == "found"]
    if not found:
        return []
    only = f"only typical inputs count ({found[0]['typical']['percent']:g} %)"
    stays, gone, unknown = (sum(r["typical"]["verdict"] == v for r in found) for v in ("found", "none", "unknown"))
    if stays == len(found):
        all_of_them = "the finding" if stays == 1 else f"all {stays} findings"
        return [f"If {only}, {all_of_them} {_at(gap)} {'stays' if stays == 1 else 'stay'}."]
    left = [f"{stays} of {len(found)} findings {_at(gap)} {'stays' if stays == 1 else 'stay'}"] if stays else []
    left += [f"{gone} {'has' if gone == 1 else 'have'} no pair any more (proved)"] if gone else []
    left += [f"{unknown} {'is' if unknown == 1 else 'are'} undecided"] if unknown else []
    of_all = "" if stays else f" of {len(found)} findings {_at(gap)}:"
    return [f"If {only},{of_all} {', '.join(left)}."]


def questions(records: Sequence[Record]) -> list[tuple[str, str]]:
    """Every question in numbers, with the name of its gap."""
    return list(dict.fromkeys((gap_of(r), r["question"]) for r in records))


def method_of(record: Record) -> str:
    """How an answer was found, and what kind of proof it is."""
    if record["verdict"] == "none":
        reason = record["reason"].removeprefix(f"{record['backend']}: ")
        return f"proof ({record['proof']}) by {record['backend']}: {reason}"
    if record["verdict"] == "unknown":
        return f"undecided: {record['reason']}"
    where = "a row of the data" if record["rows_flipped"] else f"a pair found by {record['backend']}"
    replay = {"library": "predicted by the library itself", "emulated": "in the library's arithmetic, bit for bit"}
    return f"{where}, evaluated exactly and {replay.get(record['replay'], record['replay'])}"


def trusted(records: Sequence[Record]) -> list[str]:
    """What a reader has to trust, by kind of claim."""
    lines = ["That the model file and the data are those of production: their SHA-256 stand below."]
    kinds = {r["proof"] for r in records if r["verdict"] == "none"}
    replays = {r["replay"] for r in records if r["verdict"] == "found"}
    certified = {r["verdict"] for r in records if any(c["file"] for c in r.get("certificates", ()))}
    if "library" in replays:
        lines.append("Pairs: nothing but the library that made the model, which predicted both inputs.")
    if "emulated" in replays:
        lines.append(
            "Pairs: that the model file is read as the library reads it (tested bit for bit; docs/frontends.md)."
        )
    lines.append(
        "Rows that flip: that the model file is read as the library reads it, and the exact sweep over all rows."
    )
    if "none" in certified:
        lines.append(
            "Proofs with a certificate: the checker `treesens-verify` and the model file, not treesens or a solver."
        )
    if "exact" in kinds:
        lines.append("Proofs marked exact: the compiler and the engine of treesens, which count in whole numbers.")
    if "bound" in kinds:
        lines.append("Proofs marked bound: the proved bound of the largest swing, by the same engine.")
    if "library" in kinds:
        lines.append("Proofs marked library: the rounded sums of the library that made the model; exact sums differ.")
    if "tolerance" in kinds:
        lines.append("Proofs marked tolerance: a floating-point solver, whose rows were relaxed outward.")
    return lines


def limits(records: Sequence[Record], facts: Record, domain: str = "the domain in the annex") -> list[str]:
    """What the audit does not say; `domain` says where the domain stands."""
    seconds = facts.get("settings", {}).get("seconds per set")
    lines = [
        f"Every proof and every bound is about {domain}, and about nothing outside of it.",
        "One feature (or set) is changed at a time, and all others stay as they are: what changes along with it in the real "
        "world is not modelled.",
        "A pair is possible by the domain; whether it is likely is for its distance to the nearest row to tell.",
        "The audit is about what the model does. It judges neither the data, nor labels, nor how decisions are used, and is no "
        "statement about compliance with any rule.",
    ]
    if any(r["verdict"] == "unknown" for r in records):
        lines.append("What is undecided may be either; more time may decide it.")
    if not all(r["rows_complete"] for r in records):
        lines.append(
            "Not all combinations of values were tried for every row: some counts are lower bounds (at least)."
        )
    if seconds is not None:
        lines.append(
            f"Searches had {seconds:g} seconds for each set: nearest pairs, and swings with a bound above them, may be "
            "improved by more time, and need not be the same in another run if time ended them."
        )
    return lines
