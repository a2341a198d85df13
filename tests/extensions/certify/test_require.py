"""`--require-certificate`: what rests on a proof never passes without one, whatever is asked."""

from __future__ import annotations

import json
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.extensions.certify.models import train
from treesens.cli import group
from treesens.commands.common import EXPECTED, INCONCLUSIVE, VIOLATED
from treesens.errors import UsageError

HEAD = 'model m from "m.json"\ndata d from "d.csv"\ndomain from d\nmeasure u: uniform\nmeasure t: chow-liu of d\n'
PAIR = "find a, b in m such that a = b except {f0, f1}"
QUESTIONS = {
    "none": "find a in m such that margin(a) >= 9",
    "rows without a certificate": "count rows of d as a, b in m such that distance(a, b, linf) <= 0.2; "
    "margin(a) - margin(b) >= 0.1",
    "bound without a certificate": "find a, b in m such that distance(a, b, linf) <= 0.25 maximize prob(a) - prob(b)",
    "pair": f"{PAIR}; margin(a) - margin(b) >= 90",
    "bound": "find a in m such that a.f0 <= 1 maximize margin(a)",
    "nearest of many": "find a in m such that margin(a) >= 0.1 minimize distance(a, nearest row of d, l1)",
    "distance of points": "find a, b in m such that margin(a) >= 0.1; margin(b) <= -0.1 minimize distance(a, b, l2)",
    "relation": "find a, b in m such that margin(a) >= -9; a.f0 - a.f1 >= 0.25; a.f1 - a.f2 >= 0.25; "
    "a.f2 - b.f0 >= 0.25; b.f0 - a.f0 >= -0.5",
    "disjunction": "find a in m such that margin(a) >= 9 or margin(a) <= -9",
    "rows": "count rows of d as a such that margin(a) >= 0",
    "no rows": "count rows of d as a such that margin(a) >= 90",
    "rows with a partner": "count rows of d as a, b in m such that a = b except f0; margin(a) - margin(b) >= 0.1",
    "several": "find a in m such that a.f0 <= 1 maximize margin(a) top 2",
    "all": "find a in m such that a.f0 <= 1 top 1000",
    "share": "sensitive m to f0 margin 0.1 share of u expect share < 100 %",
    "share by a tree": "sensitive m to f0 margin 0.1 share of t expect share < 100 %",
    "share of none": "sensitive m to f0 margin 90 share of u expect share < 50 %",
    "reason": "explain row 0 of d in m",
    "smallest reason": "explain row 0 of d in m smallest",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("required")
    train(4, made / "m.json")
    train(5, made / "n.json")
    (made / "d.csv").write_text("f0,f1,f2\n0,0,0\n1,0.5,1.5\n0.5,1,1\n1.5,1.5,0\n")
    return made


def asked(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(group, list(map(str, arguments)), standalone_mode=False)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.return_value, done.stdout, done.stderr


LOGGED = {"seconds", "size", "attempts", "certificates", "seed", "tolerance", "wanted", "total", "outside", "row"}
"""Keys that claim nothing about a model: costs of the work, terms of the request, and the number of rows of a table."""
SHOWN = {"points", "raw_points", "scores"}
"""An input and its scores: a witness shows them by itself."""
CERTIFIED = {"objective": "found", "bound": "bound", "gap": "bound", "share": "share"}
"""The claim that certifies the numbers below a key; a whole manifest certifies all others."""


def numbers_in(item: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """All numbers of a record, with the keys that lead to each; numbers within texts, too."""
    if isinstance(item, dict):
        for key, value in item.items():
            yield from numbers_in(value, (*path, key))
    elif isinstance(item, list):
        for value in item:
            yield from numbers_in(value, path)
    elif isinstance(item, (int, float)) and not isinstance(item, bool):
        yield path, item


def passes(record: dict[str, Any]) -> list[str]:
    """The numbers of a record, and its verdict, that no accepted certificate covers."""
    made = record.get("certificates") or []
    accepted = {c["claim"] for c in made if all(o["file"] for o in made if o["claim"] == c["claim"])}
    whole = bool(made) and all(c["file"] for c in made)
    if any(c["file"] is not None and ".share." in c["file"] for c in made):
        accepted.add("share")
    found = ["none"] if record["verdict"] == "none" and not whole else []
    for path, number in numbers_in(record):
        if LOGGED.intersection(path) or SHOWN.intersection(path):
            continue
        claim = CERTIFIED.get(path[-1]) or CERTIFIED.get(path[0])
        nothing_said = path[0] == "share" and (record["share"]["lower"], record["share"]["upper"]) in ((0, 1), (0, 0))
        if not (nothing_said or claim in accepted or (whole and "manifest" in accepted)):
            found.append(f"{'.'.join(path)} = {number}")
    return found


@pytest.mark.parametrize("kind", QUESTIONS)
def test_nothing_of_an_answer_passes(kind: str, folder: Path, tmp_path: Path) -> None:
    file = folder / f"{kind.replace(' ', '_')}.sens"
    file.write_text(f"{HEAD}query q: {QUESTIONS[kind]}\n")
    options = ("--json", "--certificate", tmp_path, "--require-certificate", "--core")
    code, out, _ = asked("check", file, *options)
    (record,) = json.loads(out)["results"]
    assert passes(record) == []
    assert code in (EXPECTED, INCONCLUSIVE)
    assert (record["verdict"] != "unknown" and record.get("as_expected") is not None) == (code == EXPECTED), record
    assert record.get("core") is None
    text = asked("check", file, *options[1:])[1]
    if record["verdict"] == "unknown" and "share" not in record:
        # The name, the reason and the files of accepted certificates: nothing of the answer.
        lines = [line for line in text.splitlines() if not line.startswith((" certificates: ", "  certificate of"))]
        said = " ".join(lines).replace(record["reason"], "")
        assert not re.search(r"[0-9]", re.sub(r"[0-9.]+ s\b", "", said)), text


STUDIES = {
    "gap": "gap m.json --data d.csv",
    "range": "range m.json --data d.csv",
    "shape": "shape m.json --data d.csv",
    "diff": "diff m.json n.json --data d.csv",
    "diff of sensitivities": "diff m.json n.json --data d.csv --margin 0.1",
    "audit": "audit m.json --data d.csv --margin 0.1,9",
    "audit of shares": "audit m.json --data d.csv --margin 0.1,9 --measure uniform",
    "audit of rows": "audit m.json --data d.csv --margin 0.1,9 --measure rows",
    "sets": "sets m.json --data d.csv --margin 0.1",
    "why": "why m.json --data d.csv",
    "smallest why": "why m.json --data d.csv --smallest",
    "all of why": "why m.json --data d.csv --all 3",
    "why with a box": "why m.json --data d.csv --also box",
    "why with a limit": "why m.json --data d.csv --fixed f0",
    "reasons": "reasons m.json --data d.csv --favourable 1",
    "reasons by values": "reasons m.json --data d.csv --favourable 1 --way values",
    "too few reasons": "reasons m.json --data d.csv --favourable 1 --most 1 --protected f0",
    "robust": "robust m.json --data d.csv",
    "robust by l2": "robust m.json --data d.csv --norm l2",
    "count": "count m.json --data d.csv --vary f0 --margin 0.1",
    "count by a tree": "count m.json --data d.csv --vary f0 --margin 0.1 --measure chow-liu",
    "groups": "groups m.json --data d.csv --favourable 1 --by f0",
    "groups of a measure": "groups m.json --data d.csv --favourable 1 --by f0 --measure uniform",
}
OPEN = {"all of why", "why with a box", "why with a limit"}
"""Studies of which a part has no certificate."""


WORK = LOGGED | {"schema_version", "model", "data", "domain", "settings", "assumed", "manifest", "nodes", "decisions"}
ASKED = {"margin", "ratio", "most", "radius", "row", "rows", "group"}
"""What was asked about, and the rows of a table that are in a group or none."""
INPUTS = SHOWN | {"input", "point", "fall", "rise", "fall_scores", "rise_scores", "sufficient", "value", "instead"}
CLAIMED = {
    "largest_gap", "largest_gap_bound", "value", "bound", "largest", "largest_fall", "largest_fall_bound", "largest_rise",
    "largest_rise_bound", "max_swing_bound", "lower", "upper", "favourable_rows", "ratio_lower", "ratio_upper", "part",
    "suffice", "do_not_suffice",
}  # fmt: skip
"""What claims of studies are about, and what follows from them alone."""


def without_certificate(document: dict[str, Any], claimed: set[str]) -> list[str]:
    """The numbers of a document that no claim is about; 0 says nothing of how many, or how much."""
    return [
        f"{'.'.join(path)} = {number}"
        for path, number in numbers_in(document)
        if number and not WORK.intersection(path) and path[-1] not in ASKED | claimed and not INPUTS.intersection(path)
    ]


def words_of(kind: str, folder: Path) -> list[str]:
    return [str(folder / word) if word.endswith((".json", ".csv")) else word for word in STUDIES[kind].split()]


@pytest.mark.parametrize("kind", STUDIES)
def test_no_study_passes_with_a_claim_left_open(kind: str, folder: Path, tmp_path: Path) -> None:
    words = words_of(kind, folder)
    free, _, _ = asked(*words, "-q", "--certificate", tmp_path)
    code, out, said = asked(*words, "-q", "--json", "--certificate", tmp_path, "--require-certificate")
    assert free == EXPECTED
    assert code == (INCONCLUSIVE if kind in OPEN else EXPECTED), said
    assert ("without one" in said) == (kind in OPEN)
    document = json.loads(out)
    assert without_certificate(document, set() if kind in OPEN else CLAIMED) == []
    records = document["rows"] if "rows" in document else document.get("results", [document])
    assert bool(records) == (kind not in OPEN)


@contextmanager
def full_disk() -> Iterator[None]:
    """No file can be written, so no certificate."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


ONE_OF_EACH = {words.split()[0]: kind for kind, words in reversed(STUDIES.items())} | {"audit": "audit of rows"}


@pytest.mark.parametrize("command", ONE_OF_EACH)
def test_a_study_that_can_have_no_certificates_shows_no_number(command: str, folder: Path, tmp_path: Path) -> None:
    words = [*words_of(ONE_OF_EACH[command], folder), "--certificate", tmp_path, "--require-certificate"]
    with full_disk():
        code, out, said = asked(*words, "--json")
        _, text, _ = asked(*words)
    document = json.loads(out)
    assert code not in (EXPECTED, VIOLATED), said
    assert without_certificate(document, set()) == []
    assert not document["manifest"]["claims"]
    assert not any(INPUTS.intersection(path) for path, _ in numbers_in(document))
    heading = r"^[^\n]* trees, .*? s$"  # of several lines where the names of files are long
    shown = re.sub(heading, "", text, flags=re.MULTILINE | re.DOTALL)
    shown = re.sub(r"favourable: class 1|at most 4 reasons", "", shown)
    assert not re.search(r"[1-9]", shown), text
    assert "no difference found" not in text


@pytest.mark.parametrize("option", ["--report", "--card"])
def test_a_page_of_an_audit_is_refused(option: str, folder: Path, tmp_path: Path) -> None:
    words = [
        *words_of("audit", folder),
        "--certificate",
        str(tmp_path),
        "--require-certificate",
        option,
        str(tmp_path / "p"),
    ]
    done = CliRunner().invoke(group, words, standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    assert "leave out --report and --card" in str(done.exception.remedy)


def test_no_answer_of_a_sweep_passes(folder: Path, tmp_path: Path) -> None:
    kinds = ("relation", "rows without a certificate", "bound", "share of none")
    asks = "\n".join(f"query q{i}: {QUESTIONS[kind]}" for i, kind in enumerate(kinds))
    file = folder / "sweep.sens"
    file.write_text(f"{HEAD}{asks}\n")
    options = ("-q", "-j", "1", "--certificate", tmp_path, "--require-certificate", "--journal", tmp_path / "s.sqlite")
    code, out, _ = asked("sweep", file, "--json", *options)
    records = [json.loads(line) for line in out.splitlines()]
    of_work = ("cpu", "attempts_made")
    assert [passes({k: v for k, v in one.items() if k not in of_work}) for one in records] == [[]] * len(kinds)
    assert [one["verdict"] for one in records] == ["unknown", "unknown", "found", "none"]
    assert code == INCONCLUSIVE


def test_every_command_with_the_option_is_tried() -> None:
    context = click.Context(group)
    commands = {name: group.get_command(context, name) for name in group.list_commands(context)}
    with_option = {
        name
        for name, command in commands.items()
        if command is not None and any("--require-certificate" in one.opts for one in command.params)
    }
    assert with_option == {"check", "sweep", *ONE_OF_EACH}


@pytest.mark.parametrize("command", ["learn"])
def test_what_has_no_certificates_takes_no_option_for_them(command: str, folder: Path) -> None:
    done = CliRunner().invoke(group, [command, str(folder / "m.json"), "--require-certificate"], standalone_mode=True)
    assert done.exit_code != EXPECTED
    assert re.search("No such option:? '?--require-certificate", done.stderr)
