"""Random damage with a fixed budget, shared by the formats."""

from __future__ import annotations

import random
import time
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


def refusals(data: bytes, read: Callable[[bytes], Any], *, files: int = 150, seconds: float = 4, seed: int = 7) -> int:
    """How many damaged files are refused with a typed error; whatever still loads has to pass validate()."""
    rng = random.Random(seed)
    deadline = time.perf_counter() + seconds
    refused = 0
    for _ in range(files):
        try:
            read(damaged(data, rng)).ensemble.validate()
        except ModelError:
            refused += 1
        if time.perf_counter() > deadline:
            break
    return refused
