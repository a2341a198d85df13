"""Models that people have, at growing size: time and memory of `treesens check`, and their slopes in the number of leaves.

    python -m benchmarks.scale --output out/scale --families xgboost-8 --largest 1000

Trains the models of every family once (they stay in the output folder). Then it asks about each, in a process of its own,
whether one feature flips the decision: the first ten features, at a distance in units of the family's score (`treesens check`,
native backend, 60 s a question, every `found` replayed by the library). CPU seconds and memory are those of the whole process.
Slopes are those of least squares between logarithms: 1 is in proportion to the leaves. Without the file it takes scikit-learn's
breast cancer data.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.published import FOLDER

FEATURES = 10
MEASURED = ("cpu", "memory")


@dataclass(frozen=True)
class Family:
    """`make(n)` is an untrained model of n trees; `asked` is the distance that is asked for, in units of its score."""

    make: Callable[[int], Any]
    trees: tuple[int, ...]
    asked: str


def _xgboost(depth: int) -> Callable[[int], Any]:
    def make(trees: int) -> Any:
        import xgboost

        return xgboost.XGBClassifier(n_estimators=trees, max_depth=depth, learning_rate=0.1, random_state=0, n_jobs=1)

    return make


def _lightgbm(trees: int) -> Any:
    import lightgbm

    return lightgbm.LGBMClassifier(
        n_estimators=trees, num_leaves=255, learning_rate=0.05, random_state=0, n_jobs=1, verbose=-1
    )


def _catboost(trees: int) -> Any:
    import catboost

    return catboost.CatBoostClassifier(
        iterations=trees, random_seed=0, thread_count=1, verbose=False, allow_writing_files=False
    )


def _sklearn(name: str, trees: str = "n_estimators", **options: Any) -> Callable[[int], Any]:
    def make(count: int) -> Any:
        from sklearn import ensemble

        return getattr(ensemble, name)(**{trees: count}, random_state=0, **options)

    return make


FAMILIES = {
    "xgboost-8": Family(_xgboost(8), (125, 250, 500, 1000, 2000), "margin 0.5"),
    "xgboost-10": Family(_xgboost(10), (625, 1250, 2500, 5000), "margin 0.5"),
    "lightgbm-255": Family(_lightgbm, (100, 300, 1000), "margin 0.5"),
    "catboost": Family(_catboost, (100, 300, 1000), "margin 0.5"),
    "hist-gradient-boosting": Family(
        _sklearn("HistGradientBoostingClassifier", "max_iter", early_stopping=False), (100, 300, 1000), "margin 0.5"
    ),
    "random-forest": Family(_sklearn("RandomForestClassifier"), (10, 30, 100, 300), "gap 0.2"),
    "extra-trees": Family(_sklearn("ExtraTreesClassifier"), (10, 30, 100), "gap 0.2"),
}
"""What the libraries make by default or users often ask for; the number of trees grows."""


def table(path: Path) -> tuple[Any, Any]:
    """The columns and the classes; the last column of a file is the class."""
    import pandas as pd
    from sklearn.datasets import load_breast_cancer

    if not path.is_file():
        data = load_breast_cancer(as_frame=True)
        return data.data.rename(columns=lambda name: name.replace(" ", "_")), data.target
    frame = pd.read_csv(path).dropna()
    return frame.iloc[:, :-1], frame.iloc[:, -1].astype(int)


def stored(family: str, trees: int, columns: Any, classes: Any, folder: Path) -> Path:
    """The file of a model, trained if it is not there."""
    import joblib

    kind = family.partition("-")[0]
    ending = {"xgboost": "json", "lightgbm": "txt", "catboost": "json"}.get(kind, "joblib")
    path = folder / f"{family}-{trees}.{ending}"
    if path.is_file():
        return path
    model = FAMILIES[family].make(trees).fit(columns, classes)
    if kind == "xgboost":
        model.save_model(path)
    elif kind == "catboost":
        model.save_model(path, format="json")
    elif kind == "lightgbm":
        model.booster_.save_model(path)
    else:
        joblib.dump(model, path)
    return path


def ask(model: Path, names: list[str], asked: str) -> dict[str, Any]:
    """Seconds and MB."""
    questions = [f"query q{i}: sensitive m to `{name}` {asked}\n" for i, name in enumerate(names)]
    file = model.with_suffix(".sens")
    file.write_text(f'model m from "{model.name}"\n' + "\n".join(questions))
    output = model.with_suffix(".answers.json")
    # What the kernel reports of a child begins with the memory of its parent.
    report = "atexit.register(lambda: print(open('/proc/self/status').read(), file=sys.stderr))"
    program = f"import atexit, sys; {report}; from treesens.cli import main; main()"
    options = ["-b", "native", "-t", "60", "--threads", "1", "--replay", "library", "--trust-pickle", "--json"]
    command = [sys.executable, "-c", program, "check", str(file), *options]
    status_file = model.with_suffix(".status")
    with output.open("w") as out, status_file.open("w") as err:
        actions = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, err.fileno(), 2)]
        child = os.posix_spawn(sys.executable, command, dict(os.environ), file_actions=actions)
        _, status, usage = os.wait4(child, 0)
    if os.waitstatus_to_exitcode(status) not in {0, 5}:
        raise SystemExit(f"`treesens check` ended with {os.waitstatus_to_exitcode(status)}")
    answers = json.loads(output.read_text())["results"]
    verdicts = [a["verdict"] for a in answers]
    return {
        "verdicts": ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts)),
        "cpu": usage.ru_utime + usage.ru_stime,
        "memory": int(re.findall(r"VmHWM:\s+(\d+) kB", status_file.read_text())[-1]) / 1000,
    }


def slope(leaves: list[float], values: list[float]) -> float:
    """The power of the number of leaves that a measure grows with."""
    return float(np.polyfit(np.log(leaves), np.log(np.maximum(values, 1e-3)), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path, nargs="?", default=FOLDER / "data" / "adult" / "train.csv")
    parser.add_argument("--output", type=Path, default=Path("out/scale"))
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--largest", type=int, help="The most trees.")
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    columns, classes = table(chosen.table)
    print("| family | trees | leaves | verdicts | CPU s | MB |\n|" + " --- |" * 6)
    slopes = []
    for name in chosen.families.split(","):
        rows: list[dict[str, Any]] = []
        for trees in FAMILIES[name].trees:
            if chosen.largest is not None and trees > chosen.largest:
                continue
            path = stored(name, trees, columns, classes, chosen.output)
            facts = ask(path, list(columns)[:FEATURES], FAMILIES[name].asked) | {"leaves": leaves_of(path)}
            rows.append(facts)
            counts = f"{trees:,} | {facts['leaves']:,}"
            print(
                f"| {name} | {counts} | {facts['verdicts']} | {facts['cpu']:.1f} | {facts['memory']:.0f} |", flush=True
            )
        if len(rows) > 1:
            found = [slope([r["leaves"] for r in rows], [r[key] for r in rows]) for key in MEASURED]
            slopes.append(f"| {name} | " + " | ".join(f"{value:.2f}" for value in found) + " |")
    print("\n| slope | CPU | memory |\n|" + " --- |" * 3)
    print("\n".join(slopes))


def leaves_of(path: Path) -> int:
    """The leaves of a stored model, over all its trees."""
    import treesens as ts

    return int(ts.load(path, trust_pickle=True).ensemble.n_leaves)


if __name__ == "__main__":
    main()
