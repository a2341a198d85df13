"""Runs the oracle: `python -m tests.oracle --seconds 120 --seed 1 --jobs 1`. Exit code 1 if an answer is wrong."""

from __future__ import annotations

import sys

from tests.oracle.run import main

if __name__ == "__main__":
    sys.exit(main())
