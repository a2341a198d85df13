"""Which share of the statements of each room of src/treesens the tests reached: one figure per room, from coverage's data file.

Run by `make coverage`. A room is a folder of the package or of its extensions; the files at the top are one room, `treesens`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import coverage

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "treesens"


def main() -> None:
    data = coverage.Coverage()
    data.load()
    statements: Counter[str] = Counter()
    reached: Counter[str] = Counter()
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).parts
        depth = 2 if parts[0] == "extensions" else 1
        room = "/".join(parts[:depth]) + "/" if len(parts) > depth else "treesens"
        _, lines, _, missing, _ = data.analysis2(str(path))
        statements[room] += len(lines)
        reached[room] += len(lines) - len(missing)
    print(f"{'room':24} {'statements':>10} {'reached':>8}")
    for room, count in sorted(statements.items(), key=lambda item: reached[item[0]] / max(1, item[1])):
        print(f"{room:24} {count:10,} {reached[room] / max(1, count):8.1%}")
    print(f"{'all':24} {statements.total():10,} {reached.total() / statements.total():8.1%}")


if __name__ == "__main__":
    main()
