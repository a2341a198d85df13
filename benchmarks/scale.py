"""Models of 1,000 trees of depth 8: reading, compiling and deciding ten features at gap 0.5, and the memory it takes.

    python benchmarks/scale.py ../shared/bench/data --output out/scale

Trains the models with xgboost (once; they stay in the output folder), then runs `treesens check` once per model, in a process
of its own: its wall time from start to end, the sums of its parts, its peak memory. Every `found` is replayed on xgboost.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

TREES, DEPTH, FEATURES, GAP = 1000, 8, 10, 0.5
TABLES = ("churn", "adult")


def train(table: Path, path: Path) -> None:
    """The last column is the class; the tables hold numbers only."""
    import pandas as pd
    import xgboost

    frame = pd.read_csv(table).dropna()
    y = frame.pop(frame.columns[-1]).astype(int)
    model = xgboost.XGBClassifier(n_estimators=TREES, max_depth=DEPTH, learning_rate=0.1, random_state=0, n_jobs=2)
    model.fit(frame, y)
    model.save_model(path)


def ask(model: Path, names: list[str]) -> dict[str, float | str]:
    """Times in seconds, memory in MB."""
    questions = [
        f"query q{i}: find a, b such that a = b except {{`{name}`}}\n  margin(a) >= {GAP}\n  margin(b) <= -{GAP}\n"
        for i, name in enumerate(names)
    ]
    file = model.with_suffix(".sens")
    file.write_text(f'model m from "{model.name}"\n' + "\n".join(questions))
    output = model.with_suffix(".answers.json")
    program = "from treesens.cli import main; main()"
    options = ["-b", "native", "-t", "60", "--replay", "library", "--json"]
    command = [sys.executable, "-c", program, "check", str(file), *options]
    start = time.perf_counter()
    with output.open("w") as out:
        child = os.posix_spawn(
            sys.executable, command, dict(os.environ), file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)]
        )
        _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - start
    if os.waitstatus_to_exitcode(status) not in {0, 5}:
        raise SystemExit(f"`treesens check` ended with {os.waitstatus_to_exitcode(status)}")
    answers = json.loads(output.read_text())["results"]
    build = sum(a["seconds"]["build"] for a in answers)
    decide = sum(a["seconds"]["solve"] for a in answers)
    verdicts = [a["verdict"] for a in answers]
    return {
        "verdicts": ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts)),
        "load and start": wall - build - decide,
        "build": build,
        "decide": decide,
        "wall": wall,
        "cpu": usage.ru_utime + usage.ru_stime,
        "memory (MB)": usage.ru_maxrss / 1000,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--output", type=Path, default=Path("out/scale"))
    chosen = parser.parse_args()
    chosen.output.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        path = chosen.output / f"{name}_t{TREES}_d{DEPTH}.json"
        table = chosen.data / name / "train.csv"
        if not path.is_file():
            train(table, path)
        names = table.open().readline().strip().split(",")[:FEATURES]
        facts = ask(path, names)
        print(name, " ".join(f"| {k}: {v if isinstance(v, str) else format(v, '.2f')}" for k, v in facts.items()))


if __name__ == "__main__":
    main()
