"""Adds tables of coverage of several runs: `python -m tests.oracle.adding RUN/coverage.json .. -o SUM.json`.

The sum is a `--before` of the next run, so that what is compared least often is asked over many runs, and not only within one.
`--short` counts all backends as one.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.oracle.cases import reader
from tests.oracle.coverage import Coverage
from tests.oracle.language import family


def add_record(coverage: Coverage, record: dict[str, Any]) -> None:
    """Adds what `Coverage.record` gave of another run."""
    coverage.statuses.update(record["statuses"])
    coverage.verdicts.update(record["verdicts"])
    coverage.pipelines.update(record["pipelines"])
    coverage.refused.update(record["refused"])
    for construct, frontend, backend, count in record["compared"]:
        coverage.seen[construct, frontend, backend] += count
    for construct, prover, count in record["provers"]:
        coverage.provers[construct, prover] += count
    for study, frontend, count in record["studies"]:
        coverage.studies[study, frontend] += count


def cells_with(coverage: Coverage, least: int, whole: bool) -> tuple[int, int]:
    """How many pairs of construct and frontend were compared at least so often, and how many pairs there are.

    `whole` adds the forms of a construct, and the kinds of columns of a frontend; without it each is a pair of its own.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for (construct, frontend, _), count in coverage.seen.items():
        counts[(family(construct), reader(frontend)) if whole else (construct, frontend)] += count
    return sum(count >= least for count in counts.values()), len(counts)


def shortened(record: dict[str, Any]) -> dict[str, Any]:
    """A record with all backends as one, and with provers of questions alone."""
    counts: dict[tuple[str, str], int] = {}
    for construct, frontend, _, count in record["compared"]:
        counts[construct, frontend] = counts.get((construct, frontend), 0) + count
    return {
        **record,
        "compared": [[*pair, "all", count] for pair, count in sorted(counts.items())],
        "provers": [line for line in record["provers"] if line[0] == "questions"],
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.adding", description=__doc__)
    parser.add_argument("tables", type=Path, nargs="+", help="coverage.json of runs")
    parser.add_argument("-o", "--output", type=Path, required=True, help="their sum")
    parser.add_argument("--short", action="store_true", help="all backends as one, and provers of questions alone")
    options = parser.parse_args(argv)
    total = Coverage()
    for table in options.tables:
        add_record(total, json.loads(table.read_text()))
    record = shortened(total.record()) if options.short else total.record()
    options.output.write_text(json.dumps(record, separators=(",", ":")).replace("],[", "],\n[") + "\n")
    print(f"{total.queries} questions and {total.judged} records of studies")
    for whole, what in ((True, "construct and frontend"), (False, "form of a construct and kind of columns")):
        for least in (100, 300, 1000):
            cells, pairs = cells_with(total, least, whole)
            print(f"{cells} of {pairs} pairs of {what} were compared at least {least} times")
    print(total.table_of_provers())


if __name__ == "__main__":
    main()
