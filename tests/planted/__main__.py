"""Runs the finder of each planted error, with the error and without: `python -m tests.planted [--turn N] [--only TEXT]`.

It ends in 1 if a finder passes with the error, or fails without. `--record` looks for finders: the test that fails first in the
file that a patch names, the engine's own tests, and then random cases of the oracle.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence

from tests.planted.finders import PROBLEMS, UNIT_TESTS, finding, sources, wrong_answers
from tests.planted.patches import Patch, StalePatch, all_patches

CASES, AT_ONCE = 200, 10
"""Random cases of the oracle that `--record` tries, and how many of them in one process."""


def verdict(patch: Patch) -> str:
    """Runs the finder of a patch. Returns the fault of the patch or its finder; empty without one."""
    try:
        patch.applied()
    except StalePatch as error:
        return str(error)
    remedy = f"--only '{patch.error}' --record looks for another finder"
    if finding(patch.finder):
        return f"the finder fails without the error, too: mend the sources, or {remedy}"
    return "" if finding(patch.finder, patch) else f"the finder passes with the error: {remedy}"


def candidates(patch: Patch, seed: int) -> Iterator[str]:
    """Finders that fail with the error."""
    named = patch.finder
    if named.startswith("tests/"):
        yield finding(named, patch)
        yield finding(named.partition("::")[0], patch)
    if patch.in_engine:
        yield finding(UNIT_TESTS, patch)
        yield finding(PROBLEMS, patch)
    kind = "--only-studies" if "studies" in named + patch.file else ""
    with sources(patch) as folder:
        for first in range(seed, seed + CASES, AT_ONCE):
            for failure in wrong_answers(f"--seed {first} --cases {AT_ONCE} {kind}", folder):
                ask = kind or f"--ask {shlex.quote(failure['query'])}"
                yield f"oracle --seed {failure['seed']} {ask}"


def record(patch: Patch, seed: int) -> str:
    """Searches for a finder and writes it into the patch. Returns the reason if there is none, else an empty text."""
    for finder in candidates(patch, seed):
        if finder and not finding(finder) and finding(finder, patch):
            patch.record(finder)
            return ""
    return f"nothing found in {CASES} cases: try --seed, or write a test and name its file in the patch"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("--only", default="", help="errors whose name holds this text")
    parser.add_argument("--turn", type=int, default=None, help="one error: this number, counted round")
    parser.add_argument("--record", action="store_true", help="look for a finder, and write it into the patch")
    parser.add_argument("--seed", type=int, default=1000, help="the first case of the oracle that --record tries")
    options = parser.parse_args(argv)
    patches = all_patches()
    if options.turn is not None:
        patches = [patches[options.turn % len(patches)]]
    wrong = 0
    for patch in patches:
        if options.only in patch.error:
            said = record(patch, options.seed) if options.record else verdict(patch)
            wrong += bool(said)
            print(f"{'FAILED' if said else 'found'} {patch.error}: {said or patch.finder}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
