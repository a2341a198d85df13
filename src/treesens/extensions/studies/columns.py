"""Declarations on the fields of records: their columns in tables and frames, and their values without certificates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from treesens.compiler.base.tolerance import Closeness, Tolerance

Record = dict[str, Any]


@dataclass(frozen=True)
class Shown:
    """A column of a table. `title` is the heading (with `{unit}` for the unit of all records), or None if tables have no such
    column. `text` writes a cell; with `hide_if_empty`, a column of empty cells is left out. Columns are ordered by `place`,
    then by field order. `frame` is True if frames in Python have the column; a `spare` column is left out if space is short.
    """

    title: str | None
    text: Callable[[Record], str] | None
    right: bool
    hide_if_empty: bool
    frame: bool
    place: int
    spare: bool


def column(
    title: str | None = None,
    text: Callable[[Record], str] | None = None,
    *,
    default: Any = MISSING,
    right: bool = False,
    hide_if_empty: bool = False,
    frame: bool = True,
    place: int = 0,
    spare: bool = False,
    uncertified: Any = MISSING,
) -> Any:
    """A field of a record with its column. `uncertified` replaces its value if no certificate covers the value."""
    shown = {"shown": Shown(title, text, right, hide_if_empty, frame, place, spare)}
    return field(
        default=default, metadata={**shown, **({} if uncertified is MISSING else {"uncertified": uncertified})}
    )


def uncertified(instead: Any, default: Any = MISSING) -> Any:
    """A field that no claim covers; `instead` is its value in a study that requires certificates."""
    return field(default=default, metadata={"uncertified": instead})


def shown_fields(kind: type[Any]) -> list[tuple[str, Shown]]:
    """The fields that declare a column, by their JSON names, in the order of the columns."""
    found = [(one.name.rstrip("_"), one.metadata["shown"]) for one in fields(kind) if "shown" in one.metadata]
    return sorted(found, key=lambda one: one[1].place)


def frame_of(kind: type[Any], records: Sequence[Record]) -> dict[str, list[Any]]:
    """The columns of a frame, one list each. Optional fields are left out if no record has them."""
    needed = {one.name.rstrip("_") for one in fields(kind) if one.default is MISSING}
    return {
        name: [_plain(name, record.get(name)) for record in records]
        for name, shown in shown_fields(kind)
        if shown.frame and (name in needed or any(name in record for record in records))
    }


def _plain(name: str, value: Any) -> Any:
    """A value for a cell of a frame: names as one text, an estimate as its number."""
    if name == "estimate":
        return None if value is None else value["value"]
    if isinstance(value, list | tuple | Mapping):
        if name == "group":
            return values(name)({name: value})
        return (" / " if name in ("classes", "outcomes") else ", ").join(map(str, value))
    return "" if value is None and name in ("classes", "outcomes") else value


def values(name: str) -> Callable[[Record], str]:
    """The text of a list of values of features."""

    def text(record: Record) -> str:
        from treesens.report.tables import value_text

        return ", ".join(map(value_text, record[name]))

    return text


def names(name: str) -> Callable[[Record], str]:
    """The text of a list of names."""
    return lambda record: ", ".join(record[name])


def number(name: str, digits: int = 6) -> Callable[[Record], str]:
    """The text of a number, or a dash for None."""
    return lambda record: "–" if record[name] is None else f"{record[name]:.{digits}g}"


def size(name: str) -> Callable[[Record], str]:
    """The text of a gap or a margin; empty if the record has neither."""
    return lambda record: f"{record[name]:g}" if name in record else ""


def seconds(record: Record) -> str:
    """The text of the elapsed time."""
    return f"{record['seconds']:.2f}"


def how(record: Record) -> str:
    """The reason why a record is open, or `closed`."""
    return record["reason"] or ("closed" if record["closed"] else "")


def closed_words(record: Record) -> str:
    """`optimal`, or the tolerance within which a bound is closed."""
    if record["status"] == Closeness.OPTIMAL:
        return "optimal"
    return f"closed within {Tolerance(**record['tolerance']).words()}"


def classes(record: Record, name_of: Callable[[Any], str] = str) -> str:
    """The classes or outcomes of a record, and its cut-off; empty if the record has none."""
    if "outcomes" in record:
        return " / ".join(record["outcomes"])
    cut = f" at {record['threshold']:g}" if "threshold" in record else ""
    return " / ".join(map(name_of, record.get("classes", ()))) + cut
