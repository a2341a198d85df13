"""The command `treesens`."""

from __future__ import annotations


def main() -> None:
    raise SystemExit("treesens: the commands are not built yet")
