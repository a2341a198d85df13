"""What is distributed: the sdist is the same bytes again, extras are named where they are missing, wheels are configured."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS = set(PROJECT["project"]["optional-dependencies"])
SOURCES = sorted((ROOT / "src" / "treesens").rglob("*.py"))


def sdist(tree: Path, into: Path) -> Path:
    """The sdist of a tree, made by the build backend itself."""
    code = f"import scikit_build_core.build as b; b.build_sdist({str(into)!r})"
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    subprocess.run([sys.executable, "-c", code], cwd=tree, check=True, capture_output=True, env=environment)
    (made,) = into.glob("*.tar.gz")
    return made


def test_two_sdists_are_the_same_bytes_wherever_and_whenever_they_are_made(tmp_path: Path) -> None:
    pytest.importorskip("scikit_build_core")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this tree is no checkout")
    for name in ("one", "two"):
        for text in filter(None, listed.stdout.decode().split("\0")):
            source, place = ROOT / text, tmp_path / name / text
            if not source.exists():
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, place, follow_symlinks=False)
            if name == "two" and not place.is_symlink():
                os.utime(place, (1_000_000_000, 1_000_000_000))
        (tmp_path / f"made {name}").mkdir()
    one, two = (sdist(tmp_path / name, tmp_path / f"made {name}") for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    with tarfile.open(one) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert {"LICENSE", "CMakeLists.txt", "src/treesens/engine/search.cpp", "verify/pyproject.toml"} <= set(names)
    assert {name.partition("/")[0] for name in names} & {
        "backends",
        "compiler",
        "engine",
        "frontends",
        "grammar",
    } == set()


def test_every_extra_that_a_message_names_exists_and_is_on_the_page() -> None:
    page = (ROOT / "docs" / "installation.md").read_text("utf-8")
    named: set[str] = set()
    for path in SOURCES:
        named |= set(re.findall(r"treesens\[([a-z]+)\]", path.read_text("utf-8")))
    assert named <= EXTRAS
    # Those of solvers are put together by backends/base.py.
    assert named | {"cbc", "scip", "gurobi"} >= EXTRAS - {"dev", "core", "demo", "docs", "bench", "pb", "all"}
    for extra in EXTRAS - {"dev", "core", "demo", "docs", "bench", "pb"}:
        assert f"`{extra}`" in page, extra


def test_a_library_of_an_extra_is_asked_for_by_the_extra() -> None:
    """`pip install jinja2` is what a message says of libraries that no extra brings, and of no other."""
    brought = {
        re.split(r"[<>=\[;! ]", item)[0].lower()
        for extra in EXTRAS - {"dev", "core", "demo"}
        for item in PROJECT["project"]["optional-dependencies"][extra]
    }
    for path in SOURCES:
        for package in re.findall(r"pip install ([A-Za-z][\w-]*)", path.read_text("utf-8")):
            assert package.lower() not in brought - {"treesens"}, (path.name, package)


def test_the_oldest_environment_holds_every_dependency_at_its_lower_bound() -> None:
    specification = importlib.util.spec_from_file_location("oldest", ROOT / ".ci" / "oldest.py")
    assert specification is not None
    assert specification.loader is not None
    oldest = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(oldest)
    lines = set(map(oldest.oldest, oldest.needs(PROJECT)))
    assert {"numpy==1.26.*", "pandas==2.0.*", "ray[client]==2.30.*", "nanobind==2.4.*"} <= lines
    brought = {re.split(r"[\[=]", line)[0] for line in lines}
    for extra in EXTRAS - set(oldest.LEFT_OUT):
        for need in PROJECT["project"]["optional-dependencies"][extra]:
            name = re.split(r"[<>=\[;! ]", need)[0]
            here = "platform_system == 'Darwin'" not in need or sys.platform == "darwin"
            assert name in {*brought, "treesens"} or not here, (extra, need)
    whole = {"project": {**PROJECT["project"], "dependencies": ["numpy<3"]}, "build-system": {"requires": []}}
    with pytest.raises(ValueError, match="numpy<3"):
        list(map(oldest.oldest, oldest.needs(whole)))


@pytest.mark.parametrize("outcome", ["true", "false"])
def test_a_step_of_the_night_that_fails_hides_none_behind_it(outcome: str) -> None:
    # Inside of `make quick` the variables of that make would add lines about directories.
    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    command = ["make", "nightly", f"MAKE={outcome}"]
    run = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, text=True, timeout=60, check=False)
    steps = re.findall(r"^== (make .*)\n-- \d+ s$", run.stdout, re.MULTILINE)
    assert len(steps) == 11
    assert {"make oldest", "make mutations"} <= set(steps)
    assert (run.returncode == 0) == (outcome == "true")
    assert [x for x in steps if f"{x}," in f"{run.stdout.splitlines()[-1]},"] == (steps if outcome == "false" else [])


def test_wheels_are_configured_for_every_platform_of_the_page() -> None:
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text("utf-8"))
    jobs = workflow["jobs"]
    assert set(jobs["wheels"]["strategy"]["matrix"]["os"]) == {"ubuntu-latest", "macos-latest", "windows-latest"}
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert all("@" in step["uses"] for step in steps if "uses" in step)
    versions = {classifier[2:4] for classifier in PROJECT["tool"]["cibuildwheel"]["build"]}
    assert versions == {"31"}
    assert workflow["permissions"] == {"contents": "read"}
