"""Which share of the statements of each room of src/treesens the tests reached: one figure per room, from coverage's data file.

Run by `make coverage`. A room is a folder of the package; the files beside them are one room, `treesens`.
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
        room = parts[0] + "/" if len(parts) > 1 else "treesens"
        _, lines, _, missing, _ = data.analysis2(str(path))
        statements[room] += len(lines)
        reached[room] += len(lines) - len(missing)
    print(f"{'room':14} {'statements':>10} {'reached':>8}")
    for room, count in sorted(statements.items(), key=lambda item: reached[item[0]] / max(1, item[1])):
        print(f"{room:14} {count:10,} {reached[room] / max(1, count):8.1%}")
    print(f"{'all':14} {statements.total():10,} {reached.total() / statements.total():8.1%}")


if __name__ == "__main__":
    main()
