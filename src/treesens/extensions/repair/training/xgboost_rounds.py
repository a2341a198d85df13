"""Rounds of XGBoost: a callback of `xgboost.train` that undoes a round and repeats it.

To exclude a feature, its weight in column sampling (`feature_weights`) is set to almost 0; weights have an effect only if fewer
columns are sampled than exist.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from treesens.errors import MissingPackageError, UsageError
from treesens.extensions.repair.training.rounds import Rounds


def callback_of(rounds: Rounds, train: Any) -> Any:
    """The callback for training on the rows of the DMatrix `train`."""
    try:
        from xgboost import callback
    except ImportError:
        raise MissingPackageError("xgboost is not installed", remedy="pip install 'treesens[xgboost]'") from None

    class Kept(callback.TrainingCallback):  # type: ignore[misc]
        """Checks every round."""

        def before_training(self, model: Any) -> Any:
            self.trainer = _Trainer(model, train, rounds)
            return model

        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            del model, evals_log  # the booster stays the same object, and metrics are not used
            self.trainer.epoch = epoch
            rounds.after_round(self.trainer)
            self.trainer.remember()
            return False

        def after_training(self, model: Any) -> Any:
            self.trainer.leave_out(())
            return model

    return Kept()


class _Trainer:
    """An XGBoost booster in training, and its training rows."""

    def __init__(self, booster: Any, train: Any, rounds: Rounds) -> None:
        self.booster, self.train, self.epoch = booster, train, 0
        self.names = list(train.feature_names or [f"f{i}" for i in range(train.num_col())])
        rounds.within.check(self.names)
        self._config: Any = json.loads(booster.save_config())["learner"]["gradient_booster"]
        _check_kind(self._config)
        columns = _found(self._config, "colsample_bytree")
        self._share, self._rate = float(columns), float(_found(self._config, "learning_rate"))
        weights = np.asarray(train.get_float_info("feature_weights"), dtype=np.float64)
        self._weights = weights if len(weights) else np.ones(len(self.names))
        self.remember()

    def remember(self) -> None:
        """Stores the current booster, to be restored if the next round is undone."""
        self._before, self._rounds = self.booster.save_raw("ubj"), self.booster.num_boosted_rounds()

    def asked(self) -> frozenset[str]:
        """The features on which the last round's trees split."""
        last = self.booster.num_boosted_rounds() - 1
        return frozenset(self.booster[last : last + 1].get_fscore())

    def model(self) -> Any:
        """The current booster."""
        return self.booster

    def model_before(self) -> Any:
        """The booster without the last round; None if the last round was the first."""
        return self.booster[: self._rounds] if self._rounds else None

    def again(self, step: float, *, without: Iterable[str] = ()) -> None:
        """Undoes the last round and repeats it."""
        config = self.booster.save_config()
        self.booster.load_model(self._before)
        self.booster.load_config(config)
        self.leave_out(without)
        self.booster.set_param({"learning_rate": step * self._rate})
        self.booster.update(self.train, self.epoch)
        self.booster.set_param({"learning_rate": self._rate})

    def leave_out(self, names: Iterable[str]) -> None:
        """Excludes the named features from the next round on."""
        out = np.isin(self.names, list(names))
        self.train.set_info(feature_weights=np.where(out, 0.0, self._weights))
        share = (len(out) - out.sum() + 0.5) / len(out) if out.any() else 1.0
        self.booster.set_param({"colsample_bytree": min(self._share, float(share))})


def _check_kind(config: Any) -> None:
    """Raises UsageError for boosters whose rounds change earlier rounds."""
    kind = config.get("name", "gbtree")
    if kind != "gbtree":
        raise UsageError(f"rounds of the booster `{kind}` change earlier rounds", remedy="train with booster=gbtree")
    if config.get("gbtree_train_param", {}).get("process_type", "default") != "default":
        raise UsageError("process_type=update changes existing trees", remedy="leave it out")


def _found(config: Any, name: str) -> str:
    """The value of a parameter, wherever `config` stores it. Raises UsageError if the parameter is missing."""
    if isinstance(config, dict):
        if isinstance(config.get(name), str):
            return str(config[name])
        for value in config.values():
            if found := _found_in(value, name):
                return found
    raise UsageError(f"this version of xgboost does not report `{name}`", remedy="update xgboost")


def _found_in(config: Any, name: str) -> str:
    try:
        return _found(config, name)
    except UsageError:
        return ""
