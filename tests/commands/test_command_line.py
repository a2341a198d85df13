"""Bad input ends in a clear error with its place and the documented exit code; never in a traceback."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import treesens as ts
from tests.command import run_command

STUMP = {
    "learner": {
        "attributes": {},
        "feature_names": ["age", "sex"],
        "feature_types": ["float", "float"],
        "gradient_booster": {
            "model": {
                "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": "1"},
                "iteration_indptr": [0, 1],
                "tree_info": [0],
                "trees": [
                    {
                        "base_weights": [0.0, -1.0, 1.0],
                        "categories": [],
                        "categories_nodes": [],
                        "categories_segments": [],
                        "categories_sizes": [],
                        "default_left": [0, 0, 0],
                        "id": 0,
                        "left_children": [1, -1, -1],
                        "loss_changes": [1.0, 0.0, 0.0],
                        "parents": [2147483647, 0, 0],
                        "right_children": [2, -1, -1],
                        "split_conditions": [0.5, -1.0, 1.0],
                        "split_indices": [1, 0, 0],
                        "split_type": [0, 0, 0],
                        "sum_hessian": [2.0, 1.0, 1.0],
                        "tree_param": {
                            "num_deleted": "0",
                            "num_feature": "2",
                            "num_nodes": "3",
                            "size_leaf_vector": "1",
                        },
                    }
                ],
            },
            "name": "gbtree",
        },
        "learner_model_param": {
            "base_score": "5E-1",
            "boost_from_average": "1",
            "num_class": "0",
            "num_feature": "2",
            "num_target": "1",
        },
        "objective": {"name": "binary:logistic", "reg_loss_param": {"scale_pos_weight": "1"}},
    },
    "version": [2, 1, 0],
}
GOOD = 'model m from "m.json"\nquery q: sensitive m to {sex} margin 0.5\n'


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = run_command(folder, *arguments)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.json").write_text(json.dumps(STUMP))
    (tmp_path / "q.sens").write_text(GOOD)
    return tmp_path


def test_a_pair_is_found_and_recorded(folder: Path) -> None:
    done = run(folder, "check", "q.sens", "--json", "--replay", "library")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)["results"][0]
    assert (record["verdict"], record["replay"], record["varied"]) == ("found", "library", ["sex"])
    assert record["points"]["a"]["age"] == record["points"]["b"]["age"]
    assert record["scores"]["a"]["margin"] >= 0.5 >= -0.5 >= record["scores"]["b"]["margin"]


@pytest.mark.parametrize("uses", ["near d", ""])
@pytest.mark.parametrize("door", ["check", "check --jobs 2", "sweep --jobs 1", "compare --backends native", "python"])
def test_a_record_names_the_files_that_it_rests_on(folder: Path, uses: str, door: str) -> None:
    """A table that only domains come from decides what is proved, too."""
    data = b"age,sex\n1,0\n2,1\n"
    (folder / "d.csv").write_bytes(data)
    names = [f"q{i}" for i in range(2 if "jobs 2" in door else 1)]
    head = 'model m from "m.json"\ndata d from "d.csv"\n' + ("" if uses else "domain from d\n")
    (folder / "q.sens").write_text(
        head + "".join(f"query {q}: sensitive m to {{sex}} margin 0.5 {uses}\n" for q in names)
    )
    if door == "python":
        record = ts.check(folder / "q.sens")["q0"].to_dict()
    else:
        command, *options = door.split()
        printed = run(folder, command, "q.sens", "--json", *options).stdout
        found = json.loads(printed.splitlines()[0] if command == "sweep" else printed)
        record = found if command == "sweep" else found["results"][0]
    assert record["data"] == [{"name": "d", "sha256": hashlib.sha256(data).hexdigest()}]
    if door == "check":
        assert record["models"][0]["sha256"] == hashlib.sha256((folder / "m.json").read_bytes()).hexdigest()


@pytest.mark.parametrize("backend", ["auto", "native", "cpsat", "highs", "z3", "cbc", "scip", "gurobi"])
def test_every_backend_proves_that_age_does_nothing(folder: Path, backend: str) -> None:
    (folder / "q.sens").write_text('model m from "m.json"\nquery q: sensitive m to {age} margin 0.5 expect none\n')
    done = run(folder, "check", "q.sens", "--backend", backend, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["results"][0]["proof"] in {"exact", "tolerance"}


def test_a_violated_expectation_ends_with_10(folder: Path) -> None:
    (folder / "q.sens").write_text(GOOD.rstrip() + " expect none\n")
    assert run(folder, "check", "q.sens").returncode == 10


def test_contradictory_constraints_are_none_or_an_error_with_a_place(folder: Path) -> None:
    (folder / "q.sens").write_text(
        'model m from "m.json"\nquery q: find a such that\n  margin(a) >= 2\n  margin(a) <= -2\n'
    )
    done = run(folder, "check", "q.sens", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["results"][0]["verdict"] == "none"
    (folder / "q.sens").write_text('model m from "m.json"\nquery q: find a such that\n  a.age >= 2\n  a.age <= 1\n')
    done = run(folder, "check", "q.sens")
    assert done.returncode == 2
    assert "q.sens:4" in done.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('model m from "m.json"\nquery q: sensitive m to {sexx} margin 0.5\n', "did you mean `sex`"),
        ('model m from "m.json"\nfeature age: real in [2, 1]\nquery q: sensitive m to {sex} margin 0.5\n', "q.sens:2"),
        ('model m from "m.json"\nquery q:\n', "q.sens:2"),
        ("", "q.sens"),
        ('model m from "nowhere.json"\nquery q: sensitive m to {sex} margin 0.5\n', "nowhere.json"),
        (
            'model m from "m.json"\ndata d from "d.csv"\ndomain from d\nquery q: sensitive m to {sex} margin 0.5 near d\n',
            "sex",
        ),
    ],
)
def test_mistakes_in_a_file_are_errors_with_a_place(folder: Path, content: str, words: str) -> None:
    (folder / "q.sens").write_text(content)
    (folder / "d.csv").write_text("age,label\n1,0\n2,1\n")
    done = run(folder, "check", "q.sens")
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""


def test_latin_1_is_an_error_with_the_place_of_the_byte(folder: Path) -> None:
    (folder / "q.sens").write_bytes("# Größe\n".encode("latin-1") + GOOD.encode())
    done = run(folder, "check", "q.sens")
    assert done.returncode == 2
    assert "q.sens:1" in done.stderr


@pytest.mark.parametrize("damage", ["truncated", "objective", "zeros", "cycle"])
def test_damaged_models_are_errors_that_name_the_model(folder: Path, damage: str) -> None:
    text = json.dumps(STUMP)
    path = folder / "m.json"
    if damage == "truncated":
        path.write_text(text[: len(text) // 2])
    elif damage == "objective":
        path.write_text(text.replace("binary:logistic", "binary:unheard-of"))
    elif damage == "cycle":
        path.write_text(text.replace('"left_children": [1, -1, -1]', '"left_children": [1, 0, -1]'))
    else:
        with path.open("wb") as file:
            file.truncate(100_000_000)
    done = run(folder, "check", "q.sens")
    assert done.returncode == 2
    assert "m.json" in done.stderr


def test_usage_errors_end_with_1(folder: Path) -> None:
    assert run(folder, "chekc", "q.sens").returncode == 1
    assert run(folder, "check", "q.sens", "no_such_query").returncode == 1
    assert run(folder, "check", "q.sens", "--backend", "cplex").returncode == 2
    assert "did you mean" in run(folder, "check", "q.sens", "--pipeline", "aff-redcue").stderr


@pytest.mark.parametrize("target", ["lp", "mps", "smt2", "opb", "cpsat", "sir"])
def test_emit_writes_every_format(folder: Path, target: str) -> None:
    done = run(folder, "emit", "q.sens", "--to", target, "-o", f"out.{target}")
    assert done.returncode == 0, done.stderr
    assert (folder / f"out.{target}").stat().st_size > 100


def test_emit_into_a_folder_replaces_no_file_unless_it_is_forced(folder: Path) -> None:
    second = GOOD[GOOD.index("query q") :].replace("query q", "query q2")
    (folder / "q.sens").write_text(GOOD + "\n" + second)
    (folder / "out").mkdir()
    (folder / "out" / "q2.lp").write_text("mine")
    refused = run(folder, "emit", "q.sens", "--to", "lp", "-o", "out")
    assert refused.returncode == 1
    assert "q2.lp" in refused.stderr
    assert (folder / "out" / "q2.lp").read_text() == "mine"
    assert not (folder / "out" / "q.lp").exists()
    assert run(folder, "emit", "q.sens", "--to", "lp", "-o", "out", "--force").returncode == 0
    assert (folder / "out" / "q2.lp").stat().st_size > 100


def test_a_legend_says_what_every_variable_of_the_text_is(folder: Path) -> None:
    done = run(folder, "emit", "q.sens", "--to", "lp", "-o", "q.lp", "--legend", "-p", "kant")
    assert done.returncode == 0, done.stderr
    names = set(re.findall(r"\bx\d+\b", (folder / "q.lp").read_text()))
    head, *lines = (folder / "q.lp.legend.tsv").read_text().splitlines()
    assert head == "variable\tpoints\tmeaning"
    listed = [line.split("\t") for line in lines]
    assert {variable for variable, _, _ in listed} == names
    # The stump asks one question: sex < 0.5.
    assert {(point, text) for _, point, text in listed if text.startswith("sex")} == {
        ("a", "sex < 0.5"),
        ("b", "sex < 0.5"),
    }
    leaves = {(point, text) for _, point, text in listed if text.startswith("leaf")}
    assert leaves == {(p, f"leaf {n} of tree 0 of model 0") for p in "ab" for n in (0, 1)}
    assert run(folder, "emit", "q.sens", "--to", "lp", "--legend").returncode == 1
    refused = run(folder, "emit", "q.sens", "--to", "lp", "-o", "q.lp", "--legend")
    assert refused.returncode == 1
    assert "q.lp.legend.tsv" in refused.stderr


def test_a_text_says_that_its_objective_only_guides(folder: Path) -> None:
    words = "The objective only guides the search: its value has no meaning"
    for target, mark in (("lp", "\\"), ("mps", "*")):
        for pipeline, guided in (("ensense", True), ("kant", False)):
            done = run(folder, "emit", "q.sens", "--to", target, "-p", pipeline)
            comments = [line for line in done.stdout.splitlines() if line.startswith(mark)]
            assert any(words in line for line in comments) is guided, (target, pipeline)


def test_opt_shows_the_module_before_the_first_pass(folder: Path) -> None:
    shown = run(folder, "opt", "q.sens", "-p", "kant", "--print-ir-after", "lower", "--full").stdout
    assert shown.startswith('; after lower\nmodule "q"')
    last = run(folder, "opt", "q.sens", "-p", "kant", "--full").stdout
    assert shown.split("\n", 1)[1].strip() == last.strip()  # kant has no passes
    every = run(folder, "opt", "q.sens", "-p", "share-copies", "--print-ir-after", "all").stdout
    assert [line for line in every.splitlines() if line.startswith("; after")] == [
        "; after lower",
        "; after share-copies",
    ]


def test_emit_writes_no_two_questions_to_one_file(folder: Path) -> None:
    second = GOOD[GOOD.index("query q") :].replace("query q", "query Q")
    (folder / "q.sens").write_text(GOOD + "\n" + second)
    done = run(folder, "emit", "q.sens", "--to", "lp", "-o", "out")
    assert done.returncode != 0
    assert "both be written" in done.stderr
    assert not (folder / "out").exists()


def test_emitted_sir_goes_through_opt(folder: Path) -> None:
    run(folder, "emit", "q.sens", "--to", "sir", "--pipeline", "kant", "-o", "q.sir")
    done = run(folder, "opt", "q.sir", "-p", "default", "--verify-each", "--check-each", "brute", "--full")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('module "q"')


def test_compare_agrees(folder: Path) -> None:
    done = run(
        folder, "compare", "q.sens", "--backends", "native,cpsat,highs,z3", "--pipelines", "kant;default", "--json"
    )
    assert done.returncode == 0, done.stderr
    verdicts = {(r["backend"], r["pipeline"]): (r["verdict"], r["replay"]) for r in json.loads(done.stdout)["results"]}
    assert len(verdicts) == 8
    assert set(verdicts.values()) == {("found", "library")}


def test_help_is_fast_and_imports_nothing_heavy() -> None:
    code = "import sys, treesens.cli; print(sorted({'numpy', 'xgboost', 'ortools', 'lark', 'rich'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_shell_completes_commands_and_options() -> None:
    """As docs/installation.md says: the shell asks the program itself."""
    for words, wanted in (
        ("treesens ch", "check"),
        ("treesens check --jo", "--journal"),
        ("treesens audit --thr", "--threshold"),
    ):
        asked = {"_TREESENS_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
        code = "from treesens.cli import group; group(prog_name='treesens')"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False, env={**os.environ, **asked}
        )
        assert f"plain,{wanted}" in done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize(
    ("numbers", "fault"),
    [
        ("part_eraly=2", "`part_eraly`"),
        ("part_early", "lacks a value"),
        ("part_early=two", "`two`"),
        ("part_early=0", "at least 1"),
    ],
)
def test_a_wrong_schedule_is_told(folder: Path, numbers: str, fault: str) -> None:
    """The engine reads it while it is imported, in whatever command comes first."""
    env = {**os.environ, "TREESENS_SCHEDULE": numbers}
    code = "from treesens.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "check", "q.sens"],
        capture_output=True,
        text=True,
        check=False,
        env=env,
        cwd=folder,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error[U001]: TREESENS_SCHEDULE: ")
    assert fault in done.stderr
    assert "docs/engine.md" in done.stderr
    assert done.stdout == ""
