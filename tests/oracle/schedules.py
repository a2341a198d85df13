"""What brings the code of long searches to small problems: numbers of the engine's schedule (`schedule()` has them all), and
methods of answering that are left out, so that those after them in the list are asked.

Both change how a search goes, never what it says: a question that is answered otherwise under one of them is a fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

SHORT_TURNS = (
    "local_turn=1,local_turn_2=1,local_turn_3=1,prove_turn=1,prove_turn_2=4000,optimum_local_turn=1,"
    "optimum_prove_turn=1,optimum_local_turn_2=1,optimum_prove_turn_2=4000,optimum_local_turn_3=1,"
    "sum_local_turn_2=1,sum_prove_turn_2=4000,sum_local_turn_3=1"
)
WEAK_BOUNDS = (
    "root_sweeps=1,node_sweeps=0,root_steps=1,node_steps=0,root_passes=0,node_passes=0,polish=0,apart_sweeps=0,"
    "apart_shares=0,apart_steps=0,apart_steps_most=0"
)

SCHEDULES = {
    "parts": f"{SHORT_TURNS},{WEAK_BOUNDS},part_early=1,part_late=2,part_long=0,part_turn=500",
    "crews": f"{SHORT_TURNS},{WEAK_BOUNDS},share_from_turn=1,share_unsettled=1,share_quantum=20",
    "overlap": f"{SHORT_TURNS},deep_tree=1,messages_every=1000,overlap_idle=1,overlap_point=3",
    "overlap in turns": f"{SHORT_TURNS},deep_tree=1,messages_every=2,overlap_pairs=4,overlap_pairs_together=40",
    "weak bounds": f"{SHORT_TURNS},{WEAK_BOUNDS}",
    "no room": f"{SHORT_TURNS},{WEAK_BOUNDS},open_node_megabytes=0",
    "large factors": f"{SHORT_TURNS},together=20000,apart_passes=1,apart_steps=8,apart_trials=4",
    "single trees": "together=0",
    "sums": "local_turn=1,prove_turn=1,sum_rows=1,sum_local_turn_2=20000,sum_prove_turn_2=4000,sum_local_turn_3=20000",
}

SMALL = ("brief search, small domain", "combinations")
BRIEF = (*SMALL, "brief search, few changes", "brief search, disjunction", "any answer")
LEFT_OUT = {
    "small domains": SMALL,
    "brief searches": BRIEF,
    "cells of values": (*BRIEF, "cheapest cells", "least radius", "fewest changes"),
    "trees": (*SMALL, "trees", "trees, typical inputs", "attainable sums"),
    "splitting": (*SMALL, "cases", "fewest changes", "attainable sums"),
}
"""Methods without which each question has an answer still, since one after them in the list fits whatever they fit."""


def draw_left_out(rng: np.random.Generator) -> str:
    """The name of what is left out, or ""."""
    return str(rng.choice(["", *LEFT_OUT], p=[0.6, *([0.4 / len(LEFT_OUT)] * len(LEFT_OUT))]))


def draw_schedule(rng: np.random.Generator) -> tuple[str, int]:
    """(the name of a schedule or "", threads): more threads mostly where a search is shared early."""
    name = str(rng.choice(["", *SCHEDULES], p=[0.55, *([0.45 / len(SCHEDULES)] * len(SCHEDULES))]))
    several = rng.random() < (0.9 if name == "crews" else 0.12)
    return name, int(rng.integers(2, 5)) if several else 1


@contextmanager
def without(name: str) -> Iterator[None]:
    """This process without some of the methods of answering."""
    from treesens.solve.methods.registry import all_methods

    chosen = [m for m in all_methods() if name and m.name in LEFT_OUT[name]]
    assert len(chosen) == len(LEFT_OUT.get(name, ())), "a method of this name is not in the list"
    fits = [m.fits for m in chosen]
    for method in chosen:
        object.__setattr__(method, "fits", lambda *_: False)
    try:
        yield
    finally:
        for method, known in zip(chosen, fits, strict=True):
            object.__setattr__(method, "fits", known)


@contextmanager
def scheduled(name: str) -> Iterator[None]:
    """The engine of this process under a schedule."""
    from treesens._engine import schedule, set_schedule

    standard = ",".join(f"{key}={default}" for key, (_, default, _, _) in schedule().items())
    set_schedule(SCHEDULES[name] if name else "")
    try:
        yield
    finally:
        set_schedule(standard)
