"""What is answered to many drawn questions, written down and compared: how questions are answered may change, answers may not.

`python -m tests.solve.answers --seeds 0:20 --write before.json`, then the change, then `--compare before.json`. The oracle
draws the questions, and the native engine is asked. Parts of a time limit are all of it and a question has a minute, so that
answers do not depend on the machine. With `--hasty` short searches get no time: what comes after them is asked.

A record is compared as a whole, but for times and names of models in memory. Exit code 1 if one differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.oracle.asking import ask
from tests.oracle.cases import draw_case
from treesens.compiler.base.budget import Budget

SECONDS = 60.0
QUESTIONS = 24
_LEFT_OUT = ("seconds", "size", "statistics", "time", "produced_in", "checked_in", "models")
_SHORT = 3.0
"""Seconds: what gets less is a short search that comes before another one."""


@contextmanager
def unhurried(*, hasty: bool) -> Iterator[None]:
    """Parts of a budget are all of it; if `hasty`, short ones are nothing."""
    within, share, at_least = Budget.within, Budget.share, Budget.at_least

    def part(budget: Budget, seconds: float) -> Budget:
        return replace(budget, deadline=0.0) if hasty and seconds < _SHORT else budget

    setattr(Budget, "within", part)  # noqa: B010
    setattr(Budget, "share", lambda budget, _: budget)  # noqa: B010
    if hasty:
        setattr(Budget, "at_least", lambda budget, _: budget)  # noqa: B010
    try:
        yield
    finally:
        Budget.within, Budget.share, Budget.at_least = within, share, at_least  # type: ignore[method-assign]


def answers_of(seeds: range, *, hasty: bool) -> dict[str, Any]:
    """Records by seed and name of the question, without times."""
    found: dict[str, Any] = {}
    for seed in seeds:
        case = draw_case(seed, QUESTIONS)
        options: dict[str, Any] = {"backend": "native", "time_limit": SECONDS, "seed": 1, "tolerance": 0.0}
        if seed % 4 == 1:
            options["confirm"] = "library"
        with unhurried(hasty=hasty):
            records = ask(case, case.questions, options)
        for name, record in records.items():
            found[f"{seed} {name}"] = untimed(record) if isinstance(record, dict) else f"{type(record).__name__}"
        print(f"seed {seed}: {len(records)} questions", file=sys.stderr, flush=True)
    return found


def untimed(record: Any) -> Any:
    """A record without what depends on the machine."""
    if isinstance(record, dict):
        return {key: untimed(value) for key, value in record.items() if key not in _LEFT_OUT}
    return [untimed(value) for value in record] if isinstance(record, list | tuple) else record


def differences(before: Any, after: Any, path: str = "") -> list[str]:
    """Where two records differ, as lines."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = sorted({*before, *after})
        return [line for key in keys for line in differences(before.get(key), after.get(key), f"{path}.{key}")]
    return [] if before == after else [f"{path}: {json.dumps(before)[:300]} -> {json.dumps(after)[:300]}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:20", help="FIRST:END")
    parser.add_argument("--hasty", action="store_true", help="short searches get no time")
    parser.add_argument("--write", type=Path, help="where the answers are kept")
    parser.add_argument("--compare", type=Path, help="answers that are to be the same")
    options = parser.parse_args()
    found = json.loads(json.dumps(answers_of(range(*map(int, options.seeds.split(":"))), hasty=options.hasty)))
    if options.write is not None:
        options.write.write_text(json.dumps(found, indent=1, sort_keys=True))
    known = found if options.compare is None else untimed(json.loads(options.compare.read_text()))
    changed = 0
    for name in found:
        lines = differences(known.get(name), found[name])
        changed += bool(lines)
        for line in lines:
            print(f"{name} {line}")
    verdicts = Counter(r["verdict"] for r in found.values() if isinstance(r, dict))
    methods = Counter(
        f"{a['backend']} {a['termination']}" for r in found.values() if isinstance(r, dict) for a in r["attempts"]
    )
    print(f"{len(found)} answers, {dict(verdicts)}, attempts {dict(methods)}, {changed} changed")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
