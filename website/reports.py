"""The reports of the gallery: `python -m website.reports FOLDER` makes them, as HTML, JSON and, if a browser is installed, PDF.

Two models are audited beside that of the examples: a booster and a forest of scikit-learn. If the published models and tables
are in `build/bench` (`make bench-data`) they are the paper's model of Adult with 300 trees and a forest trained on German
Credit, else models trained on a table that comes with scikit-learn. Neither model nor table is kept. The two pages of a PDF
that are to be signed, and the page on a desktop and on a phone, are pictures for the page of the gallery.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BENCH = Path("build") / "bench"
DATE = "2026-01-01"
"""Of every report, so that only what is audited changes it."""
UNDECIDED = 5
"""The exit code of an audit with an open question."""
SCREENS = {"desktop": (1280, 1400), "phone": (390, 1400)}
"""Widths and heights in pixels."""
TO_SIGN = 2
"""Pages of a report that are signed; the others are its annex."""


@dataclass(frozen=True)
class Sample:
    """What one report is about. `gaps` are in probability, `seconds` for each feature; paths are as the command names them."""

    name: str
    title: str
    model: str
    data: str
    label: str
    gaps: str
    seconds: int
    protected: str = ""

    def command(self, page: Path, *more: str) -> list[str]:
        """The audit that writes the report."""
        asked = ["treesens", "audit", self.model, "--data", self.data, "--label", self.label, "--gap", self.gaps]
        asked += ["--protected", self.protected] if self.protected else []
        return [*asked, "-t", str(self.seconds), "-j", "1", "--date", DATE, "--report", str(page), "--quiet", *more]


def samples(folder: Path) -> list[Sample]:
    """The reports that can be made here; their models are trained into the folder."""
    loan = Sample(
        "loan",
        "The loan model of the examples",
        "examples/out/loan.json",
        "examples/out/applicants.csv",
        "label",
        "0.1",
        5,
        "sex",
    )
    return [loan, *(_published(folder) if (ROOT / BENCH / "models").is_dir() else _bundled(folder))]


def _published(folder: Path) -> list[Sample]:
    import pandas as pd

    adult, german = (BENCH / "data" / name / "train.csv" for name in ("adult", "german_credit"))
    booster = BENCH / "models" / "adult_t300_d5.json"
    forest = _forest(folder / "german_forest.skops", pd.read_csv(ROOT / german), "label")
    return [
        Sample(
            "booster",
            "Adult, the paper's model of 300 trees",
            str(booster),
            str(adult),
            "label",
            "0.1,0.2",
            4,
            "sex,race",
        ),
        Sample(
            "forest",
            "German Credit, a forest of scikit-learn",
            str(forest),
            str(german),
            "label",
            "0.05,0.1",
            4,
            "PersonalStatusSex",
        ),
    ]


def _bundled(folder: Path) -> list[Sample]:
    import xgboost
    from sklearn.datasets import load_breast_cancer

    frame = load_breast_cancer(as_frame=True).frame
    frame = frame[[*frame.columns[:8], "target"]].rename(columns=lambda name: name.replace(" ", "_"))
    data = folder / "tumours.csv"
    frame.to_csv(data, index=False)
    booster = folder / "tumours.json"
    model = xgboost.XGBClassifier(n_estimators=40, max_depth=3, n_jobs=1, random_state=0)
    model.fit(frame.drop(columns="target"), frame["target"]).get_booster().save_model(booster)
    forest = _forest(folder / "tumour_forest.skops", frame, "target")
    return [
        Sample("booster", "Tumours, a booster", str(booster), str(data), "target", "0.1,0.2", 2),
        Sample("forest", "Tumours, a forest of scikit-learn", str(forest), str(data), "target", "0.05,0.1", 2),
    ]


def _forest(path: Path, frame: object, label: str) -> Path:
    import pandas as pd
    import skops.io
    from sklearn.ensemble import RandomForestClassifier

    assert isinstance(frame, pd.DataFrame)
    forest = RandomForestClassifier(30, max_depth=5, random_state=0, n_jobs=1)
    skops.io.dump(forest.fit(frame.drop(columns=label), frame[label]), path)
    return path


def make(folder: Path) -> list[dict[str, object]]:
    """Writes all reports into a folder; what was written, with the title and the figures of each."""
    from treesens.errors import UsageError
    from treesens.extensions.studies.report.pdf import browser

    folder.mkdir(parents=True, exist_ok=True)
    try:
        printed = bool(browser())
    except UsageError:
        printed = False
    written: list[dict[str, object]] = []
    for sample in samples(folder):
        page = folder / f"{sample.name}.html"
        paper = page.with_suffix(".pdf")
        run(sample.command(page, *(["--pdf", str(paper)] if printed else [])))
        records = json.loads(page.with_suffix(".audit.json").read_text("utf-8"))
        answers = [record["verdict"] for record in records["results"]]
        files = [page.name, f"{sample.name}.audit.json", *([paper.name] if printed else [])]
        verdicts = {verdict: answers.count(verdict) for verdict in ("found", "none", "unknown")}
        pictures = [*pictures_of(paper, TO_SIGN), *map(partial(screen_of, page), SCREENS)] if printed else []
        written.append(
            {"name": sample.name, "title": sample.title, "files": files, "pictures": pictures, "verdicts": verdicts}
        )
    return written


def pictures_of(paper: Path, count: int) -> list[str]:
    """The first `count` pages of a PDF as PNG files beside it, 110 dots per inch; their names."""
    import pypdfium2

    made = []
    with pypdfium2.PdfDocument(paper) as document:
        for number in range(min(count, len(document))):
            picture = paper.with_name(f"{paper.stem}-{number + 1}.png")
            document[number].render(scale=110 / 72).to_pil().quantize(32).save(picture, optimize=True)
            made.append(picture.name)
    return made


def screen_of(page: Path, name: str) -> str:
    """The top of a page on a screen, as a PNG file beside it; its name."""
    from treesens.extensions.studies.report.pdf import print_page

    picture = page.with_name(f"{page.stem}-{name}.png")
    width, height = SCREENS[name]
    picture.unlink(missing_ok=True)
    print_page(
        page, picture, f"--window-size={width},{height}", "--hide-scrollbars", f"--screenshot={picture.resolve()}"
    )
    return picture.name


def run(command: Sequence[str]) -> None:
    """Runs the treesens of this Python. Raises CalledProcessError if it fails; that a feature stays undecided is no failure."""
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode not in {0, UNDECIDED}:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    (target / "reports.json").write_text(json.dumps(make(target), indent=1), "utf-8")
