"""Rounds of LightGBM: a callback of `lightgbm.train` that undoes a round and repeats it.

To exclude a feature, the gain of its splits is multiplied by 0 (`feature_contri`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from treesens.errors import UsageError
from treesens.extensions.repair.training.rounds import Rounds

_RATE = re.compile(r"^\[learning_rate: (.+)\]$", re.MULTILINE)
_KIND = re.compile(r"^\[boosting: (.+)\]$", re.MULTILINE)
_FACTORS = re.compile(r"^\[feature_contri: (.*)\]$", re.MULTILINE)


def callback_of(rounds: Rounds) -> Callable[[Any], None]:
    """The callback that reports to `rounds`."""
    trainers: dict[int, _Trainer] = {}

    def kept(env: Any) -> None:
        if not hasattr(env.model, "rollback_one_iter") or not hasattr(env.model, "current_iteration"):
            raise UsageError("a budget applies to one training; lightgbm.cv runs many", remedy="call lightgbm.train")
        if id(env.model) not in trainers:
            trainers[id(env.model)] = _Trainer(env.model, rounds)
        rounds.after_round(trainers[id(env.model)])

    kept.order = 0  # type: ignore[attr-defined]  # runs before early stopping and before metrics are recorded
    return kept


class _Trainer:
    """A LightGBM booster in training."""

    def __init__(self, booster: Any, rounds: Rounds) -> None:
        self.booster, self.names = booster, list(booster.feature_name())
        rounds.within.check(self.names)
        told = booster.model_to_string(num_iteration=1)
        kind, rate, factors = (form.search(told) for form in (_KIND, _RATE, _FACTORS))
        if kind is None or rate is None:
            raise UsageError("this version of lightgbm does not report parameters", remedy="update lightgbm")
        if kind[1] not in ("gbdt", "goss"):
            raise UsageError(f"rounds of boosting={kind[1]} change earlier rounds", remedy="train with boosting=gbdt")
        self._rate = float(rate[1])
        given = [float(text) for text in factors[1].split(",")] if factors is not None and factors[1] else []
        self._factors = given or [1.0] * len(self.names)

    def asked(self) -> frozenset[str]:
        """The features on which the last round's trees split."""
        last = self.booster.dump_model(num_iteration=1, start_iteration=self.booster.current_iteration() - 1)
        found: set[str] = set()
        todo = [tree["tree_structure"] for tree in last["tree_info"]]
        while todo:
            node = todo.pop()
            if "split_feature" in node:
                found.add(self.names[node["split_feature"]])
                todo += [node["left_child"], node["right_child"]]
        return frozenset(found)

    def model(self) -> Any:
        """The current booster."""
        return self._copied(-1)

    def model_before(self) -> Any:
        """The booster without the last round; None if the last round was the first."""
        rounds = self.booster.current_iteration() - 1
        return self._copied(rounds) if rounds else None

    def _copied(self, rounds: int) -> Any:
        import lightgbm

        return lightgbm.Booster(model_str=self.booster.model_to_string(num_iteration=rounds))

    def again(self, step: float, *, without: Iterable[str] = ()) -> None:
        """Undoes the last round and repeats it."""
        self.booster.rollback_one_iter()
        self.leave_out(without)
        self.booster.reset_parameter({"learning_rate": step * self._rate})
        self.booster.update()
        self.booster.reset_parameter({"learning_rate": self._rate})

    def leave_out(self, names: Iterable[str]) -> None:
        """Excludes the named features from the next round on."""
        out = frozenset(names)
        factors = [0.0 if name in out else own for name, own in zip(self.names, self._factors, strict=True)]
        self.booster.reset_parameter({"feature_contri": factors})
