"""Every construct of the language over the link function of a plug-in, on all inputs of a small domain.

The truth is the plug-in's own prediction of every input. Constraints, contexts and judges are those of the built-in links; the
questions here are those that no context has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.binder import test_contexts as contexts
from tests.binder.test_contexts import CONTEXTS, ROWS, Pairs
from treesens.frontends.base import LoadedModel
from treesens.frontends.registry import FORMATS
from treesens.grammar.parsing.parser import parse
from treesens.grammar.tree import ast
from treesens.grammar.tree.node import Node, nodes_in

pytestmark = pytest.mark.extensions

MODEL = """stumps 1
features x y m c
base 0.125
link softsign
x 0.5 -0.75 0.5
x 1.5 -0.5 1.25
y 0.5 0.625 -0.25
y 1.5 0.25 -1.0
m 0.5 -0.375 0.75
c 0.5 0.5 -0.875
"""
SUMS, RATIOS = {"E204"}, {"E219"}
"""The codes of questions that this link cannot answer: it bounds no sums and no ratios of probabilities."""
REFUSED = {"prob({a}) - prob({b}) > 0.3": SUMS, "class({a}) = 0 by factor 1.5": RATIOS}
SCORELESS = {"E104", "E202", "E220"}
"""The codes of constraints that no link allows: a second point or a decision in a decision, and the value of a class."""


class Stumps(LoadedModel):
    """The model with the predictions of its library, as the judges ask for them."""

    def predict(self, rows: Any, raw_score: bool = False) -> np.ndarray:
        return self.margins(rows.to_numpy())[:, 0] if raw_score else (self.predict_proba(rows)[:, 1] > 0.5).astype(int)

    def predict_proba(self, rows: Any) -> np.ndarray:
        second = self.ensemble.link.predict(self.ensemble, self.predict(rows, raw_score=True))
        return np.stack([1 - second, second], axis=1)


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    path = tmp_path_factory.mktemp("stumps") / "small.stumps"
    path.write_text(MODEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[1] / "plugin_package" / "src")
        patch.setitem(FORMATS.builtin, "stumps", "treesens_stumps.frontend:StumpsFrontend")
        model = Stumps(**vars(FORMATS.get("stumps")().load(path, path.read_bytes())))
        patch.setattr(contexts, "library", lambda: model)
        yield


@pytest.fixture(scope="module")
def learnt(library: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, np.ndarray]]:
    boxes = contexts.boxes.__wrapped__(tmp_path_factory)
    return boxes, contexts.learnt.__wrapped__(boxes)


@pytest.mark.parametrize("name", CONTEXTS)
def test_a_construct_means_the_same_in_every_context(
    name: str, learnt: tuple[str, dict[str, np.ndarray]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, refusals = contexts.asked, dict[str, set[str]]()

    def noted(lines: dict[int, str], boxes: str) -> Any:
        answers, refused = asked(lines, boxes)
        refusals.update({list(ROWS)[n]: codes for n, codes in refused.items()})
        return answers, refused

    monkeypatch.setattr(contexts, "asked", noted)
    contexts.test_a_construct_means_the_same_in_every_context(name, *learnt)
    for row, codes in refusals.items():
        scored = any(word in row for word in ("prob(", "margin(", "value(", "class(", "decision("))
        assert not scored or codes <= SCORELESS or codes == REFUSED.get(row), row


def test_an_explanation_is_that_of_the_plug_in() -> None:
    contexts.test_an_explanation_is_that_of_the_library()


def flips(s: Pairs, high: np.ndarray, low: np.ndarray, *varied: str) -> np.ndarray:
    return s.equal("b", *(varied or "x")) & high & low


Truth = Callable[[Pairs], np.ndarray]
FORMS: dict[str, Truth | set[str]] = {
    "sensitive m to x gap 0.2": lambda s: flips(s, s.prob("a") >= 0.7, s.prob("b") <= 0.3),
    "sensitive m to x margin 0.5": lambda s: flips(s, s.margin("a") >= 0.5, s.margin("b") <= -0.5),
    "sensitive m to c from 1 to 0": lambda s: flips(s, s.label("a") == 1, s.label("b") == 0, "c"),
    "sensitive m to x from 0 to 1 factor 2": RATIOS,
    "sensitive m to x gap 0.1 near d using distance": lambda s: flips(s, s.prob("a") >= 0.6, s.prob("b") <= 0.4),
    "expect increasing(m, x)": lambda s: flips(s, s.a("x") <= s.b("x"), s.margin("a") > s.margin("b")),
    "expect decreasing(m, y)": lambda s: flips(s, s.a("y") <= s.b("y"), s.margin("a") < s.margin("b"), "y"),
    # The score 1 has the probability 3/4, and no other score one near it.
    "find a such that prob(a) >= 3/4; prob(a) <= 3/4": lambda s: s.prob("a") == 0.75,
    "find a such that prob(a, 0) < 1/4; prob(a) < 0.764": lambda s: (s.prob("a") > 0.75) & (s.prob("a") < 0.764),
    "find a such that 2/5 < prob(a); -2 * prob(a) >= -1": lambda s: (s.prob("a") > 0.4) & (s.prob("a") <= 0.5),
    "find a such that prob(a) / 2 in [0.2, 0.22)": lambda s: (s.prob("a") >= 0.4) & (s.prob("a") < 0.44),
    "find a such that class(a) in {0}; prob(a) not in [0, 0.4]": lambda s: (s.label("a") == 0) & (s.prob("a") > 0.4),
    "find a, b such that a = b except x; prob(a) > prob(b); class(a) = class(b)": lambda s: flips(
        s, s.prob("a") > s.prob("b"), s.label("a") == s.label("b")
    ),
    "find a, b such that prob(a) = prob(b); a.x > b.x": lambda s: (s.prob("a") == s.prob("b")) & (s.a("x") > s.b("x")),
    "find a such that prob(a) >= 0.7 and (a.y = 1 or class(a) = 0)": lambda s: (s.prob("a") >= 0.7) & (s.a("y") == 1),
    "find a such that prob(a) >= 0.7 minimize distance(a, nearest row of d, l1)": lambda s: s.prob("a") >= 0.7,
    "find a, b such that prob(a, 0) >= prob(b)": SUMS,
    "find a maximize prob(a)": SUMS,
    "find a such that class(a) = 1 maximize margin(a)": lambda s: s.margin("a") == 4,
    "find a, b such that b.x = 0 maximize margin(a) - margin(b)": lambda s: s.margin("a") - s.margin("b") == 7.625,
}


def test_a_question_has_the_answer_of_enumeration() -> None:
    lines = {n: f"query q{n}: {form}" for n, form in enumerate(FORMS)}
    answers, refused = contexts.asked(lines, "")
    assert refused == {n: truth for n, truth in enumerate(FORMS.values()) if isinstance(truth, set)}
    for n, answer in answers.items():
        form, truth = list(FORMS.items())[n]
        assert not isinstance(truth, set)
        contexts.judge("plain", form, answer, truth(Pairs()))
        record = answer.to_dict()
        for point, values in (record["points"] or {}).items():
            expected = Pairs().prob("b")[contexts.place(values)]
            assert record["scores"][point]["prob"] == pytest.approx(expected), form


def test_every_construct_is_asked() -> None:
    """A node of the syntax tree is in a question, or has no part in scores, classes or values."""
    bare = "Category CategoryItem Data DomainFrom Each Expect ExpectShare Feature Infinity Measure Model Numeric OneHot"
    asked = [f"query f{n}: {form}" for n, form in enumerate(FORMS)] + ["query e: explain row 5 of d in m without x"]
    asked += [f"query r{n}: find a, b such that {row.format(a='a', b='b')}" for n, row in enumerate(ROWS)]
    asked += [one.text.format(c="prob(a) > 0.5", n=n, points="a") for n, one in enumerate(CONTEXTS.values())]
    kinds = {kind for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, Node)}
    found = {type(node) for node in nodes_in(parse("\n".join(asked).replace("@", "\n")))}
    replaced = "Constant Define Include Let Range"  # before anything is bound
    assert {kind.__name__ for kind in kinds - found - {Node, ast.Predicate}} == {*bare.split(), *replaced.split()}
