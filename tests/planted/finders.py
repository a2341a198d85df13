"""Runs the finder of a planted error on copies of the sources.

Each error has a copy of the Python sources, which all processes of its finder import. All errors share a copy of the engine, of
which only the files that an error touches are compiled again.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.planted.patches import CHECKER, PACKAGE, ROOT, Patch

BUILD = ROOT / "build" / "planted"
TREE = BUILD / "tree"
UNIT_TESTS, PROBLEMS = "engine_tests", "run_modules"
UNCERTAIN = {"open", "lost", "hang", "open elsewhere", "lost elsewhere"}
"""Findings of the oracle that depend on the time of a search, and so find no error."""
SITE = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
"""
"""A `sitecustomize` that lets processes import the copy in place of the editable installation."""


def finding(finder: str, patch: Patch | None = None) -> str:
    """The first failure of a finder with the error of a patch, or with honest sources; empty if it passes."""
    name, _, rest = finder.partition(" ")
    if patch is None:
        return honest(name if name in (UNIT_TESTS, PROBLEMS) else finder)
    if patch.in_engine:
        bring(patch)
    if name in (UNIT_TESTS, PROBLEMS):
        return by_engine(name, rest)
    with sources(patch) as folder:
        return by_oracle(rest, folder) if name == "oracle" else by_test(finder, folder)


@functools.cache
def honest(finder: str) -> str:
    """The first failure of a finder with the sources as they are. Unit tests of the engine are all run at once."""
    name, _, rest = finder.partition(" ")
    if name in (UNIT_TESTS, PROBLEMS):
        bring(None)
        return by_engine(name, "")
    return by_oracle(rest, None) if name == "oracle" else by_test(finder, None)


@contextmanager
def sources(patch: Patch) -> Iterator[Path]:
    """A folder with the package and the error of a patch in it. For an error of the engine, its copy is compiled."""
    import treesens._engine

    with tempfile.TemporaryDirectory(prefix="planted-") as name:
        package = Path(name) / "treesens"
        shutil.copytree(ROOT / PACKAGE, package)
        shutil.copytree(ROOT / CHECKER, package / "extensions" / Path(CHECKER).name, dirs_exist_ok=True)
        engine = extension() if patch.in_engine else Path(str(treesens._engine.__file__))
        shutil.copy(engine, package / engine.name)
        (package / inside(patch.file)).write_text(patch.applied())
        (Path(name) / "sitecustomize.py").write_text(SITE)
        yield Path(name)


def inside(file: str) -> str:
    """The place in the package of a file of the sources."""
    return (
        f"extensions/{Path(CHECKER).name}/{file[len(CHECKER) :]}" if file.startswith(CHECKER) else file[len(PACKAGE) :]
    )


def python(arguments: Sequence[str], folder: Path | None) -> subprocess.CompletedProcess[str]:
    """Runs Python on the sources in `folder`, or on those that are installed."""
    environment = {k: v for k, v in os.environ.items() if k not in ("TREESENS_THOROUGH", "PYTEST_ADDOPTS")}
    environment |= {"OMP_NUM_THREADS": "1"} | ({} if folder is None else {"PYTHONPATH": str(folder)})
    command = [sys.executable, "-W", "ignore", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended in {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-1000:]}")
    return done


def by_test(node: str, folder: Path | None) -> str:
    """The node of the first failing test of a node or file."""
    with tempfile.TemporaryDirectory(prefix="planted-cache-") as cache:
        python(["-m", "pytest", "-q", "-x", "--tb=no", "-o", f"cache_dir={cache}", node], folder)
        failed = Path(cache) / "v" / "cache" / "lastfailed"
        return str(next(iter(json.loads(failed.read_text())))) if failed.exists() else ""


def by_oracle(options: str, folder: Path | None) -> str:
    """The first wrong answer that a run of the oracle finds; empty without one."""
    found = wrong_answers(options, folder)
    return " ".join(f"{found[0]['kind']}: {found[0]['detail']}".split())[:100] if found else ""


def wrong_answers(options: str, folder: Path | None) -> list[dict[str, Any]]:
    """The wrong answers that a run of the oracle finds, without those that depend on time."""
    with tempfile.TemporaryDirectory(prefix="planted-oracle-") as out:
        fixed = ["--cases", "1", "--jobs", "1", "--shrink", "0", "--others", "0", "--studies", "0", "--output", out]
        python(["-m", "tests.oracle", *fixed, *shlex.split(options)], folder)
        told = [json.loads(line) for line in (Path(out) / "failures.jsonl").read_text().splitlines()]
    return [failure for failure in told if failure["kind"] not in UNCERTAIN]


def engine_sources() -> list[Path]:
    """The files of the engine and of its own tests. Their folders hold Python, too, and the bytecode of it."""
    folders = (ROOT / PACKAGE / "engine", ROOT / "tests" / "cpp")
    files = (path for folder in folders for ends in ("?pp", "h") for path in folder.rglob(f"*.{ends}"))
    return [ROOT / "CMakeLists.txt", *sorted(files)]


def bring(patch: Patch | None) -> None:
    """Brings the copy of the engine up to date, with the error of a patch. Files that are the same already keep their times."""
    wanted = {path.relative_to(ROOT): path.read_text() for path in engine_sources()}
    if patch is not None:
        wanted[Path(patch.file)] = patch.applied()
    for old in [path for path in TREE.rglob("*.*") if path.is_file() and path.relative_to(TREE) not in wanted]:
        old.unlink()
    for place, text in wanted.items():
        if not (TREE / place).exists() or (TREE / place).read_text() != text:
            (TREE / place).parent.mkdir(parents=True, exist_ok=True)
            (TREE / place).write_text(text)


def by_engine(program: str, case: str) -> str:
    """The first failure of the engine's own tests: the name of a unit test, or a problem that brute force answers otherwise."""
    folder = build("tests", ["-DTREESENS_CPP_TESTS=ON", "-DCMAKE_CXX_FLAGS_RELEASE=-O1"], program)
    arguments = ["--abort-after=1", *([f"--test-case={case.replace(',', chr(92) + ',')}"] if case else [])]
    if program == PROBLEMS:
        arguments = [str(random_problems())]
    done = subprocess.run([folder / program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    failed = re.search(r"^TEST CASE:\s*(.*)$", done.stdout, re.MULTILINE)
    return f"{program} {failed[1]}" if failed else program


@functools.cache
def random_problems() -> Path:
    """300 problems as `make cpp-test` draws them."""
    place = BUILD / "modules.txt"
    python(["-m", "tests.cpp.modules.write", "300", "1", str(place)], None)
    return place


def extension() -> Path:
    """The compiled extension of the copy."""
    tool = [sys.executable, "-m", "nanobind", "--cmake_dir"]
    nanobind = subprocess.run(tool, capture_output=True, text=True, check=True).stdout.strip()
    options = [
        "-DSKBUILD=ON",
        "-DSKBUILD_SABI_COMPONENT=",
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-Dnanobind_DIR={nanobind}",
    ]
    return next(build("extension", options, "_engine").glob("_engine*.so"))


def build(name: str, options: Sequence[str], target: str) -> Path:
    """A build folder of the copy, in which a target is made."""
    folder, tools = BUILD / name, Path(sys.executable).parent
    commands = [["cmake", "--build", str(folder), "--target", target]]
    if not (folder / "build.ninja").exists():
        ninja = f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}"
        commands.insert(
            0,
            ["cmake", "-S", str(TREE), "-B", str(folder), "-G", "Ninja", ninja, "-DCMAKE_BUILD_TYPE=Release", *options],
        )
    for command in commands:
        done = subprocess.run([tools / command[0], *command[1:]], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-1000:]}")
    return folder
