"""An environment with the oldest versions that pyproject.toml allows: `python .ci/oldest.py build/oldest`.

A lower bound names a series: `scikit-learn>=1.4` promises 1.4, and `pandas>=2` promises 2.0. uv chooses the oldest version of
each series that has a wheel for this Python and fits the others, and fails if there is none: nobody could install what such a
bound promises. Dependencies of dependencies are the newest ones that fit.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
EXTRAS = ("dev", "ray", "shap")
"""What tests import; `dev` holds most other extras."""
LEFT_OUT = {
    "all": "holds nothing of its own",
    "bench": "benchmarks compare with it",
    "docs": "builds the site, with what is newest",
    "xgboost": "`demo` holds the same library without GPUs",
}
TOOLS = ("cmake", "ninja")
"""Programs of the build, which pyproject.toml does not name."""


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def needs(whole: dict[str, Any]) -> Iterator[Requirement]:
    """Dependencies, requirements of the build, and what `EXTRAS` hold, without those of other platforms."""
    extras = whole["project"]["optional-dependencies"]
    todo = [*whole["project"]["dependencies"], *whole["build-system"]["requires"]]
    todo += [need for extra in EXTRAS for need in extras[extra]]
    for text in todo:
        need = Requirement(text)
        if need.name == whole["project"]["name"]:
            todo += [inner for extra in sorted(need.extras) for inner in extras[extra]]
        elif need.marker is None or need.marker.evaluate():
            yield need


def oldest(need: Requirement) -> str:
    """The requirement of the oldest series alone: `ray[client]==2.30.*`.

    Raises:
        ValueError: It has no lower bound, so that nobody knows with what it works.
    """
    bounds = [s.version for s in need.specifier if s.operator == ">="]
    if len(bounds) != 1:
        raise ValueError(f"pyproject.toml: give {need} a lower bound: >=VERSION")
    extras = f"[{','.join(sorted(need.extras))}]" if need.extras else ""
    series = bounds[0] if "." in bounds[0] else f"{bounds[0]}.0"
    return f"{need.name}{extras}=={series}.*"


def main(folder: Path) -> None:
    python, wanted, chosen = folder / "bin" / "python", folder.with_suffix(".in"), folder.with_suffix(".txt")
    if not python.exists():
        venv.create(folder, with_pip=True)
    wanted.write_text("".join(f"{line}\n" for line in sorted(set(map(oldest, needs(project()))))), "utf-8")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv")
    uv, on = (folder / "bin" / "uv", "pip"), ("--quiet", "--python", python)
    run(*uv, "compile", *on, "--resolution", "lowest-direct", "--only-binary", ":all:", wanted, "-o", chosen)
    run(*uv, "install", *on, "-r", chosen, *TOOLS)
    build = ("--no-build-isolation", "--no-deps", "--config-settings", f"build-dir={folder.resolve()}/engine")
    run(*uv, "install", *on, *build, "-e", ROOT)


def run(*command: object) -> None:
    done = subprocess.run([str(part) for part in command], stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
