"""A plug-in package is found, used and checked like the built-in formats, passes and backends; clashes are refused.

The package of tests/plugin_package is installed into a folder of its own, which PYTHONPATH adds to a fresh process. It is
unpacked here instead of by pip, from its own pyproject.toml: nothing is downloaded, and it takes no time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

PACKAGE = Path(__file__).parents[1] / "plugin_package"
MODEL = """stumps 1
features age sex
base 0.25
age 0.5 -1.0 2.0
age 0.25 -0.5 0.5
sex 0.5 -1.5 0.75
"""
QUESTIONS = """model small from "small.stumps"
feature sex: category {Female = 0, Male = 1}
feature age: real in [0, 1]

query sex_alone:
  sensitive to sex gap 0.1

query best:
  find a, b such that
    a = b except sex
    prob(a) >= 0.6
    prob(b) <= 0.4
    a.age <= 0.3 or a.age >= 0.9
  maximize margin(a) - margin(b)

query never:
  find a such that margin(a) >= 10
  expect none
"""


def install(target: Path, name: str | None = None) -> None:
    """What an installer does: the package, and its metadata with the entry points. `name` installs it under another one."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    name = name or project["name"]
    shutil.copytree(PACKAGE / "src", target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    info = target / f"{name.replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {project['version']}\n")
    points = project["entry-points"]
    lines = [line for group in points for line in (f"[{group}]", *(f"{k} = {v}" for k, v in points[group].items()))]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    install(target)
    return target


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "small.stumps").write_text(MODEL)
    (tmp_path / "questions.sens").write_text(QUESTIONS)
    return tmp_path


def python(site: Path, work: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, PYTHONPATH=str(site))
    return subprocess.run(
        [sys.executable, *args], cwd=work, env=environment, capture_output=True, text=True, check=False
    )


def treesens(site: Path, work: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return python(site, work, "-c", "from treesens.cli import main; main()", *args)


def test_check_with_the_plugged_in_format_pass_and_backend(site: Path, work: Path) -> None:
    pipeline = "merge-guards,satisfied-clauses,share-copies"
    ran = treesens(site, work, "check", "questions.sens", "--backend", "brute", "--pipeline", pipeline, "--json")
    assert ran.returncode == 0, ran.stderr
    by_name = {r["query"]: r for r in json.loads(ran.stdout)["results"]}
    assert by_name["sex_alone"]["verdict"] == "found"
    assert by_name["sex_alone"]["points"]["a"]["sex"] == "Male"
    assert by_name["sex_alone"]["backend"] == "brute"
    assert by_name["best"]["objective"]["value"] == pytest.approx(2.25)
    assert by_name["never"]["verdict"] == "none"
    assert by_name["never"]["proof"] == "exact"
    assert by_name["never"]["rests_on"] == ["proof of the plug-in backend brute", "infeasible by brute (exact)"]
    for record in by_name.values():
        assert [(one["kind"], one["name"]) for one in record["plugins"]] == [
            ("backend", "brute"),
            ("model format", "stumps"),
            ("pass", "satisfied-clauses"),
        ]
        assert record["plugins"][0] == {
            "kind": "backend",
            "name": "brute",
            "package": "treesens-stumps",
            "version": "0.1.0",
            "entry_point": "treesens_stumps.backend:BruteBackend",
        }
    ran = treesens(site, work, "check", "questions.sens", "never", "--backend", "brute", "--pipeline", pipeline)
    assert "plug-ins: backend brute of treesens-stumps 0.1.0, model format stumps of treesens-stumps" in " ".join(
        ran.stdout.split()
    )


@pytest.mark.parametrize("backend", ["native", "auto", "brute", "z3"])
def test_a_plugged_in_pass_runs_after_a_named_pipeline(site: Path, work: Path, backend: str) -> None:
    """The engine, the portfolio and a solver give the verdicts of brute force without any pass."""
    asked = ("check", "questions.sens", "--json", "--backend")
    plain = treesens(site, work, *asked, "brute", "--pipeline", "kant")
    ran = treesens(site, work, *asked, backend, "--pipeline", "default,satisfied-clauses")
    assert (plain.returncode, ran.returncode) == (0, 0), plain.stderr + ran.stderr
    wanted, given = (
        [(r["query"], r["verdict"], (r["objective"] or {}).get("value")) for r in json.loads(one.stdout)["results"]]
        for one in (plain, ran)
    )
    assert given == wanted
    assert {r["pipeline"] for r in json.loads(ran.stdout)["results"]} == {"default,satisfied-clauses"}


def test_the_list_of_passes_names_the_package(site: Path, work: Path) -> None:
    listed = json.loads(treesens(site, work, "opt", "--list-passes", "--json").stdout)["passes"]
    (mine,) = [one for one in listed if one["package"]]
    assert mine == {
        "name": "satisfied-clauses",
        "package": "treesens-stumps",
        "about": "a clause that holds a fact says nothing",
        "relation": "equivalent",
        "options": [],
        "statistics": {"clauses dropped": "clauses that hold a fact"},
    }


def test_a_pass_that_cannot_be_imported_is_listed_with_its_error(tmp_path: Path, work: Path) -> None:
    target = tmp_path / "site"
    install(target)
    (points,) = target.glob("*.dist-info/entry_points.txt")
    points.write_text(points.read_text().replace("satisfied_clauses:SatisfiedClauses", "nowhere:Nothing"))
    ran = treesens(target, work, "opt", "--list-passes")
    assert ran.returncode == 0, ran.stderr
    assert "satisfied-clauses  [treesens-stumps]: the plug-in pass `satisfied-clauses` cannot be imported" in ran.stdout
    assert "pipeline default: " in ran.stdout


def test_native_replay_uses_the_plugged_in_library(site: Path, work: Path) -> None:
    ran = treesens(site, work, "check", "questions.sens", "sex_alone", "--replay", "library", "--json")
    assert ran.returncode == 0, ran.stderr
    (result,) = json.loads(ran.stdout)["results"]
    assert result["replay"] == "library"


def test_the_other_backends_agree_with_the_plug_in(site: Path, work: Path) -> None:
    ran = treesens(site, work, "compare", "questions.sens", "--backends", "native,cpsat,brute", "--json")
    assert ran.returncode == 0, ran.stderr


def test_the_fidelity_kit_passes_the_format(site: Path, work: Path) -> None:
    ran = treesens(site, work, "info", "small.stumps", "--check", "--json")
    assert ran.returncode == 0, ran.stderr
    record = json.loads(ran.stdout)
    assert record["format"] == "stumps"
    assert record["check"]["ok"]


def test_the_conformance_kits_pass_the_pass_and_the_backend(site: Path, work: Path) -> None:
    code = (
        "from treesens.extensions.conformance import passes\n"
        "from treesens.extensions.conformance import backends\n"
        "print(passes.run('satisfied-clauses')); passes.run('satisfied-clauses').raise_if_wrong()\n"
        "report = backends.run('brute', only=['path', 'table', 'maximum', 'facts-infeasible', 'time-limit'])\n"
        "print(report); report.raise_if_wrong()\n"
        "report = backends.run('brute', isolated=False); print(report); report.raise_if_wrong()\n"
    )
    ran = python(site, work, "-c", code)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count(" 0 failed, 0 open") == 3


def test_a_worker_finds_a_plug_in_that_only_the_running_program_knows(site: Path, work: Path) -> None:
    """A notebook that adds a folder to `sys.path` has set no PYTHONPATH."""
    code = (
        f"import sys; sys.path.append({str(site)!r})\n"
        "from treesens.extensions.conformance import backends as conformance\n"
        "conformance.run('brute', only=['path']).raise_if_wrong()\n"
    )
    ran = python(work, work, "-c", code)
    assert ran.returncode == 0, ran.stderr


def test_doctor_and_explain_know_the_plug_ins(site: Path, work: Path) -> None:
    ran = treesens(site, work, "doctor", "--json")
    facts = json.loads(ran.stdout)
    assert {b["name"]: b["available"] for b in facts["backends"]}["brute"]
    assert {f["name"]: f["library_installed"] for f in facts["frontends"]}["stumps"]
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]["entry-points"]
    assert {(p["name"], p["entry_point"]) for p in facts["plugins"]} == {
        point for group in project.values() for point in group.items()
    }
    assert {p["kind"] for p in facts["plugins"]} == {
        *("backend", "format", "method", "model format", "pass", "predicate", "study")
    }
    shown = treesens(site, work, "doctor").stdout
    assert "satisfied-clauses: treesens-stumps 0.1.0, treesens_stumps.satisfied_clauses:SatisfiedClauses" in " ".join(
        shown.split()
    )
    ran = treesens(site, work, "explain", "questions.sens", "best", "-p", "satisfied-clauses", "-b", "brute")
    assert "satisfied-clauses: a clause that holds a fact says nothing" in ran.stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("check", "questions.sens", "--backend", "brute"), "both provide the backend `brute`"),
        (("check", "questions.sens", "--pipeline", "satisfied-clauses"), "both provide the pass `satisfied-clauses`"),
    ],
)
def test_two_packages_with_one_name_are_refused(tmp_path: Path, work: Path, args: tuple[str, ...], words: str) -> None:
    target = tmp_path / "site"
    install(target)
    install(target, "other-stumps")
    ran = treesens(target, work, *args)
    assert ran.returncode == 2
    assert words in ran.stderr
    assert "treesens-stumps" in ran.stderr
    assert "other-stumps" in ran.stderr
    assert "uninstall one of them" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_name_of_treesens_itself_is_refused(site: Path, tmp_path: Path, work: Path) -> None:
    target = tmp_path / "site"
    install(target)
    (points,) = target.glob("*.dist-info/entry_points.txt")
    points.write_text(points.read_text().replace("brute =", "cpsat ="))
    ran = treesens(target, work, "doctor")
    assert ran.returncode == 2
    assert "treesens itself both provide the backend `cpsat`" in ran.stderr


def test_a_plug_in_that_does_not_import_names_its_package(tmp_path: Path, work: Path) -> None:
    target = tmp_path / "site"
    install(target)
    (target / "treesens_stumps" / "backend.py").write_text("import a_module_that_is_not_there\n")
    ran = treesens(target, work, "check", "questions.sens", "--backend", "brute")
    assert ran.returncode == 2
    assert "reinstall or remove treesens-stumps" in ran.stderr


def test_a_plug_in_that_calls_itself_otherwise_is_refused(site: Path, work: Path, tmp_path: Path) -> None:
    """The process that solves finds a backend by the name of its class."""
    other = tmp_path / "other"
    shutil.copytree(site, other)
    (points,) = other.glob("*.dist-info/entry_points.txt")
    text = points.read_text()
    name = text.split("[treesens.backends]\n")[1].split(" =")[0]
    points.write_text(text.replace(f"\n{name} =", f"\nmy{name} ="))
    done = python(other, work, "-m", "treesens", "check", "questions.sens", "--backend", f"my{name}")
    assert done.returncode == 2
    assert f"calls itself `{name}`" in done.stderr
    assert "entry point" in done.stderr


def test_a_ratio_that_a_plugged_in_link_does_not_bound_is_refused(site: Path, work: Path) -> None:
    """A score of ln 2 is a ratio of 2 for a logistic link alone: of softsign the ratio there is 1 + 2 ln 2."""
    (work / "small.stumps").write_text(MODEL.replace("base 0.25", "base 0.25\nlink softsign"))
    for lead, code in (("by factor 2", "E219"), ("by margin 0.5", None)):
        question = f'model m from "small.stumps"\nquery q:\n  find a such that class(a) = 1 {lead}\n'
        (work / "questions.sens").write_text(question)
        ran = treesens(site, work, "check", "questions.sens")
        assert (ran.returncode == 2) == (code is not None), ran.stderr
        assert code is None or (code in ran.stderr and "softsign" in ran.stderr)


ADULT = """model small from "small.stumps"
feature sex: category {Female = 0, Male = 1}
feature age: integer in [10, 30] or missing

decision offer of x:
  accept when adult(x.age) and margin(x) >= 0.5
  ask when not adult(x.age)
  else decline

"""
AGES = [*range(10, 31), None]
FORMS = {
    "adult(a.age)": lambda age, sex, score: age is not None and age >= 18,
    "not adult(a.age)": lambda age, sex, score: age is None or age < 18,
    "adult(a.age) or a.sex = Female": lambda age, sex, score: sex == 0 or (age is not None and age >= 18),
    "not (adult(a.age) or a.sex = Female)": lambda age, sex, score: sex == 1 and (age is None or age < 18),
    "adult(a.age) implies a.sex = Male": lambda age, sex, score: sex == 1 or age is None or age < 18,
    "decision(a) = accept": lambda age, sex, score: age is not None and age >= 18 and score >= 0.5,
    "decision(a) != ask": lambda age, sex, score: age is not None and age >= 18,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_predicate_of_the_plug_in_is_that_of_enumeration(site: Path, work: Path, form: str) -> None:
    """The oldest and the youngest input that satisfies it, and whether a missing age does, in every context of the language."""
    (work / "small.stumps").write_text("stumps 1\nfeatures age sex\nbase 0.0\nage 20.5 -1.0 1.0\nsex 0.5 -0.25 0.25\n")
    ages = {name: f"query {name}:\n  find a such that\n    {form}\n" for name in ("youngest", "oldest", "missing")}
    text = ADULT + "\n".join(
        ages[name]
        + {"youngest": "  minimize a.age\n", "oldest": "  maximize a.age\n", "missing": "    missing(a.age)\n"}[name]
        for name in ages
    )
    (work / "questions.sens").write_text(text)
    ran = treesens(site, work, "check", "questions.sens", "--json")
    found = {r["query"]: r for r in json.loads(ran.stdout)["results"]}
    score = {
        (age, sex): (1 if age is None or age >= 20.5 else -1) + (0.25 if sex else -0.25)
        for age in AGES
        for sex in (0, 1)
    }
    for record in found.values():
        assert ("predicate", "adult") in {(one["kind"], one["name"]) for one in record["plugins"]}
    holds = [age for (age, sex), s in score.items() if FORMS[form](age, sex, s)]
    known = [age for age in holds if age is not None]
    assert found["youngest"]["points"]["a"]["age"] == min(known)
    assert found["oldest"]["points"]["a"]["age"] == max(known)
    if "missing" in found:
        assert found["missing"]["verdict"] == ("found" if None in holds else "none")
    else:  # two constraints alone contradict each other
        assert None not in holds
        assert "E309" in ran.stderr
    written = treesens(site, work, "fmt", "questions.sens", "--check")
    assert written.returncode == 0, written.stdout + written.stderr


def test_a_predicate_of_the_plug_in_is_explained_and_highlighted(site: Path, work: Path) -> None:
    (work / "questions.sens").write_text(ADULT + "query q:\n  find a such that adult(a.age)\n")
    ran = treesens(site, work, "explain", "questions.sens")
    assert ran.returncode == 0, ran.stderr
    assert "is at least 18" in ran.stdout
    wrong = "find a such that adult(a)"
    (work / "questions.sens").write_text(ADULT + f"query q:\n  {wrong}\n")
    ran = treesens(site, work, "check", "questions.sens")
    assert ran.returncode == 2
    assert "adult(P.f)" in ran.stderr
    code = (
        "from treesens.extensions.editor.highlight import SensLexer\n"
        "print([str(kind) for kind, word in SensLexer().get_tokens('not adult(a.age)') if word == 'adult'])"
    )
    assert python(site, work, "-c", code).stdout == "['Token.Name.Function']\n"


def test_a_text_of_the_plug_in_has_the_answer_of_its_question(site: Path, work: Path) -> None:
    """Rows in a format of the plug-in, solved by SciPy: what it says is what treesens says."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    for name, feasible in (("sex_alone", True), ("never", False)):
        ran = treesens(site, work, "emit", "questions.sens", name, "--to", "rows")
        assert ran.returncode == 0, ran.stderr
        rows = [json.loads(line) for line in ran.stdout.splitlines() if not line.startswith("#")]
        names = sorted({variable for _, _, terms in rows for variable in terms})
        matrix = np.array([[terms.get(variable, 0) for variable in names] for _, _, terms in rows], float)
        low = [-np.inf if end is None else end for end, _, _ in rows]
        high = [np.inf if end is None else end for _, end, _ in rows]
        found = milp(
            np.zeros(len(names)), constraints=LinearConstraint(matrix, low, high), integrality=1, bounds=Bounds(0, 1)
        )
        assert (found.status == 0) is feasible, name
    refused = treesens(site, work, "emit", "questions.sens", "never", "--to", "row")
    assert refused.returncode != 0
    assert "'row' is not one of" in refused.stderr


METHOD = """model small from "small.stumps"
feature sex: category {Female = 0, Male = 1}
feature age: real in [0, 1]

query sex_alone:
  sensitive to sex gap GAP

query best:
  find a, b such that
    a = b except sex
    margin(b) <= 0
  maximize margin(a) - margin(b)

query least:
  find a such that a.sex = Male or a.age >= 0.25
  minimize margin(a)

query never:
  find a such that margin(a) >= 10
"""


@pytest.mark.parametrize("gap", ["0.1", "0.3", "0.45"])
def test_a_way_to_answer_of_the_plug_in_is_that_of_enumeration(site: Path, work: Path, gap: str) -> None:
    (work / "questions.sens").write_text(METHOD.replace("GAP", gap))
    ran = treesens(site, work, "check", "questions.sens", "--json")
    assert ran.returncode in (0, 1), ran.stderr
    found = {r["query"]: r for r in json.loads(ran.stdout)["results"]}
    assert {record["backend"] for record in found.values()} == {"walk"}
    scores = {
        (age, sex): 0.25 + young + old + (0.75 if sex else -1.5)
        for age, (young, old) in enumerate([(-1, -0.5), (-1, 0.5), (2, 0.5)])
        for sex in (0, 1)
    }
    chance = {cell: 1 / (1 + np.exp(-score)) for cell, score in scores.items()}
    flips = any(
        chance[age, one] >= 0.5 + float(gap) and chance[age, 1 - one] <= 0.5 - float(gap) for age, one in scores
    )
    assert found["sex_alone"]["verdict"] == ("found" if flips else "none")
    best = max(scores[age, 1 - sex] - score for (age, sex), score in scores.items() if score <= 0)
    least = min(score for (age, sex), score in scores.items() if sex == 1 or age >= 1)
    for name, expected in (("best", best), ("least", least)):
        assert found[name]["objective"]["value"] == pytest.approx(expected)
        assert found[name]["objective"]["bound"] == pytest.approx(expected)
    assert found["never"]["verdict"] == "none"
    for record in found.values():
        assert ("method", "walk") in {(one["kind"], one["name"]) for one in record["plugins"]}
    for name in ("best", "least", "never"):
        assert found[name]["rests_on"] == ["proof of the plug-in method walk"]
    # A question that names its solver is not answered by it.
    ran = treesens(site, work, "check", "questions.sens", "never", "--backend", "highs", "--json")
    assert json.loads(ran.stdout)["results"][0]["backend"] != "walk"
    listed = treesens(site, work, "explain", "questions.sens", "never", "--backend", "auto", "--json")
    (explained,) = json.loads(listed.stdout)["results"]
    assert explained["methods"][0]["method"] == "walk"


def test_a_point_of_a_plug_in_that_is_no_answer_is_rejected(tmp_path: Path, work: Path) -> None:
    """Its verdicts rest on verified points, and the methods after it answer what its points do not."""
    target = tmp_path / "site"
    install(target)
    walk = target / "treesens_stumps" / "walk.py"
    text, begin = walk.read_text(), "    query, best, cells"
    point = "    return Facts(np.zeros((len(question.query.points), 2), np.int32), none=False, ended='satisfied')\n"
    walk.write_text(text.replace(begin, point + begin))
    ran = treesens(target, work, "check", "questions.sens", "never", "--json")
    (result,) = json.loads(ran.stdout)["results"]
    assert (result["verdict"], result["backend"]) == ("none", "native")
    walk.write_text(
        text.replace(begin, "    return Result(question.query.name, 'none', 'walked')\n" + begin).replace(
            "import Facts", "import Facts, Result"
        )
    )
    ran = treesens(target, work, "check", "questions.sens", "sex_alone")
    assert "sex_alone: unknown" in ran.stdout
    assert "`walk` of treesens-stumps" in ran.stderr


def test_a_plugged_in_method_names_the_method_it_comes_before(tmp_path: Path, work: Path) -> None:
    target = tmp_path / "site"
    install(target)
    walk = target / "treesens_stumps" / "walk.py"
    walk.write_text(walk.read_text().replace('before="brief search, small domain"', 'before="brief search"'))
    ran = treesens(target, work, "check", "questions.sens", "sex_alone")
    assert "sex_alone: unknown" in ran.stdout
    assert "comes before `brief search`, which is unknown" in ran.stderr


def test_a_kept_answer_is_that_of_the_plug_ins_that_are_installed(tmp_path: Path, work: Path) -> None:
    """Another version of a plug-in, or none, answers anew; the same one reads the journal."""
    target, without = tmp_path / "site", tmp_path / "without"
    install(target)
    without.mkdir()
    (info,) = target.glob("*.dist-info")
    model = Path(__file__).parents[1] / "data" / "golden" / "model.json"
    (work / "questions.sens").write_text(f'model m from "{model}"\nquery q: find a such that margin(a) >= 100\n')

    def kept(site: Path) -> bool:
        ran = treesens(site, work, "check", "questions.sens", "--journal", "answers.sqlite")
        assert ran.returncode == 0, ran.stderr
        return "from the journal" in " ".join((ran.stdout + ran.stderr).split())

    assert [kept(target), kept(target)] == [False, True]
    metadata = (info / "METADATA").read_text()
    (info / "METADATA").write_text(metadata.replace("Version: 0.1.0", "Version: 0.2.0"))
    assert [kept(target), kept(target)] == [False, True]
    assert [kept(without), kept(without)] == [False, True]
