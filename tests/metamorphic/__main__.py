"""Relations over random questions: `python -m tests.metamorphic --cases 50 --seed 1000`. Exit code 1 if one is broken."""

from __future__ import annotations

import argparse
import sys

from tests.metamorphic.relations import RELATIONS, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.metamorphic", description=__doc__)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--only", default="", help="relations whose name holds this text")
    given = parser.parse_args()
    counts, broken = run(range(given.seed, given.seed + given.cases), [r for r in RELATIONS if given.only in r.name])
    for relation in RELATIONS:
        said = [f"{counts[relation.name, kind]} {kind}" for kind in ("held", "open", "broken")]
        print(f"{relation.name}: {', '.join(said)}")
    print(*broken, sep="\n\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
