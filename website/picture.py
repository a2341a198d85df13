"""The picture of the first page: `python -m website.picture` audits the model of the examples and draws which rows flip."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import treesens as ts
from treesens.extensions.studies.report.plots import new_axes, save_plot

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "examples" / "out"
PICTURE = ROOT / "docs" / "images" / "flips.svg"


def main() -> None:
    subprocess.run([sys.executable, str(ROOT / "examples" / "train.py")], check=True, stdout=subprocess.DEVNULL)
    audit = ts.audit(OUT / "loan.json", OUT / "applicants.csv", label="label", gap=0.1, jobs=1)
    axes = new_axes(PICTURE)
    axes.figure.set_size_inches(7, 2.6)
    drawn = audit.plot("flips", axes=axes)
    drawn.set_xlim(0, 1.15)  # room for the longest label
    save_plot(drawn, PICTURE)


if __name__ == "__main__":
    main()
