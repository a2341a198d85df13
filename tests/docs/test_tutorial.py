"""The tutorial is executed in its order, as a stranger would: every command ends well, and prints what the page shows."""

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
BLOCK = re.compile(r"^```(python|sens|toml|console|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RECOUNTED = """
import numpy as np, pandas as pd, skops.io
model = skops.io.load("credit.skops", trusted=skops.io.get_untrusted_types(file="credit.skops"))
repaired = skops.io.load("repaired.skops", trusted=skops.io.get_untrusted_types(file="repaired.skops"))
rows, new = (pd.read_csv(name) for name in ("applicants.csv", "new.csv"))
inputs = [name for name in rows if name != "Decision"]
refused = lambda model, rows: model.predict_proba(rows[inputs])[:, 1]
both = lambda model, rows: np.array([refused(model, rows.assign(Sex=sex)) for sex in ("female", "male")])
flips = lambda model, rows: int(((both(model, rows).max(0) >= 0.6) & (both(model, rows).min(0) <= 0.4)).sum())
ages = np.array([refused(model, rows.assign(Age=age)) for age in range(19, 71)])
assert (flips(model, rows), flips(model, new), flips(repaired, new)) == (38, 18, 0)
assert int(((ages.max(0) >= 0.6) & (ages.min(0) <= 0.4)).sum()) == 1
decided = model.predict(new[inputs])
assert [int((decided[new.Sex == sex] == "granted").sum()) for sex in ("female", "male")] == [59, 93]
assert int((decided != repaired.predict(new[inputs])).sum()) == 26
assert np.ptp(both(repaired, rows), axis=0).max() == 0
"""
"""The counts of the page, by the library."""


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


def test_every_command_of_the_tutorial_prints_what_the_page_shows(tmp_path: Path) -> None:
    printed, outputs = "", 0
    tables = iter(("treesens.toml", "codes.toml"))
    for kind, text in blocks():
        if kind == "python":
            run(tmp_path, "-c", text)
        elif kind == "toml":
            (tmp_path / next(tables)).write_text(text)
        elif kind == "sens":
            (tmp_path / "release.sens").write_text(text)
        elif kind == "text":
            outputs += 1
            lines = {" ".join(line.split()) for line in printed.splitlines()}
            assert {" ".join(line.split()) for line in text.splitlines()} - {"…"} <= lines, printed
        else:
            printed = ""
            for line in text.splitlines():
                program, *words = shlex.split(line.removeprefix("$ "))
                assert program == "treesens"
                if words[0] == "init":
                    assert not (tmp_path / "treesens.toml").exists()
                done = run_command(tmp_path, *words, COLUMNS="120")
                assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
                if words[0] == "init":
                    assert 'protected = ["Sex", "Age"]' in (tmp_path / "treesens.toml").read_text()
                printed += done.stdout
    assert outputs == 7
    assert "sex_alone: none  exact proof by compiler, confirmed by cpsat" in printed
    run(tmp_path, "-c", RECOUNTED)
    assert len(list((tmp_path / "letters").glob("*.txt"))) == 5
    assert (tmp_path / "audit.html").exists()
    assert (tmp_path / "release.xml").exists()
