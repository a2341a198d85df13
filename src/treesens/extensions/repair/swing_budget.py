"""Training within a sensitivity budget in Python, with callbacks for the libraries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from treesens.compiler.base.floats import fraction_of
from treesens.errors import UsageError
from treesens.extensions.repair.training.rounds import Rounds, Within
from treesens.extensions.studies.python.study_options import sets_of
from treesens.extensions.studies.sens_file import read_domain
from treesens.python.settings import check_seconds, path_of


class SwingBudget:
    """Limits the sensitivity of a model during training: after every round, a proof shows that the raw scores of two inputs
    that differ only in `vary` are at most `swing` apart.

    A round that exceeds the limit is repeated first with a half, then with a quarter of the learning rate, and finally without
    the features. `vary` names features; the features of a set, as in `[("race", "age")]`, change together. The proof covers all
    inputs, including missing values of all features (except categories with names), or only the inputs that the `.sens` file
    `domain` allows. A proof that takes longer than `time_limit` seconds fails. Raises UsageError for features that are missing
    from the rows, and for boosters whose rounds change earlier rounds (DART, random forests).
    """

    def __init__(
        self, vary: str | Sequence[str | Sequence[str]], swing: float, *, domain: str | Path | None = None,
        time_limit: float = 5.0,
    ) -> None:  # fmt: skip
        check_seconds("time_limit", time_limit)
        try:
            size = fraction_of(str(swing))
        except (ValueError, ZeroDivisionError):
            raise UsageError(f"`swing` is {swing!r}, which is not a number", remedy="write e.g. 0.8") from None
        if size <= 0:
            raise UsageError(f"`swing` is {swing!r}", remedy="for a swing of 0, leave the features out of the rows")
        groups = tuple(tuple(group) for group in sets_of(vary))
        declared = read_domain(None if domain is None else path_of("domain", domain))
        self._within = Within(groups, size, declared, float(time_limit))
        self._trainings: list[Rounds] = []

    def xgboost(self, train: Any) -> Any:
        """A callback for `xgboost.train`, for training on the DMatrix `train`."""
        from treesens.extensions.repair.training.xgboost_rounds import callback_of

        return callback_of(self._rounds(), train)

    def lightgbm(self) -> Any:
        """A callback for `lightgbm.train`."""
        from treesens.extensions.repair.training.lightgbm_rounds import callback_of

        return callback_of(self._rounds())

    def _rounds(self) -> Rounds:
        self._trainings.append(Rounds(self._within))
        return self._trainings[-1]

    @property
    def rounds(self) -> dict[str, int]:
        """The numbers of rounds of the last training by outcome: rounds that split only on `other features`, rounds kept `as it
        was`, rounds made `smaller`, and rounds repeated `without` the features of `vary`.
        """
        return dict(Counter(self._trainings[-1].made)) if self._trainings else {}
