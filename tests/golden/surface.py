"""What users see of treesens, as files: help, signatures, schemas, records, tables.

A test compares every file with what the code says today, byte by byte. A change that is wanted is written by
`python -m tests.golden.surface --write`, and named in the commit.
"""

from __future__ import annotations

import argparse
import inspect
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import click

import treesens
from treesens.cli import command_names, group, main
from treesens.commands.schema import schema_names, schema_of

FOLDER = Path(__file__).parents[1] / "data" / "golden"
STUDIES = {
    "audit": "model.json --data rows.csv --label y --gap 0.05,0.4 --vary p --vary p,q -t 20 --jobs 1",
    "audit_measure": "model.json --data rows.csv --label y --gap 0.05 --vary p --measure uniform -t 20 --jobs 1",
    "audit_typical": "model.json --data rows.csv --label y --gap 0.05 --vary p --typical 90% -t 20 --jobs 1",
    "audit_shape": "model.json --data rows.csv --label y --gap 0.05 --vary p --vary p,q --shape -t 20 --jobs 1",
    "count": "model.json --data rows.csv --label y --vary p --gap 0.05",
    "diff": "model.json other.json --data rows.csv --label y --gap 0.1 --set-limit 20",
    "gap": "model.json --data rows.csv --label y --threads 1",
    "groups": "model.json --data rows.csv --label y --favourable 1 --by q --by r,q --smallest 0.04",
    "range": "model.json --data rows.csv --label y --threads 1",
    "reasons": "model.json --data rows.csv --label y --favourable 1 --protected q --rows 0-20 -t 20",
    "repair": "model.json --data rows.csv --test rows.csv --label y --vary p --gap 0.05 --method average -o out.json",
    "robust": "model.json --data rows.csv --label y --rows 0-2 --norm l1",
    "robust_targeted": "model.json --data rows.csv --label y --rows 3 --targeted",
    "sets": "model.json --data rows.csv --label y --gap 0.05",
    "shape": "model.json --data rows.csv --label y --increasing p -t 20",
    "why": "model.json --data rows.csv --label y --row 0,1 --also box,radius,recourse",
    "why_several": "model.json --data rows.csv --label y --row 1 --all 3",
}
"""Runs of the commands that are studies, by the name of the file that holds the record."""
CALLS: dict[str, dict[str, Any]] = {
    "audit": {"label": "y", "gap": [0.05, 0.4], "vary": ["p", ["p", "q"]], "time_limit": 20, "jobs": 1},
    "count": {"label": "y", "vary": ["p"], "gap": 0.05},
    "gap": {"label": "y", "threads": 1},
    "groups": {"label": "y", "by": ["q"], "favourable": "1"},
    "reasons": {"label": "y", "protected": ["q"], "favourable": "1", "rows": [0, 1, 2, 3]},
    "repair": {"label": "y", "vary": ["p"], "gap": 0.05, "method": "average", "test": "rows.csv"},
    "robust": {"label": "y", "rows": [0, 1, 2], "norm": "l1"},
    "sets": {"label": "y", "gap": 0.05},
    "shape": {"label": "y", "increasing": ["p"], "time_limit": 20},
    "why": {"label": "y", "rows": [0, 1], "also": ["box", "radius", "recourse"]},
}
"""The same from Python."""
VOLATILE = {"seconds", "command", "treesens", "library_version", "produced", "checked"}
"""What no two runs have in common, or no two installations."""
TIMES = re.compile(r"\b\d+\.\d\d(?= +(?:closed|optimal)|$)|\b\d+\.\d s$", re.MULTILINE)
"""Seconds in tables."""


def helps() -> Iterator[tuple[str, str]]:
    """`--help` of the group and of every command, 80 columns wide."""
    for name in ("treesens", *command_names()):
        command = group if name == "treesens" else group.get_command(click.Context(group), name)
        assert command is not None
        parent = None if name == "treesens" else click.Context(group, info_name="treesens", terminal_width=80)
        context = click.Context(
            command, info_name=name, parent=parent, terminal_width=80, help_option_names=["-h", "--help"]
        )
        yield f"help/{name}.txt", command.get_help(context) + "\n"


def signatures() -> Iterator[tuple[str, str]]:
    """Everything public in `treesens`, with the signature and the text of each; a class with its members."""
    lines = [part for name in sorted(treesens.__all__) for part in _told(name, getattr(treesens, name))]
    yield "signatures.txt", "\n".join(lines) + "\n"


def _told(name: str, value: Any) -> Iterator[str]:
    if inspect.isfunction(value):
        yield from (f"def {name}{inspect.signature(value)}", f"    {inspect.getdoc(value)}", "")
    elif inspect.isclass(value):
        yield from (f"class {name}{inspect.signature(value)}", f"    {inspect.getdoc(value)}", "")
        for member, what in sorted(inspect.getmembers(value)):
            if member.startswith("_"):
                continue
            if isinstance(what, property):
                yield f"    {name}.{member}: {inspect.getdoc(what)}"
            elif inspect.isfunction(what):
                yield f"    {name}.{member}{inspect.signature(what)}: {inspect.getdoc(what)}"
        yield ""


def schemas() -> Iterator[tuple[str, str]]:
    """The schema of every command that has one."""
    for name in schema_names():
        yield f"schemas/{name}.json", json.dumps(schema_of(name), indent=1) + "\n"


@contextmanager
def _files() -> Iterator[None]:
    """A folder that holds the models and the table, as the current one."""
    with TemporaryDirectory() as place:
        for file in ("model.json", "other.json", "rows.csv"):
            Path(place, file).write_bytes((FOLDER / file).read_bytes())
        with chdir(place):
            yield


def _printed(name: str, words: str) -> str:
    """What a study prints."""
    printed = io.StringIO()
    command = [name, *words.split()]
    if "--replay" in _options_of(name):
        command += ["--replay", "emulated"]
    wide = mock.patch.dict(os.environ, {"COLUMNS": "200"})
    with wide, redirect_stdout(printed), redirect_stderr(io.StringIO()), suppress(SystemExit):
        main(command)
    return printed.getvalue()


def records() -> Iterator[tuple[str, str]]:
    """A record of every study, without times."""
    with _files():
        for name, words in STUDIES.items():
            found = json.loads(_printed(name.partition("_")[0], f"{words} --json"))
            yield f"records/{name}.json", json.dumps(_settled(found), indent=1) + "\n"


def tables() -> Iterator[tuple[str, str]]:
    """What the same runs show to people."""
    with _files():
        for name, words in STUDIES.items():
            yield f"tables/{name}.txt", TIMES.sub("(time)", _printed(name.partition("_")[0], words))


def calls() -> Iterator[tuple[str, str]]:
    """The records and columns of the same studies from Python."""
    with _files():
        for name, options in CALLS.items():
            found = getattr(treesens, name)("model.json", "rows.csv", **options)
            told = {"repr": repr(found), "columns": found.columns, "records": found.records}
            yield f"calls/{name}.json", json.dumps(_settled(told), indent=1) + "\n"
        found = treesens.diff("model.json", "other.json", "rows.csv", label="y", gap=0.1, set_limit=20)
        told = {"repr": repr(found), "columns": found.columns, "record": found.record}
        yield "calls/diff.json", json.dumps(_settled(told), indent=1) + "\n"


def _options_of(name: str) -> set[str]:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    return {option for one in command.params for option in one.opts}


def _settled(value: Any) -> Any:
    """A record without what is volatile, its keys in their order."""
    if isinstance(value, dict):
        return {key: None if key in VOLATILE else _settled(part) for key, part in value.items()}
    return [_settled(part) for part in value] if isinstance(value, list) else value


PARTS: dict[str, Callable[[], Iterator[tuple[str, str]]]] = {
    "help": helps, "signatures": signatures, "schemas": schemas, "records": records, "tables": tables,
    "calls": calls,
}  # fmt: skip


def train() -> None:
    """The models and the table of the records. Their files are kept, so that no version of a library changes a record."""
    import numpy as np
    import xgboost

    rng = np.random.default_rng(7)
    rows = rng.integers(0, 6, (60, 3)).astype(np.float32)
    value = rows[:, 0] + 2 * ((rows[:, 1] > 2) ^ (rows[:, 2] > 3)) + 0.5 * rows[:, 2]
    labels = (value > np.median(value)).astype(int)
    table = xgboost.DMatrix(rows, labels, feature_names=["p", "q", "r"])
    how = {"objective": "binary:logistic", "max_depth": 3, "seed": 1}
    for name, trees in (("model", 5), ("other", 6)):
        xgboost.train(how, table, trees).save_model(FOLDER / f"{name}.json")
    lines = [f"{int(p)},{int(q)},{int(r)},{y}" for (p, q, r), y in zip(rows, labels, strict=True)]
    (FOLDER / "rows.csv").write_text("\n".join(["p,q,r,y", *lines]) + "\n")


def write() -> None:
    """All files anew; those of what is gone are removed."""
    if not (FOLDER / "model.json").exists():
        train()
    for name, part in PARTS.items():
        for old in (FOLDER / name).glob("*"):
            os.remove(old)
        for place, text in part():
            path = FOLDER / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", required=True, help="writes the files")
    parser.parse_args()
    write()
    sys.exit(0)
