"""One sentence says what changed, on every surface; values print as the table has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treesens as ts
from tests.commands.conftest import Ran, treesens
from tests.extensions.studies.whole_numbers import xgboost_of_whole_numbers
from treesens.report.changes import Names, change_words, equal_words, value_words

__all__ = ["treesens"]


@pytest.fixture(scope="module")
def answer() -> Any:
    model, frame = xgboost_of_whole_numbers()
    return model, frame, ts.sensitivity(model, vary="f0", gap=0.1, data=frame)


def test_the_sentence_has_the_values_and_the_scores_of_the_library(answer: Any) -> None:
    model, frame, found = answer
    a, b = (found.points[name] for name in "ab")
    chances = model.predict_proba(found.pair[list(frame.columns)])[:, 1]
    same = (frame.to_numpy()[:, None] == np.array([list(a.values()), list(b.values())])).all(axis=2)
    rows = [int(np.argmax(column)) for column in same.T if column.any()]
    row = f", row {rows[0]}" if rows else ""
    sentence = f"f0 {a['f0']} → {b['f0']}: prob {chances[0]:.3g} → {chances[1]:.3g}{row}"
    assert sentence in str(found)
    assert sentence in found._repr_html_()
    assert "2 features are equal" in found._repr_html_()
    assert str(found).index(sentence) < str(found).index("feature")


def test_machines_get_the_same_sentence_first(answer: Any, tmp_path: Path, treesens: Any) -> None:
    model, frame, _ = answer
    model.save_model(tmp_path / "m.json")
    frame.to_csv(tmp_path / "d.csv", index=False)
    lines = (
        'model m from "m.json"\ndata d from "d.csv"\ndomain from d\nquery q: sensitive m to f0 gap 0.1 expect none\n'
    )
    (tmp_path / "q.sens").write_text(lines)
    outputs = [tmp_path / name for name in ("o.xml", "o.sarif", "o.md")]
    flags = [
        word for flag, path in zip(("--junit", "--sarif", "--markdown"), outputs, strict=True) for word in (flag, path)
    ]
    done: Ran = treesens("check", tmp_path / "q.sens", *flags)
    assert done.code == 10
    told = next(line.strip() for line in done.out.splitlines() if line.strip().startswith("f0 "))
    for path in outputs:
        text = path.read_text("utf-8")
        assert text.index(told) < text.index("expected none, and the answer is found")
        assert "equal: f1" in text


def test_values_are_those_that_people_write() -> None:
    one = np.float32(1)
    below, above = float(np.nextafter(one, np.float32(0))), float(np.nextafter(one, np.float32(2)))
    assert [value_words(v) for v in (1.0, below, above, None, "A12", 3, 0.1, 26.4, 1 / 3)] == [
        "1", "just below 1", "just above 1", "missing", "A12", "3", "0.1", "26.4", "0.333333",
    ]  # fmt: skip


def test_several_classes_are_named_with_their_probabilities() -> None:
    points = {"a": {"x": 1, "y": "u"}, "b": {"x": 1, "y": None}}
    scores = {
        "a": {"class": "low", "prob": {"low": 0.7, "top": 0.3}},
        "b": {"class": "top", "prob": {"low": 0.4, "top": 0.6}},
    }
    assert change_words({"points": points, "scores": scores}) == "y u → missing: class low (0.7) → top (0.6)"
    assert equal_words(points) == "x 1"
    assert change_words({"points": {"a": points["a"]}, "scores": scores}) == ""


def test_models_and_questions_are_tables_in_a_notebook(answer: Any) -> None:
    model, frame, _ = answer
    about = ts.info(model)
    assert "nodes that ask for it" in about._repr_html_()
    assert about["trees"] == 12
    text = 'model m from "m"\nquery q: sensitive m to f0 gap 0.1'
    assert "<code>" in ts.explain(text, models={"m": model})._repr_html_()
    other = ts.load(model)
    shown = ts.diff(model, other, frame, gap=0.1, vary="f0")._repr_html_()
    for words in ("<b>equal</b>", "0 of 240 rows change", "stays"):
        assert words in shown
    assert "known well enough" in ts.count(model, frame, vary="f0", gap=0.1)._repr_html_()


@pytest.mark.parametrize(
    ("scores", "at_half", "told"),
    [
        (({"prob": 0.653}, {"prob": 0.324}), True, "P(granted) 0.347 (refused) → 0.676 (granted)"),
        # A tie is the library's to decide, and a cut-off elsewhere is not 1/2.
        (({"prob": 0.5}, {"prob": 0.324}), True, "prob 0.5 → 0.324"),
        (({"prob": 0.653}, {"prob": 0.324}), False, "prob 0.653 → 0.324"),
        (
            ({"prob": 0.653, "class": "0"}, {"prob": 0.724, "class": "1"}),
            False,
            "P(granted) 0.347 (granted) → 0.276 (refused)",
        ),
    ],
)
def test_a_class_is_named_only_if_the_library_predicts_it(scores: Any, at_half: bool, told: str) -> None:
    names = Names(("0", "1"), {"0": "granted", "1": "refused"}, "0", at_half)
    record = {"points": {"a": {"x": 1}, "b": {"x": 2}}, "scores": dict(zip("ab", scores, strict=True))}
    assert change_words(record, None, names).startswith(f"x 1 → 2: {told}")
