"""The construct of docs/extending.md: its files are those that the page names, and the page alone adds it to a copy."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import treesens
import treesens._engine
from tests.docs.test_pages import DOCS, NAMED_BLOCK, ROOT

PAGE = (DOCS / "extending.md").read_text()
BLOCKS = {
    name: code for name, code in NAMED_BLOCK.findall(PAGE) if name != "pyproject.toml" and (ROOT / name).is_file()
}
SOURCE = "src/treesens/"
IMPORT = "from treesens.grammar.constructs.present import IsPresent\n"
ASK = """
import sys
# The copy in this folder, not the installed package.
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
sys.path.insert(0, sys.argv[1])
import treesens
assert treesens.__file__.startswith(sys.argv[1]), treesens.__file__
import numpy as np
from sklearn.tree import DecisionTreeClassifier
rows = np.array([[0.0], [1.0], [2.0], [np.nan]])
model = DecisionTreeClassifier(random_state=0).fit(rows, [0, 0, 1, 1])
text = 'model m from "m"; feature f0: real in [0, 2] or missing; query q: find a such that class(a) = 1; {}'
for asked in ("present(a.f0)", "not present(a.f0)", "present(a.f0) and a.f0 in [0, 1]"):
    answer = treesens.check_text(text.replace("; f", "\\nf").replace("; q", "\\nq").format(asked), models={"m": model})["q"]
    print(answer.verdict)
a, = treesens.query.points("a")
print(treesens.query.find(a).such_that(a["f0"].is_present()))
"""


def copied(folder: Path) -> Path:
    """The package without the construct, in a folder of its own; the compiled engine beside it."""
    package = folder / "treesens"
    shutil.copytree(ROOT / SOURCE, package, ignore=shutil.ignore_patterns("engine", "__pycache__"))
    shutil.copy2(str(treesens._engine.__file__), package)
    for name, code in BLOCKS.items():
        place = package / name.removeprefix(SOURCE)
        if not name.startswith(SOURCE):
            continue
        if place.read_text() == code:
            place.unlink()
        else:
            place.write_text(place.read_text().replace(code, "").replace(IMPORT, ""))
    return package


def asked(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", ASK, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def with_method(text: str, method: str) -> str:
    """A method added to its class, and its import."""
    text = text.replace("    def is_missing", f"{method}\n    def is_missing")
    return text.replace("from treesens.grammar.constructs.missing", f"{IMPORT}from treesens.grammar.constructs.missing")


def test_the_page_alone_brings_the_construct_into_the_language(tmp_path: Path) -> None:
    package = copied(tmp_path)
    without = asked(tmp_path)
    assert "error[S040]" in without.stderr, without.stderr  # `present(..)` is a constraint that nobody knows
    for name, code in BLOCKS.items():
        place = package / name.removeprefix(SOURCE)
        if not name.startswith(SOURCE):
            continue
        place.write_text(with_method(place.read_text(), code) if place.exists() else code)
    done = asked(tmp_path)
    assert done.stdout.splitlines()[:3] == ["found", "found", "none"], done.stderr
    assert "present(a.f0)" in done.stdout


def test_blocks_are_the_files() -> None:
    assert len(BLOCKS) == 4
    for name, code in BLOCKS.items():
        text = (ROOT / name).read_text()
        assert code == text or (name.endswith("builder/terms.py") and code in text), name


def test_the_files_that_know_the_construct_are_those_of_the_table() -> None:
    table = re.search(r"^\| file \| what it gets \|\n\| --- \| --- \|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert table is not None
    named = set(re.findall(r"^\| `([^`]+)` \|", table[1], re.MULTILINE))
    paths = [path for folder in ("src", "tests", "docs") for path in (ROOT / folder).rglob("*.*")]
    paths = [p for p in [*paths, ROOT / "CHANGELOG.md"] if p.suffix in {".py", ".md", ".json", ".lark"} and p.is_file()]
    own = {"docs/extending.md", "tests/docs/test_construct_page.py"}
    mentions = re.compile(r"IsPresent|is_present\b|\bpresent\(([aP]|\{a\})\.|\|present\b|constructs\.present")
    known = {path.relative_to(ROOT).as_posix() for path in paths if mentions.search(path.read_text())} - own
    assert known == named
    assert len(named) <= 9
