"""Large models: loaded beside their library, and asked whether features flip the decision, for gaps and for score ranges.

    python -m benchmarks.large_models [table.csv] --output out/large

Trains 20,000 trees of depth 6 (XGBoost), 3,000 trees of 255 leaves (LightGBM) and a forest of 500 trees of depth 12
(scikit-learn) once; they stay in the output folder. Loads are CPU seconds around the call, each in a process of its own, ours
and the library's one after the other. Questions are commands in processes of their own, with their CPU seconds and largest
memory, imports and loading included. Without the table it takes scikit-learn's breast cancer data.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.published import FOLDER
from benchmarks.scale import table

ASKED = 3
"""Features that are asked about."""
_LOAD = "import time; {imports}; s = time.process_time(); {call}; print(time.process_time() - s)"


@dataclass(frozen=True)
class Large:
    """A model: how it is trained, saved and loaded by its library, what is asked of it, and how long that may take."""

    title: str
    file: str
    make: Callable[[int], Any]
    trees: int
    imports: str
    load: str
    small: str
    large: str


def _xgboost(trees: int) -> Any:
    import xgboost

    return xgboost.XGBClassifier(n_estimators=trees, max_depth=6, learning_rate=0.02, random_state=0, n_jobs=1)


def _lightgbm(trees: int) -> Any:
    import lightgbm

    return lightgbm.LGBMClassifier(
        n_estimators=trees, num_leaves=255, learning_rate=0.02, random_state=0, n_jobs=1, verbose=-1
    )


def _forest(trees: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(trees, max_depth=12, random_state=0, n_jobs=1)


MODELS = [
    Large(
        "XGBoost, {} trees of depth 6",
        "xgboost.json",
        _xgboost,
        20_000,
        "import xgboost",
        "xgboost.Booster(model_file={!r})",
        "margin 0.5",
        "margin 20",
    ),
    Large(
        "LightGBM, {} trees of 255 leaves",
        "lightgbm.txt",
        _lightgbm,
        3_000,
        "import lightgbm",
        "lightgbm.Booster(model_file={!r})",
        "margin 0.5",
        "margin 20",
    ),
    Large(
        "random forest, {} trees of depth 12",
        "forest.joblib",
        _forest,
        500,
        "import joblib, sklearn.ensemble",
        "joblib.load({!r})",
        "gap 0.05",
        "gap 0.3",
    ),
]


def stored(model: Large, trees: int, columns: Any, classes: Any, folder: Path) -> Path:
    """The file of a model, trained if it is not there."""
    import joblib

    path = folder / f"{trees}-{model.file}"
    if not path.is_file():
        made = model.make(trees).fit(columns, classes)
        if path.suffix == ".joblib":
            joblib.dump(made, path)
        else:
            (made.booster_ if path.suffix == ".txt" else made).save_model(path)
    return path


def run(command: Sequence[str], folder: Path) -> tuple[str, float, float, int]:
    """What a command prints, its CPU seconds, its largest memory in MB, and its exit code."""
    out, status_file = folder / "run.out", folder / "run.status"
    report = "atexit.register(lambda: print(open('/proc/self/status').read(), file=sys.stderr))"
    words = [sys.executable, "-c", f"import atexit, sys; {report}; {command[0]}", *command[1:]]
    with out.open("w") as output, status_file.open("w") as status:
        actions = [(os.POSIX_SPAWN_DUP2, output.fileno(), 1), (os.POSIX_SPAWN_DUP2, status.fileno(), 2)]
        child = os.posix_spawn(sys.executable, words, dict(os.environ), file_actions=actions)
        _, code, usage = os.wait4(child, 0)
    # What the kernel reports of a child begins with the memory of its parent.
    memory = int(re.findall(r"VmHWM:\s+(\d+) kB", status_file.read_text())[-1]) / 1000
    return out.read_text(), usage.ru_utime + usage.ru_stime, memory, os.waitstatus_to_exitcode(code)


def loads(model: Large, path: Path, folder: Path) -> list[str]:
    """A line: our load beside the library's."""
    ours = _LOAD.format(
        imports=f"{model.imports}; import treesens as ts", call=f"m = ts.load({str(path)!r}, trust_pickle=True)"
    )
    theirs = _LOAD.format(imports=model.imports, call="m = " + model.load.format(str(path)))
    seconds = [(float(text), memory) for text, _, memory, _ in (run([part], folder) for part in (ours, theirs))]
    (mine, memory), (library, of_library) = seconds
    size = path.stat().st_size / 1e6
    return [
        f"{size:,.0f}",
        f"{mine:.2f}",
        f"{library:.2f}",
        f"{mine / library:.2f}",
        f"{memory:,.0f}",
        f"{of_library:,.0f}",
    ]


def asks(model: Large, path: Path, names: Sequence[str], folder: Path, seconds: float) -> list[list[str]]:
    """A line for each command: what is asked, what came of it, CPU seconds and memory."""
    main, lines = "from treesens.cli import main; main()", []
    more = ["-t", str(seconds), "--trust-pickle", "--json"]
    for size in (model.small, model.large):
        file = folder / "question.sens"
        asked = [f"query q{i}: sensitive m to `{name}` {size}\n" for i, name in enumerate(names)]
        file.write_text(f'model m from "{path.name}"\n' + "\n".join(asked))
        text, cpu, memory, _ = run([main, "check", str(file), "-b", "native", *more], folder)
        found = [one["verdict"] for one in json.loads(text)["results"]]
        told = ", ".join(f"{found.count(v)} {v}" for v in dict.fromkeys(found))
        lines.append([f"{size}, {len(names)} features", told, f"{cpu:.1f}", f"{memory:,.0f}"])
    vary = [word for name in names for word in ("--vary", name)]
    text, cpu, memory, _ = run([main, "gap", str(path), *vary, *more], folder)
    gaps = json.loads(text)["results"]
    told = "; ".join(f"{_number(one['largest_gap'])} (≤ {_number(one['largest_gap_bound'])})" for one in gaps)
    lines.append([f"`gap`, {len(names)} features", told, f"{cpu:.1f}", f"{memory:,.0f}"])
    text, cpu, memory, _ = run([main, "range", str(path), *more], folder)
    ends = json.loads(text)["results"]
    told = "; ".join(f"{_number(one['value'])} (bound {_number(one['bound'])})" for one in ends)
    lines.append(["`range`, both ends", told, f"{cpu:.1f}", f"{memory:,.0f}"])
    return lines


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, nargs="?", default=FOLDER / "data" / "adult" / "train.csv")
    parser.add_argument("--output", type=Path, default=Path("out/large"))
    parser.add_argument("--part", type=float, default=1.0, help="Of the trees.")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--only", default="", help="Files whose names hold this.")
    parser.add_argument("--features", default="", help="Features to ask about, as a,b (default: the first ones).")
    parser.add_argument("--train", action="store_true", help="Train the models, and ask nothing.")
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    columns, classes = table(chosen.table)
    models = [model for model in MODELS if chosen.only in model.file]
    sizes = {model.file: max(1, int(model.trees * chosen.part)) for model in models}
    paths = {model.file: stored(model, sizes[model.file], columns, classes, chosen.output) for model in models}
    if chosen.train:
        return
    print("| model | file MB | treesens CPU s | library CPU s | ratio | treesens MB | library MB |\n|" + " --- |" * 7)
    for model in models:
        line = loads(model, paths[model.file], chosen.output)
        print(f"| {model.title.format(f'{sizes[model.file]:,}')} | " + " | ".join(line) + " |", flush=True)
    print("\n| model | asked | answer | CPU s | MB |\n|" + " --- |" * 5)
    for model in models:
        names = chosen.features.split(",") if chosen.features else list(map(str, columns))[:ASKED]
        for line in asks(model, paths[model.file], names, chosen.output, chosen.time_limit):
            print(f"| {model.title.format(f'{sizes[model.file]:,}')} | " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
