"""Sentences about the reason for a row's class, from the record of `treesens why`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_SHARES = 5
"""Maximum number of features whose shares in the score are named."""


def reason_words(record: Mapping[str, Any]) -> str:
    """The known facts about one row, one sentence per line."""
    kind = "outcome" if "decision" in record else "class"
    called = f"class {record['class']}"
    if "class_name" in record:
        called = f"{record['class_name']} (class {record['class']})"
    elif "decision" in record:
        called = f"{record['class']} (decision {record['decision']})"
    lines = [f"row {record['row']}: {called}", *_why(record, kind)]
    if record["contrast"]:
        changed = ", ".join(record["contrast"])
        lines.append(f"  another {kind} by changing {changed}{_values(record['point'], record['contrast'])}")
    elif record.get("changeable") is False and record["sufficient"] != {}:
        lines.append(f"  no permitted change gives another {kind} (proved)")
    lines += _distance(record.get("radius"), kind, f"the nearest input of another {kind} lies {{}} away by linf")
    lines += _distance(record.get("recourse"), kind, "the cheapest change costs {} by l1")
    lines += _shares(record.get("shap"))
    return "\n".join(lines)


def _why(record: Mapping[str, Any], kind: str) -> list[str]:
    if record["sufficient"] is None:
        return [f"  no reason: {record['reason']}"]
    if not record["sufficient"]:
        return [f"  always: no input of the domain has another {kind}"]
    which = "no smaller set of features decides it" if record["smallest"] else "none of them can be left out"
    lines = [f"  because {_settings(record['sufficient'])}: whatever the other features are ({which}, proved)"]
    lines += [f"  or because {_settings(other)}" for other in record.get("reasons", [])[1:]]
    if "reasons" in record:
        lines.append("  (there is no other minimal reason)" if record["complete"] else "  (there may be others)")
    if record.get("box"):
        sides = "; ".join(f"{name} {_runs(runs)}" for name, runs in record["box"].items())
        lines.append(f"  the {kind} holds as long as {sides} (proved)")
    return lines


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _runs(runs: Sequence[Any]) -> str:
    """The ranges and values of one feature, in the form in which regions of answers are printed."""
    words = [f"from {run[0]} to {run[1]}" for run in runs if isinstance(run, list)]
    labels = [str(run) for run in runs if run is not None and not isinstance(run, list)]
    words += [f"= {labels[0]}"] if len(labels) == 1 else [f"in {{{', '.join(labels)}}}"] if labels else []
    return " or ".join([*words, "missing"] if None in runs else words)


def _distance(found: Mapping[str, Any] | None, kind: str, sentence: str) -> list[str]:
    if found is None:
        return []
    if found["distance"] is None:
        bound = "" if found["bound"] is None else f", and none is nearer than {found['bound']:.6g} (proved)"
        known = f"no input of another {kind} is known" + bound
        none = f"no {'permitted change gives' if 'cost' in sentence else 'input has'} another {kind}"
        return [f"  by {found['norm']} {none if found['verdict'] == 'none' else known}"]
    value = f"{found['distance']:.6g}"
    proved = "none is nearer" if found["closed"] else f"none is nearer than {found['bound'] or 0.0:.6g}"
    return [f"  {sentence.format(value)}{_values(found['point'], found['changes'])} ({proved}, proved)"]


def _values(point: Mapping[str, Any] | None, names: Sequence[str]) -> str:
    return "" if point is None else ": " + _settings({name: point[name] for name in names})


def _shares(found: Mapping[str, Any] | None) -> list[str]:
    if found is None:
        return []
    first = ", ".join(f"{name} {value:+.3g}" for name, value in list(found["values"].items())[:_SHARES])
    agreed = (
        "" if found["agreement"] is None else f"; {found['agreement']:.0%} of the reason is among its first features"
    )
    return [f"  TreeSHAP: {first}{agreed}"]
