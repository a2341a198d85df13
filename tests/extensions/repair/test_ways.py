"""The limit that a pair becomes keeps it from breaking the promise, by the library's predictions; leaves that do not ask for
the feature keep the limit.
"""

from __future__ import annotations

import threading
from fractions import Fraction
from pathlib import Path

import pytest

import treesens as ts
from tests.extensions.repair.models import predict, train
from treesens.extensions.repair.pairs import Climber, Ways
from treesens.extensions.repair.proof import decided_by, questions_for
from treesens.extensions.repair.repair import Repair
from treesens.extensions.repair.study import RepairOptions
from treesens.extensions.studies.losses import Labelled

pytest.importorskip("clarabel")


@pytest.mark.parametrize("gap", ["0.02", "0.05"])
@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_pair_keeps_the_promise_after_its_limit(kind: str, gap: str, seed: int, tmp_path: Path) -> None:
    path, x, y = train(kind, tmp_path, seed)
    model, options = ts.load(path), RepairOptions(vary=[["f"]], gap=[gap])
    repair = Repair(model, Labelled(x, y), None, options, threading.Event())
    (asking,) = questions_for(model, repair.promises(Fraction(gap)), decided_by(options))
    climber = Climber(asking, model.ensemble, 0)
    pairs = climber.of_rows(model.ensemble, x, 25)
    assert len(pairs)
    program, original, high, low = repair.program(), repair.variables.original, 0.5 + float(gap), 0.5 - float(gap)
    assert (predict(path, pairs.high) >= high).all()
    assert (predict(path, pairs.low) <= low).all()
    for form, limit in Ways(repair.variables, climber, model.ensemble).of(pairs, original, repair.mean):
        assert form @ original > limit
        assert form @ repair.mean <= limit
        program.limits.add(form, limit)
    content = repair.editor.content(program.projected(original))
    (tmp_path / f"o{path.suffix}").write_bytes(content)
    highs, lows = (predict(tmp_path / f"o{path.suffix}", rows) for rows in (pairs.high, pairs.low))
    assert not ((highs >= high) & (lows <= low)).any()
