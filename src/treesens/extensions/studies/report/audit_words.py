"""An audit in plain words: a summary, the basis of each claim, and the limits of the audit."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from treesens.extensions.studies.largest import Largest, Status, swing_of_record
from treesens.extensions.studies.report.audit_table import classes_of, flips_of_words, gap_of, shape_of
from treesens.extensions.studies.report.fact_words import largest_words, share_of
from treesens.report.changes import Names

Record = dict[str, Any]
_MORE_SECONDS = 20.0
_LISTED = 5
"""Maximum number of features that the first sentence names."""


def grouped(records: Sequence[Record], names: Names | None = None) -> list[dict[str, Any]]:
    """Groups of records with the same varied features and classes: groups with protected features come first; ties are ordered
    by the number of rows that flip at the smallest gap, then at larger gaps, and then by the largest swing.
    """
    groups = [
        {"name": " ".join(filter(None, (", ".join(varied), f"({classes})" if classes else ""))), "records": list(mine)}
        for (varied, classes), mine in groupby(records, key=lambda r: (tuple(r["varied"]), classes_of(r, names)))
    ]

    def effect(group: dict[str, Any]) -> tuple[Any, ...]:
        flips = tuple(-r["rows_flipped"] for r in group["records"])
        return (*flips, -(group["records"][0]["max_swing"] or 0.0))

    return sorted(groups, key=lambda group: (not group["records"][0].get("protected"), *effect(group)))


def summary(groups: Sequence[dict[str, Any]], facts: Record) -> list[str]:
    """The findings, one sentence for each; protected features come first."""
    lines = [_protected_line(group) for group in groups if group["records"][0].get("protected")]
    lines += _not_audited(groups, facts)
    for gap in dict.fromkeys(gap_of(r) for group in groups for r in group["records"]):
        mine = [(g["name"], r) for g in groups for r in g["records"] if gap_of(r) == gap]
        flips = [(name, r) for name, r in mine if r["rows_flipped"]]
        complete = all(r["rows_complete"] for _, r in mine)
        pairs = len({tuple(r["varied"]) for _, r in mine}) < len(mine)
        things = "combination{} of features and classes" if pairs else "feature{} (or sets)"
        features = f"{len(mine)} audited {things.format('' if len(mine) == 1 else 's')}"
        if flips:
            name, most = max(flips, key=lambda item: item[1]["rows_flipped"])
            lines.append(
                f"{_at(gap).capitalize()}, {largest_words(_count(len(flips), complete))} of {features} "
                f"{'flips' if len(flips) == 1 else 'flip'} rows of the data; "
                f"{name} flips {'most' if complete else 'most as far as is known'}: {flips_of_words(most)}."
            )
        elif complete:
            lines.append(f"{_at(gap).capitalize()}, none of {features} flips a row of the data.")
        else:
            lines.append(
                f"{_at(gap).capitalize()}, none of {features} is known to flip a row of the data; not all "
                "combinations of values were tried."
            )
        other = [r for _, r in mine if not r["rows_flipped"]]
        found, none, unknown = (sum(r["verdict"] == v for r in other) for v in ("found", "none", "unknown"))
        parts = [f"{found} {'flips' if found == 1 else 'flip'} an input of the domain"] if found else []
        parts += [f"{none} {'is' if none == 1 else 'are'} proved to flip no input of the domain"] if none else []
        parts += [f"{unknown} {'is' if unknown == 1 else 'are'} undecided"] if unknown else []
        if parts:
            lines.append(f"Of the others {_at(gap)}, {', '.join(parts)}.")
        lines += _share_lines(gap, mine) + _typical_lines(gap, mine)
    lines += _swing_line(groups)
    if facts["data"]["excluded"]:
        lines.append(
            f"{facts['data']['excluded']:,} of {facts['data']['rows']:,} rows lie outside the domain and were left out."
        )
    if facts["interrupted"]:
        lines.append("The audit was interrupted: some questions were not answered.")
    return lines


def _at(gap: str) -> str:
    """A gap or a decision with its preposition, for a sentence."""
    return f"by {gap}" if gap.startswith("decision ") else f"at {gap}"


def _protected_line(group: dict[str, Any]) -> str:
    """The findings about a protected feature, one per gap."""
    words = {
        "found": "an input of the domain flips",
        "none": "no input of the domain flips (proved)",
        "unknown": "undecided",
    }
    told = [flips_of_words(r) if r["rows_flipped"] else words[r["verdict"]] for r in group["records"]]
    parts = [f"{_at(gap_of(r))} {text}" for r, text in zip(group["records"], told, strict=True)]
    return f"Protected: {group['name']}: {'; '.join(parts)}."


def _not_audited(groups: Sequence[dict[str, Any]], facts: Record) -> list[str]:
    """A sentence about protected features that were not audited."""
    asked = {name for group in groups for name in group["records"][0]["varied"]}
    missing = [name for name in (facts.get("meaning") or {}).get("protected", ()) if name not in asked]
    return [f"Protected, and not audited: {', '.join(missing)}."] if missing else []


def _count(value: int, exact: bool) -> Largest:
    return Largest.of(value, value if exact else None)


def _swing_line(groups: Sequence[dict[str, Any]]) -> list[str]:
    """The feature with the largest known swing of the score, and the bound on the swings of all audited features."""
    asked = [(g["name"], g["records"][0]) for g in groups if g["records"][0].get("max_swing_unit") is not None]
    known = [(name, one, swing_of_record(one)) for name, one in asked]
    reached = [item for item in known if item[2].value is not None]
    if not reached:
        return []
    name, record, most = max(reached, key=lambda item: item[2].value or 0.0)
    words = f"{name} has the largest swing of the {record['max_swing_unit']} found: {largest_words(most)}"
    of_all = Largest.over(one for _, _, one in known)
    if of_all.status is Status.PROVED:
        return [f"{words}. It is the largest of all audited features (proved)."]
    if of_all.bound is None:
        return [f"{words}."]
    return [f"{words}. The largest of all audited features: {largest_words(of_all)}."]


def shapes(groups: Sequence[dict[str, Any]]) -> list[str]:
    """The direction in which the score moves with each feature, with the largest fall and the largest rise."""
    lines = []
    for group in groups:
        known = group["records"][0].get("shape")
        if known is None:
            continue
        moves = [
            f"largest {word} {largest_words(Largest.of(known[f'largest_{word}'], known[f'largest_{word}_bound']))}"
            for word in ("fall", "rise")
            if known["shape"] != "unordered"
        ]
        lines.append("; ".join([f"{group['name']}: {shape_of(group['records'][0])}", *moves]))
    return lines


def headline(groups: Sequence[dict[str, Any]], facts: Record) -> str:
    """The first sentence of a page and a terminal: the effect of the protected features (or of all) at the first gap."""
    of = [group for group in groups if group["records"][0].get("protected")] or list(groups)
    if not of:
        return ""
    protected = bool(of[0]["records"][0].get("protected"))
    noun = "feature" if all(len(group["records"][0]["varied"]) == 1 for group in of) else "set of features"
    strongest: dict[tuple[str, ...], tuple[str, Record]] = {}  # of all pairs of classes that a set is audited for
    for group in sorted(of, key=lambda group: ("found", "unknown", "none").index(group["records"][0]["verdict"])):
        strongest.setdefault(tuple(group["records"][0]["varied"]), (group["name"], group["records"][0]))
    first = list(strongest.values())
    subject = _subject(len(first), protected, noun, suggested=bool(of[0]["records"][0].get("suggested")))
    about = first[0][1]
    change = "move the prediction so far" if about.get("max_swing_unit") == "value" else "change a decision"
    if len(about.get("classes", ())) == 1 and "threshold" not in about:
        change = f"move the score of class {about['classes'][0]} so far"
    parts: list[str] = []
    for verdict in ("found", "none", "unknown"):
        some = [(name, record) for name, record in first if record["verdict"] == verdict]
        if not some:
            continue
        who, be = f"{len(some)} of {len(first)}" + ("" if parts else subject), _is(some)
        if verdict == "found":
            listed = [f"{name} ({flips_of_words(r)})" for name, r in some[:_LISTED]]
            more = f" and {len(some) - _LISTED} more" if len(some) > _LISTED else ""
            parts.append(f"{who} can {change}: {', '.join(listed)}{more}")
        elif verdict == "none":
            parts.append(f"{who} {be} proved not to {'do so' if parts else change}")
        else:
            parts.append(f"{who} {be} undecided")
    sentences = [f"{_at(gap_of(first[0][1])).capitalize()}, {'; '.join(parts)}."]
    records = [record for group in groups for record in group["records"]]
    if unknown := [record for record in records if record["verdict"] == "unknown"]:
        again = [r for r in unknown if r.get("protected")] or unknown
        sentences.append(
            f"Undecided: {len(unknown)} of {len(records)} questions; run again with {_again(again, facts)}."
        )
    return " ".join([*sentences, *_not_audited(groups, facts)])


def _subject(count: int, protected: bool, noun: str, *, suggested: bool) -> str:
    """The subject of the headline after its numbers."""
    many = noun if count == 1 else {"feature": "features"}.get(noun, "sets of features")
    return f" {'protected' if protected else 'audited'} {many}" + (" (suggested by name)" if suggested else "")


def _again(undecided: Sequence[Record], facts: Record) -> str:
    """The options that give undecided sets more time."""
    seconds = max(_MORE_SECONDS, 4 * facts.get("settings", {}).get("seconds per set", 0))
    sets = dict.fromkeys(",".join(f'"{n}"' if "," in n else n for n in record["varied"]) for record in undecided)
    return " ".join([*(f"-v {shlex.quote(names)}" for names in list(sets)[:_LISTED]), f"-t {seconds:g}"])


def _is(some: Sequence[Any]) -> str:
    return "is" if len(some) == 1 else "are"


def _share_lines(gap: str, mine: Sequence[tuple[str, Record]]) -> list[str]:
    """A sentence about the feature that is known to flip the largest share of inputs."""
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
    """A sentence about the findings among typical inputs."""
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
    """The distinct questions of the records, each as a pair of its gap and its text with numbers."""
    return list(dict.fromkeys((gap_of(r), r["question"]) for r in records))


def method_of(record: Record) -> str:
    """The method that found an answer, and the kind of its proof."""
    if record["verdict"] == "none":
        reason = record["reason"].removeprefix(f"{record['backend']}: ")
        return f"proof ({record['proof']}) by {record['backend']}: {reason}"
    if record["verdict"] == "unknown":
        return f"undecided: {record['reason']}"
    where = "a row of the data" if record["rows_flipped"] else f"a pair found by {record['backend']}"
    replay = {"library": "predicted by the library itself", "emulated": "in the library's arithmetic, bit for bit"}
    return f"{where}, evaluated exactly and {replay.get(record['replay'], record['replay'])}"


def trusted(records: Sequence[Record]) -> list[str]:
    """The components that a reader has to trust, by kind of claim."""
    lines = ["Model and data: the model file and data are those used in production; their SHA-256 hashes are below."]
    kinds = {r["proof"] for r in records if r["verdict"] == "none"}
    replays = {r["replay"] for r in records if r["verdict"] == "found"}
    certified = {r["verdict"] for r in records if any(c["file"] for c in r.get("certificates", ()))}
    if "library" in replays:
        lines.append("Pairs: only the library that made the model, because this library predicted both inputs.")
    if "emulated" in replays:
        lines.append(
            "Pairs: that treesens reads the model file as the library does (tested bit for bit; docs/frontends.md)."
        )
    lines.append(
        "Rows that flip: that treesens reads the model file as the library does, and the exact sweep over all rows."
    )
    if "none" in certified:
        lines.append(
            "Proofs with a certificate: the checker `treesens-verify` and the model file, not treesens or a solver."
        )
    if "exact" in kinds:
        lines.append("Proofs marked exact: the compiler and the engine of treesens, which compute in whole numbers.")
    if "bound" in kinds:
        lines.append("Proofs marked bound: the proved bound of the largest swing, by the same engine.")
    if "library" in kinds:
        lines.append("Proofs marked library: the rounded sums of the library that made the model; exact sums differ.")
    if "tolerance" in kinds:
        lines.append("Proofs marked tolerance: a floating-point solver, whose rows were relaxed outward.")
    return lines


def limits(records: Sequence[Record], facts: Record, domain: str = "the domain in the annex") -> list[str]:
    """The limits of the audit; `domain` tells the reader where the domain is stated."""
    seconds = facts.get("settings", {}).get("seconds per set")
    lines = [
        f"Every proof and every bound is about {domain}, and states nothing about other inputs.",
        "One feature (or set) is changed at a time, and all others are fixed: features that change together in the "
        "real world are not modelled.",
        "A pair is possible in the domain; the distance to the nearest row indicates how likely the pair is.",
        "The audit covers the behaviour of the model. The audit does not assess the data, the labels or the use of "
        "decisions, and is not a statement about compliance with any rule.",
    ]
    if any(r["verdict"] == "unknown" for r in records):
        lines.append("An undecided question may have either answer; more time may decide it.")
    if not all(r["rows_complete"] for r in records):
        lines.append(
            "Not all combinations of values were tried for every row: some counts are lower bounds (at least)."
        )
    if seconds is not None:
        lines.append(
            f"The time limit of each set was {seconds:g} s: nearest pairs, and swings below their bound, may improve "
            "with more time, and may differ in another run if the time limit ended their search."
        )
    return lines
