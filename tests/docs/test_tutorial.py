"""The tutorial is executed in its order, as a stranger would: every command ends well, and prints what the page promises."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.command import run_command

PAGE_PATH = Path(__file__).parents[2] / "docs" / "tutorial.md"
PAGE = PAGE_PATH.read_text("utf-8")
BLOCK = re.compile(r"^```(python|sens|console|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RECOUNTED = """
import numpy as np, pandas as pd, xgboost as xgb
table = pd.read_csv("tumours.csv")
model = xgb.XGBClassifier()
model.load_model("tumours.json")
rows = table.drop(columns="target")
tried = [model.predict_proba(rows.assign(mean_texture=v))[:, 1] for v in sorted(set(table.mean_texture))]
# Values between those of the rows may flip more: no fewer than these do.
assert 0 < ((np.max(tried, 0) >= 0.7) & (np.min(tried, 0) <= 0.3)).sum() <= 43
"""
"""That 43 rows flip at gap 0.2, by the library: those of values that the table has are some of them."""


def test_the_site_has_every_page_and_no_other() -> None:
    """`make docs` warns of a page that is not in the navigation, and this tells without building it."""
    root = PAGE_PATH.parents[1]
    named = set(re.findall(r"[\w/-]+\.md", (root / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]))
    there = {str(path.relative_to(root / "docs")) for path in (root / "docs").glob("*.md")}
    assert named - {"gallery.md", "adr/README.md"} == there


def blocks() -> Iterator[tuple[str, str]]:
    return ((kind, text) for kind, text in BLOCK.findall(PAGE))


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_every_command_of_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    shown: dict[str, str] = {}
    question, printed = "", ""
    for kind, text in blocks():
        if kind == "python":
            run(tmp_path, "-c", text)
        elif kind == "sens":
            question = text
        elif kind == "text":
            lines = {" ".join(line.split()) for line in printed.splitlines()}
            assert {" ".join(line.split()) for line in text.splitlines()} - {"…"} <= lines, printed
        else:
            for line in text.splitlines():
                program, *words = shlex.split(line.removeprefix("$ "))
                assert program == "treesens"
                if question:
                    (tmp_path / words[1]).write_text(question)
                    question = ""
                done = run_command(tmp_path, *words, COLUMNS="120")
                assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
                shown[line] = printed = done.stdout
    run(tmp_path, "-c", RECOUNTED)
    assert ": found  verified" in shown["$ treesens check question.sens"]
    assert "confirmed by z3" in shown["$ treesens check question.sens --confirm z3"]
    assert "(bound 0." in shown["$ treesens check recourse.sens"]
    assert ": none  exact proof" in shown["$ treesens check release.sens --junit release.xml"]
    assert (tmp_path / "audit.html").exists()
    assert (tmp_path / "release.xml").exists()
