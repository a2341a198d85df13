"""Dictionaries that show themselves as tables in a notebook: what a model is, and what questions mean."""

from __future__ import annotations

from typing import Any

from treesens.report.explain import Explanation

_PLAIN = ("format", "task", "trees", "leaves", "link", "number_type", "library_version", "sha256")


class Info(dict[str, Any]):
    """What `treesens info --json` tells of a model, by name; a table of the model and one of its features in a notebook."""

    def __repr__(self) -> str:
        return f"<model: {self['format']}, {self['trees']} trees, {len(self['features'])} features, {self['task']}>"

    def _repr_html_(self) -> str:
        from treesens.report.notebook import table, text

        facts = [[name.replace("_", " "), self[name]] for name in _PLAIN if self[name] is not None]
        facts.insert(3, ["depth", f"at most {self['depth']['max']}, {self['depth']['mean']} on average"])
        if self["classes"]:
            facts.insert(2, ["classes", ", ".join(map(str, self["classes"]))])
        features = sorted(self["features"], key=lambda one: -one["splits"])
        lines = [[f["name"], f["kind"], f["splits"], f["trees"], _range(f)] for f in features]
        notes = "".join(f"<p>{text(note)}</p>" for note in self["notes"])
        head = ["feature", "kind", "nodes that ask for it", "trees", "cuts or categories"]
        return table(["", "model"], facts) + table(head, lines) + notes


def _range(feature: dict[str, Any]) -> str:
    if feature["labels"]:
        return ", ".join(map(str, feature["labels"]))
    ends = feature["range_of_cuts"]
    return "" if ends is None else f"{feature['guards']} from {ends[0]:.6g} to {ends[1]:.6g}"


class Explanations(dict[str, Explanation]):
    """What questions mean, by their names; one below the other in a notebook."""

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self.values())
