"""`treesens opt`: what it lists, which modules it prints around passes, and what it measures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.conftest import Ran
from treesens.backends.base import get_backend
from treesens.compiler.ir.text import parse_module, print_module
from treesens.compiler.passes.registry import PASSES
from treesens.compiler.pipeline import PIPELINES, Pipeline
from treesens.records.passes import catalogue

Treesens = Callable[..., Ran]
SMALL = Path(__file__).parents[2] / "examples" / "small.sir"
UNCHANGED = "merge-guards,merge-guards,order-predicates{by=feature}"
"""On the module of the examples, the second pass finds nothing."""


def test_passes_and_pipelines_are_listed_without_a_file(treesens: Treesens) -> None:
    ran = treesens("opt", "--list-passes", "--json")
    assert ran.code == 0
    assert [one["name"] for one in ran.record["passes"]] == PASSES.names()
    by_name = {one["name"]: one for one in ran.record["passes"]}
    by = {"name": "by", "type": "choice", "choices": ["gain", "uses", "feature"], "default": "gain"}
    assert by_name["order-predicates"]["options"] == [by]
    assert [(o["name"], o["type"], o["default"]) for o in by_name["bound-fixing"]["options"]] == [
        ("work", "int", 400_000_000),
        ("probe", "bool", True),
    ]
    assert by_name["drop-dead"]["relation"] == "equisatisfiable"
    assert {one["package"] for one in ran.record["passes"] if one["name"] in PASSES.builtin} == {None}
    assert {one["name"]: one["text"] for one in ran.record["pipelines"]} == PIPELINES


def test_the_list_as_text_has_every_name(treesens: Treesens) -> None:
    out = treesens("opt", "--list-passes").out
    for one in catalogue()["passes"]:
        assert f"{one['name']}: {one['about']}" in out
        assert all(f"  statistic {name}: {meaning}" in out for name, meaning in one["statistics"].items())
    assert "  option by=gain|uses|feature (default gain)" in out
    assert all(f"pipeline {name}: " in out for name in PIPELINES)


def test_every_listed_option_is_one_that_the_pipeline_takes() -> None:
    for one in catalogue()["passes"]:
        for option in one["options"]:
            for value in option["choices"] or [option["default"]]:
                text = f"{one['name']}{{{option['name']}={str(value).lower()}}}"
                (step,) = Pipeline.parse(text).steps
                assert getattr(step, option["name"].replace("-", "_")) == value


def test_what_a_pass_reports_is_declared(treesens: Treesens, sens_file: Path) -> None:
    """All named pipelines on two questions and on a module; the kit of tests/compiler checks it on every kind of op."""
    declared = {one["name"]: set(one["statistics"]) for one in catalogue()["passes"]}
    seen = set()
    for file in (sens_file, SMALL):
        for pipeline in [*PIPELINES, "unaffected-leaves,leaf-rows"]:
            for question in treesens("opt", file, "-p", pipeline, "--json").record["questions"]:
                for record in question["passes"]:
                    name = record["pass"].partition("{")[0]
                    seen.add(name)
                    assert record["statistics"].keys() <= declared[name]
    assert seen == set(PASSES.builtin)


def test_without_a_list_a_file_is_needed(treesens: Treesens) -> None:
    ran = treesens("opt")
    assert ran.code == 1
    assert "needs a FILE" in ran.err
    assert "--list-passes" in ran.err


def headings(out: str) -> list[str]:
    return [line[2:] for line in out.splitlines() if line.startswith("; ")]


def test_the_ir_before_a_pass_is_that_after_the_pass_before_it(treesens: Treesens) -> None:
    before = treesens("opt", SMALL, "-p", "merge-guards,drop-dead", "--full", "--print-ir-before", "drop-dead").out
    after = treesens("opt", SMALL, "-p", "merge-guards,drop-dead", "--full", "--print-ir-after", "merge-guards").out
    assert headings(before) == ["before drop-dead"]
    module = before.partition("\n")[2]
    assert module == after.partition("\n")[2]
    assert parse_module(module) == Pipeline.parse("merge-guards").run(parse_module(SMALL.read_text())).module
    every = treesens("opt", SMALL, "-p", "merge-guards,drop-dead", "--print-ir-before", "all").out
    assert headings(every) == ["before merge-guards", "before drop-dead"]
    assert treesens("opt", SMALL, "-p", "kant", "--print-ir-before", "lower").code == 1


def test_only_changes_are_printed(treesens: Treesens) -> None:
    every = ["after lower", "after merge-guards", "after merge-guards", "after order-predicates"]
    changed = [every[0], every[1], every[3]]
    assert headings(treesens("opt", SMALL, "-p", UNCHANGED, "--print-ir-after", "all").out) == every
    assert headings(treesens("opt", SMALL, "-p", UNCHANGED, "--print-ir-on-change").out) == changed
    one = treesens("opt", SMALL, "-p", UNCHANGED, "--print-ir-on-change", "--print-ir-after", "merge-guards").out
    assert headings(one) == ["after merge-guards"]


def patched(old: list[str], difference: list[str]) -> list[str]:
    """What `patch` does with a unified difference that has all context."""
    new, at = [], 0
    for line in difference:
        if line.startswith("@@"):
            start = int(line.split()[1].partition(",")[0][1:]) - 1
            new += old[at:start]
            at = start
        elif line.startswith("+"):
            new.append(line[1:])
        else:
            assert old[at] == line[1:]
            new += [] if line.startswith("-") else [old[at]]
            at += 1
    return new + old[at:]


@pytest.mark.parametrize("full", [(), ("--full",)])
@pytest.mark.parametrize("named", [("--print-ir-before", "drop-dead"), ("--print-ir-after", "drop-dead")])
def test_a_difference_leads_from_the_input_of_a_pass_to_its_output(
    treesens: Treesens, full: tuple[str, ...], named: tuple[str, str]
) -> None:
    out = treesens("opt", SMALL, "-p", "merge-guards,drop-dead", "--diff", *named, *full).out.splitlines()
    assert out[:2] == ["--- before drop-dead", "+++ after drop-dead"]
    middle, last = (
        print_module(Pipeline.parse(text).run(parse_module(SMALL.read_text())).module, full=bool(full)).splitlines()
        for text in ("merge-guards", "merge-guards,drop-dead")
    )
    assert middle != last
    assert patched(middle, out[2:]) == last


def test_times_are_one_object(treesens: Treesens, sens_file: Path) -> None:
    ran = treesens("opt", sens_file, "-p", "ensense,share-copies", "--time-passes", "--json")
    assert ran.err == ""
    names = [one["query"] for one in ran.record["questions"]]
    assert names == ["sex_alone", "best"]
    for one in ran.record["questions"]:
        texts = [record["pass"] for record in one["passes"]]
        assert texts == ["unaffected-leaves", "aff-reduce", "gap-objective", "share-copies"]
        size = one["lowering"]["size"]
        for record in one["passes"]:
            assert record["before"] == size
            size = record["after"]
        parts = [one["lowering"], *one["passes"], one["legalisation"]]
        assert all(part["seconds"] >= 0 for part in parts)
        assert one["seconds"] == pytest.approx(sum(part["seconds"] for part in parts))
        # The rows that a solver gets without further work are those of its own text.
        full = treesens("opt", sens_file, one["query"], "-p", "ensense,share-copies", "--full").out
        written = get_backend("highs").emit(parse_module(full)).text
        rows = written.partition("ROWS")[2].partition("COLUMNS")[0].split("\n")
        assert one["legalisation"]["rows"] == len([row for row in rows if row[1:2] in ("L", "G", "E")])


def test_times_as_text_have_lowering_and_legalisation(treesens: Treesens) -> None:
    ran = treesens("opt", SMALL, "-p", "merge-guards", "--time-passes")
    lines = [line.partition(" ms  ")[2].split()[0] for line in ran.err.splitlines() if " ms  " in line]
    assert lines == ["lower", "merge-guards", "legalise", "total"]
    assert ran.out.startswith('sir 1\nmodule "small"')


def test_with_json_the_ir_goes_to_standard_error(treesens: Treesens) -> None:
    ran = treesens("opt", SMALL, "-p", "merge-guards", "--json", "--print-ir-after", "all")
    assert len(json.loads(ran.out)["questions"]) == 1
    assert headings(ran.err) == ["after lower", "after merge-guards"]


def remarks_of(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("remark: ")]


def test_remarks_are_printed_by_kind_and_up_to_a_limit(treesens: Treesens, sens_file: Path) -> None:
    sens_file.write_text(sens_file.read_text() + "\nquery hours_alone:\n  sensitive to hours gap 0.1\n")
    asked = ("opt", sens_file, "hours_alone", "-p", "unaffected-leaves")
    assert remarks_of(treesens(*asked).err) == []
    both = remarks_of(treesens(*asked, "--remarks", "missed,passed").err)
    passed, missed = ([line for line in both if f": {kind}: " in line] for kind in ("passed", "missed"))
    assert both == passed + missed
    assert passed == remarks_of(treesens(*asked, "--remarks", "passed").err)
    assert any(
        line.startswith("remark: unaffected-leaves: passed: tree 0: leaves equated with others (") for line in passed
    )
    assert all("guards on feature hours may differ between the points (" in line for line in missed)
    assert missed
    assert len(passed) > 2
    few = remarks_of(treesens(*asked, "--remarks", "passed", "--remark-limit", "2").err)
    assert few == [*passed[:2], f"remark: unaffected-leaves: passed: {len(passed) - 2} more"]


def test_the_record_has_all_remarks(treesens: Treesens, sens_file: Path) -> None:
    asked = ("opt", sens_file, "sex_alone", "-p", "unaffected-leaves,aff-reduce", "--remarks", "passed,missed")
    lines = remarks_of(treesens(*asked, "--remark-limit", "999").err)
    ran = treesens(*asked, "--json", "--remark-limit", "0")
    assert ran.err == ""
    (one,) = ran.record["questions"]
    assert lines == [
        f"remark: {record['pass']}: {kind}: {remark['place']}: {remark['reason']} ({remark['count']:,})"
        for record in one["passes"]
        for kind in ("passed", "missed")
        for remark in record["remarks"]
        if remark["kind"] == kind
    ]
    assert "remarks" not in treesens("opt", SMALL, "-p", "drop-dead", "--json").record["questions"][0]["passes"][0]


def test_an_unknown_kind_of_remark_is_refused(treesens: Treesens) -> None:
    ran = treesens("opt", SMALL, "--remarks", "passed,mised")
    assert ran.code == 1
    assert "there are no remarks `mised`" in ran.err
    assert "`missed`" in ran.err


def test_a_name_in_a_remark_cannot_steer_the_terminal(treesens: Treesens, tmp_path: Path) -> None:
    hostile = tmp_path / "hostile.sir"
    hostile.write_text(SMALL.read_text().replace('feature "f0"', 'feature "f\\u001b[31m0"'))
    err = treesens("opt", hostile, "-p", "merge-guards", "--remarks", "passed").err
    assert "\x1b" not in err
    assert "feature f\\x1b[31m0: predicates fixed" in err
