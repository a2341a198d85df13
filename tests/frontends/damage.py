"""Random damage, shared by the formats: a fixed number of files, so that a busy machine tries as much as an idle one."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from treesens.errors import ModelError


def damaged(data: bytes, rng: random.Random) -> bytes:
    """A file with a few flipped, dropped or repeated bytes."""
    broken = bytearray(data)
    for _ in range(rng.choice([1, 1, 3, 20])):
        at = rng.randrange(len(broken))
        what = rng.randrange(4)
        if what == 0:
            broken[at] = rng.randrange(256)
        elif what == 1:
            broken[at] = rng.choice(b'0123456789-.,eE[]{}"')
        elif what == 2:
            del broken[at : at + rng.randrange(1, 30)]
        else:
            broken[at:at] = broken[at : at + rng.randrange(1, 30)]
    return bytes(broken)


def refusals(data: bytes, read: Callable[[bytes], Any], *, files: int = 40, seed: int = 7) -> int:
    """How many damaged files are refused with a typed error; whatever still loads has to pass validate()."""
    rng = random.Random(seed)
    refused = 0
    for _ in range(files):
        try:
            read(damaged(data, rng)).ensemble.validate()
        except ModelError:
            refused += 1
    return refused
