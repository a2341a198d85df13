"""The decisions that studies examine: a cut-off or classes, and the gap between the scores of two points.

There are three kinds. With two classes, one score is compared with a cut-off (`Around`). With more classes, the greatest score
wins (`Between`, one per pair of classes). For a regressor or a chosen class, the change of one score counts (`Apart`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any, TypeAlias

from treesens.binder.terms import predicts_probabilities
from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.model import Ensemble, Task
from treesens.errors import UsageError
from treesens.extensions.studies.events import Event, Gap, Kind
from treesens.grammar.tree import ast

_A, _B = ast.Name("a"), ast.Name("b")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")


def label_of_class(ensemble: Ensemble, index: int) -> ast.Label:
    """The label of a class in the syntax of the language."""
    label = str(ensemble.classes[index])
    return ast.Number(Fraction(label)) if _NUMBER.fullmatch(label) else ast.Name(label)


@dataclass(frozen=True)
class Around:
    """One score on opposite sides of a cut-off: at least `centre` + g for one point, at most `centre` - g for the other.

    At g = 0, the second point is below the cut-off. If `own` is True, no cut-off was set and the model's own rule decides.
    """

    ensemble: Ensemble
    kind: Kind
    centre: Fraction
    positive: int = 1
    own: bool = False

    classes: tuple[int, ...] = ()
    unit = "raw score"

    @property
    def output(self) -> int:
        return self.positive if self.ensemble.n_outputs > 1 else 0

    def score(self, point: ast.Name) -> ast.Expression:
        if self.kind == "gap":
            return ast.Prob(point, label_of_class(self.ensemble, self.positive))
        return ast.Margin(point)

    def event(self, gap: Gap, *, harder: bool = False) -> Event:
        """The event that the two points lie on opposite sides of the cut-off, each at a distance of at least the gap."""
        size = gap.size
        if size == 0 and self.own:
            one, other = (label_of_class(self.ensemble, i) for i in (self.positive, 1 - self.positive))
            return _event(self, gap, (ast.ClassIs(_A, one),), (ast.ClassIs(_B, other),), harder=harder)
        above = ast.Comparison(self.score(_A), ">=", ast.Number(self.centre + size))
        below = ast.Comparison(self.score(_B), "<=" if size else "<", ast.Number(self.centre - size))
        return _event(self, gap, (above,), (below,), harder=harder)

    def widest(self) -> Event:
        """The event that there is one point on each side of the cut-off, where the cut-off itself belongs to both sides."""
        centre = ast.Number(self.centre)
        return Event((ast.Comparison(self.score(_A), ">=", centre),), (ast.Comparison(self.score(_B), "<=", centre),))

    def difference(self) -> ast.Expression:
        """The objective of the search for the largest swing: the difference of raw scores, or of probabilities for a forest."""
        label = label_of_class(self.ensemble, self.positive) if self.ensemble.n_outputs > 1 else None
        return _minus(ast.Margin(_A, label), ast.Margin(_B, label))

    def check(self, size: Fraction) -> None:
        """Raises UsageError if no two scores are as far apart as this gap."""
        if self.kind == "margin":
            return
        if size == 0 and self.own and self.ensemble.n_outputs > 1 and not self.ensemble.link.averages:
            raise UsageError("a gap of 0 needs a cut-off", remedy="add --threshold 0.5")
        high, low = self.centre + size, self.centre - size
        inside = low >= 0 and high <= 1 if self.ensemble.n_outputs > 1 else low > 0 and high < 1
        if not inside:
            percent = f"; {_text(size)} % is {_text(size / 100)}" if 1 <= size < 50 else ""
            percent += f"; for one gap, write 0.{size} and not 0,{size}" if percent and size.denominator == 1 else ""
            raise UsageError(
                f"a gap of {_text(size)} around {_text(self.centre)} needs probabilities of {_text(high)} and "
                f"{_text(low)}, and the model never gives both",
                remedy=f"a gap lies below {_text(min(self.centre, 1 - self.centre))} here; 0 means any change of the decision"
                + percent,
            )

    def words(self, size: Fraction) -> str:
        """The question as text, with its numbers."""
        name = f"P({self.ensemble.classes[self.positive]})" if self.kind == "gap" else "raw score"
        low = "<" if size == 0 else "<="
        return f"{name} >= {_text(self.centre + size)} for one input, {low} {_text(self.centre - size)} for the other"

    def record(self) -> dict[str, Any]:
        """Fields of records in addition to the gap."""
        return {} if self.own else {"threshold": float(self.centre), "classes": [self.ensemble.classes[self.positive]]}


@dataclass(frozen=True)
class Apart:
    """One score that changes by at least g: the value of a regressor, or the score of a chosen class."""

    ensemble: Ensemble
    kind: Kind
    chosen: int | None = None

    @property
    def unit(self) -> str:
        """The unit of a swing."""
        return "value" if self.chosen is None and self.kind == "gap" else "raw score"

    @property
    def output(self) -> int:
        return self.chosen or 0

    @property
    def classes(self) -> tuple[int, ...]:
        return () if self.chosen is None else (self.chosen,)

    def score(self, point: ast.Name) -> ast.Expression:
        if self.chosen is None:
            return ast.ValueOf(point) if self.kind == "gap" else ast.Margin(point)
        return ast.Margin(point, label_of_class(self.ensemble, self.chosen))

    def event(self, gap: Gap, *, harder: bool = False) -> Event:
        """The event that the scores of the two points are at least the gap apart."""
        apart = ast.Comparison(self.difference(), ">=", ast.Number(gap.size))
        return _event(self, gap, both=(apart,), harder=harder)

    def widest(self) -> Event:
        """The event that every two points satisfy."""
        return Event()

    def difference(self) -> ast.Expression:
        """The objective of the search for the largest swing: the difference of the score between the two points."""
        return _minus(self.score(_A), self.score(_B))

    def check(self, size: Fraction) -> None:
        """Raises UsageError for a gap of 0, which every pair satisfies."""
        if size == 0:
            raise UsageError("any two inputs are at least 0 apart", remedy=f"pass a --{self.kind} above 0")

    def words(self, size: Fraction) -> str:
        """The question as text, with its numbers."""
        if self.chosen is None:
            name = "predictions" if self.kind == "gap" else "raw scores"
        else:
            unit = "probabilities" if predicts_probabilities(self.ensemble) else "raw scores"
            name = f"{unit} of class {self.ensemble.classes[self.chosen]}"
        return f"{name} of the two inputs at least {_text(size)} apart"

    def record(self) -> dict[str, Any]:
        """Fields of records in addition to the gap."""
        return {} if self.chosen is None else {"classes": [self.ensemble.classes[self.chosen]]}


@dataclass(frozen=True)
class Between:
    """One class is predicted for the first point and another for the second, each with a lead of m over every other class."""

    ensemble: Ensemble
    first: int
    second: int

    kind: Kind = "margin"
    unit = "lead of one class"

    @property
    def classes(self) -> tuple[int, ...]:
        return self.first, self.second

    @property
    def output(self) -> int:
        return self.first

    def event(self, gap: Gap, *, harder: bool = False) -> Event:
        """The event that one point has the first class and the other the second, each with a lead of at least the gap."""
        lead = ast.Number(gap.size) if gap.size else None
        first, second = (label_of_class(self.ensemble, i) for i in self.classes)
        one, other = ast.ClassIs(_A, first, margin=lead), ast.ClassIs(_B, second, margin=lead)
        return _event(self, gap, (one,), (other,), harder=harder)

    def widest(self) -> Event:
        """The event that both classes lead by 0 or more, whichever class wins a tie: one row for each of the other classes."""
        one, other = (
            tuple(
                ast.Comparison(self._ahead(point, wanted, other), ">=", ast.Number(Fraction(0)))
                for other in range(self.ensemble.n_outputs)
                if other != wanted
            )
            for point, wanted in ((_A, self.first), (_B, self.second))
        )
        return Event(one, other)

    def _ahead(self, point: ast.Name, wanted: int, other: int) -> ast.Expression:
        one, two = (label_of_class(self.ensemble, i) for i in (wanted, other))
        return _minus(ast.Margin(point, one), ast.Margin(point, two))

    def difference(self) -> ast.Expression:
        """The objective of the search for the largest swing: the lead of the first class over the second."""
        return _minus(self._ahead(_A, self.first, self.second), self._ahead(_B, self.first, self.second))

    def check(self, size: Fraction) -> None:
        """Raises UsageError for a positive lead in votes, which have no leads. Other models permit every lead of at least 0."""
        if size and self.ensemble.link.votes:
            what = "calibrated scores of classes" if self.ensemble.link.compares_members else "votes"
            raise UsageError(f"{what} have no margin", remedy="pass --margin 0: any change of the class")

    def words(self, size: Fraction) -> str:
        """The question as text, with its numbers."""
        lead = ""
        if size:
            unit = "of probability" if predicts_probabilities(self.ensemble) else "in raw score"
            lead = f", each by {_text(size)} {unit} over every other class"
        first, second = (self.ensemble.classes[i] for i in self.classes)
        return f"class {first} for one input, class {second} for the other{lead}"

    def record(self) -> dict[str, Any]:
        """Fields of records in addition to the gap."""
        return {"classes": [self.ensemble.classes[i] for i in self.classes]}


Decision: TypeAlias = Around | Apart | Between


def _event(
    decision: Decision,
    gap: Gap,
    one: tuple[ast.Formula, ...] = (),
    other: tuple[ast.Formula, ...] = (),
    both: tuple[ast.Formula, ...] = (),
    *,
    harder: bool,
) -> Event:
    """The event of a decision at a gap."""
    facts = {gap.kind: gap.value, **decision.record()}
    return Event(one, other, both, f"{gap.kind} {gap.text}", facts, decision.words(gap.size), gap.size, harder)


@dataclass(frozen=True)
class Asked:
    """The user's decision: the unit of its gaps, a cut-off, and classes by name."""

    kind: Kind
    threshold: Fraction | None = None
    classes: tuple[str, ...] = ()


def decisions_of(ensemble: Ensemble, asked: Asked) -> list[Decision]:
    """The decisions of a model for a study. Raises UsageError, with a remedy, for settings that the model does not support."""
    if ensemble.task in (Task.REGRESSION, Task.RANKING) or not ensemble.classes:
        return [_of_regressor(ensemble, asked)]
    if asked.threshold is None and asked.kind == "gap":
        asked = replace(asked, threshold=cut_of(ensemble))
    chosen = [_class_number(ensemble, name) for name in asked.classes]
    if len(set(chosen)) < len(chosen):
        raise UsageError("a class is named twice", remedy="name each class once")
    if ensemble.link.votes:
        return _of_votes(ensemble, asked, chosen)
    if len(ensemble.classes) == 2:
        return [_of_two_classes(ensemble, asked, chosen)]
    if len(chosen) == 1:
        return [_of_chosen_class(ensemble, asked, chosen[0])]
    if asked.threshold is not None:
        raise UsageError(
            "a cut-off needs a single probability", remedy="name the class: --classes C (the model has more than two)"
        )
    if asked.kind == "gap":
        raise UsageError(
            "a gap needs a single probability, and the model has more than two classes",
            remedy="pass --margin M, the lead of each class (0: any change of the class), or one class: --classes C",
        )
    if ensemble.link.averages:
        raise UsageError(
            "a mean of several models has no raw scores in which one class leads another",
            remedy="name one class: --classes C --threshold 0.5; or ask in a file: `class(a) = C`, `prob(a, C) >= c`",
        )
    pairs = combinations(sorted(chosen) if chosen else range(len(ensemble.classes)), 2)
    return [Between(ensemble, one, two) for one, two in pairs]


def check_regions(ensemble: Ensemble, remedy: str) -> None:
    """Raises UsageError with `remedy` for means of several models and for votes, whose shares are not counted by regions."""
    if ensemble.link.of_several:
        why = f"this model {ensemble.link.several}"
        raise UsageError(f"a share of inputs is measured by regions of one score, and {why}", remedy=remedy)


def check_votes(ensemble: Ensemble, study: str) -> None:
    """Raises UsageError for counted votes, in a study about scores or probabilities."""
    if ensemble.link.compares_members:
        raise UsageError(
            f"{study} is about scores, and this model compares the calibrated scores of its classes",
            remedy="ask `treesens audit`, `why` or `robust`, or in a file: `class(a) = C`; or calibrate a model of one class "
            "against the others",
        )
    if ensemble.link.votes:
        raise UsageError(
            f"{study} is about scores, and this model counts the classes that several models predict",
            remedy="ask `treesens audit`, `why` or `robust`, or in a file: `class(a) = C`; or train it with voting='soft'",
        )


def check_scores(ensemble: Ensemble, study: str) -> None:
    """Raises UsageError for a mean of several models, and for votes, in a study about scores."""
    check_votes(ensemble, study)
    if ensemble.link.averages:
        raise UsageError(
            f"{study} is about scores, and this model averages the probabilities of several",
            remedy="ask `treesens gap` about a feature, or in a file: `prob(a) >= c`, `class(a) = C`, "
            "`sensitive m to {f} gap g`; or "
            "calibrate with ensemble=False, which has one score",
        )


def cut_of(ensemble: Ensemble) -> Fraction | None:
    """The probability at which a model decides, if the model itself states a probability other than 1/2; else None."""
    cut = ensemble.probability_cut if ensemble.cutoff is None else ensemble.cutoff
    return None if cut == Fraction(1, 2) else cut


def default_sizes(ensemble: Ensemble, threshold: Fraction | None, classes: Sequence[str]) -> tuple[Kind, list[str]]:
    """The default gaps of an audit. Raises UsageError for regressors, whose values have units of their own."""
    if ensemble.task in (Task.REGRESSION, Task.RANKING) or not ensemble.classes:
        raise UsageError("a regressor has no default gap", remedy="pass --gap in units of its value, e.g. --gap 10")
    threshold = threshold or cut_of(ensemble)
    if ensemble.link.votes or (len(ensemble.classes) > 2 and len(classes) != 1):
        return "margin", ["0"]
    if threshold is not None:
        room = min(threshold, 1 - threshold)
        return "gap", ["0", *(text for text in ("0.05", "0.1", "0.2") if Fraction(text) < room)]
    has_cut = ensemble.decides_at is None and ensemble.n_outputs == 1 and ensemble.link.is_probability
    probable = (
        predicts_probabilities(ensemble) or ensemble.link.prefers_gaps or (len(ensemble.classes) == 2 and has_cut)
    )
    return ("gap", ["0.1", "0.2"]) if probable else ("margin", ["0.5", "1", "1.5"])


def natural_question(ensemble: Ensemble, threshold: Fraction | None, classes: Sequence[str]) -> Asked:
    """The default unit of a model's largest gap: probabilities for forests, values for regressors, and raw scores for all other
    models.
    """
    threshold = threshold or cut_of(ensemble)
    plain = ensemble.task in (Task.REGRESSION, Task.RANKING) or not ensemble.classes
    linear = ensemble.link.is_linear if plain else predicts_probabilities(ensemble)
    linear = linear or ensemble.link.prefers_gaps
    several = len(ensemble.classes) > 2 and len(classes) != 1
    kind: Kind = "gap" if threshold is not None or (linear and not several) else "margin"
    return Asked(kind, threshold, tuple(classes))


def _of_votes(ensemble: Ensemble, asked: Asked, chosen: Sequence[int]) -> list[Decision]:
    """Any change of the class, for each pair of classes."""
    if asked.kind == "gap" or asked.threshold is not None:
        raise UsageError(
            "the model compares the calibrated scores of classes, which have no gap"
            if ensemble.link.compares_members
            else "votes for classes are counted, and there are no probabilities",
            remedy="pass --margin 0: any change of the class",
        )
    if len(chosen) == 1:
        raise UsageError("a change of the class needs two classes", remedy="name two classes, or no class")
    pairs = combinations(sorted(chosen) if chosen else range(len(ensemble.classes)), 2)
    return [Between(ensemble, one, two) for one, two in pairs]


def _of_two_classes(ensemble: Ensemble, asked: Asked, chosen: Sequence[int]) -> Decision:
    if len(chosen) > 1:
        raise UsageError("the model has two classes", remedy="name the class whose probability counts, or no class")
    positive = chosen[0] if chosen else 1
    votes = predicts_probabilities(ensemble)
    if ensemble.decides_at is not None and asked.threshold is None:
        raise UsageError(
            f"the model predicts its second class if a score is above {ensemble.decides_at:g}, not if it is above 0 or 1/2",
            remedy="pass --gap with --threshold, or ask in a file: `class(a) = C`, `margin(a) >= m`",
        )
    if ensemble.link.averages and asked.kind == "margin":
        raise UsageError("a mean of several models has no raw score", remedy="pass --gap, e.g. 0.1,0.2 (0: any change)")
    if not votes and ensemble.n_outputs > 1 and not ensemble.link.averages:
        if asked.threshold is None and asked.kind == "margin":
            return Between(ensemble, 0, 1)
        raise UsageError(
            "the model has one score per class, and no cut-off between them",
            remedy="pass --margin: the lead of a class",
        )
    if asked.kind == "margin" and not ensemble.link.decides_at_zero:
        raise UsageError(
            "the scores of a calibrated model have no cut-off at 0", remedy="pass --gap, e.g. 0.1,0.2 (0: any change)"
        )
    if asked.kind == "margin":
        if votes:
            raise UsageError(
                "the scores of this model are probabilities, which have no margin around 0",
                remedy="pass --gap, e.g. 0.1,0.2",
            )
        if asked.threshold is not None:
            raise UsageError("a cut-off needs probabilities", remedy="pass --gap, e.g. 0.1,0.2 (0: any change)")
        return Around(ensemble, "margin", Fraction(0), positive, own=True)
    if not votes and not ensemble.link.is_probability:
        raise UsageError("the model predicts a raw score, not a probability", remedy="pass --margin, e.g. 0.5,1")
    centre = Fraction(1, 2) if asked.threshold is None else asked.threshold
    return Around(ensemble, "gap", centre, positive, own=asked.threshold is None)


def _of_chosen_class(ensemble: Ensemble, asked: Asked, chosen: int) -> Decision:
    votes = predicts_probabilities(ensemble) or ensemble.link.averages
    if ensemble.link.averages and asked.threshold is None:
        raise UsageError("a mean of several models has no raw score", remedy="pass a cut-off: --threshold 0.5")
    if asked.kind == "gap" and not votes:
        raise UsageError(
            "the probability of one of several classes depends on the raw scores of all classes: a bound on it is not linear",
            remedy="pass --margin (raw score of the class), or two classes: --classes A,B --margin M; a file of questions may "
            "bound it: `prob(a, CLASS) >= 0.6`",
        )
    if asked.threshold is not None:
        if asked.kind == "margin":
            raise UsageError("a cut-off needs probabilities", remedy="pass --gap, e.g. 0.1,0.2 (0: any change)")
        return Around(ensemble, "gap", asked.threshold, chosen)
    return Apart(ensemble, asked.kind, chosen)


def _of_regressor(ensemble: Ensemble, asked: Asked) -> Decision:
    if asked.threshold is not None or asked.classes:
        raise UsageError("a regressor has neither classes nor a cut-off", remedy="pass --gap in units of its value")
    if ensemble.n_outputs > 1:
        raise UsageError(
            f"the model predicts {ensemble.n_outputs} values at once",
            remedy="ask about one of them in a file: `margin(a, 0) - margin(b, 0) >= g`",
        )
    if asked.kind == "gap" and not ensemble.link.is_linear:
        raise UsageError(
            "the value is a nonlinear function of the raw score",
            remedy="pass --margin in units of the raw score (of a log link: 0.69 means a factor of 2)",
        )
    if asked.kind == "margin" and ensemble.link.is_linear:
        raise UsageError("a regressor has no margin around 0", remedy="pass --gap in units of its value")
    return Apart(ensemble, asked.kind)


def _class_number(ensemble: Ensemble, name: str) -> int:
    names = [str(c) for c in ensemble.classes]
    if name not in names:
        raise unknown_class(name, names)
    return names.index(name)


def unknown_class(name: str, labels: Sequence[str]) -> UsageError:
    """The error for a class that the model does not have."""
    near = did_you_mean(name, labels)
    named = f'its classes are {_few(labels)}; to use a name, write classes = {{{labels[0]} = "{name}", ..}} into treesens.toml'
    return UsageError(f"the model has no class `{name}`", remedy=near if near.startswith("did") else named)


def _few(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:12])


def _minus(one: ast.Expression, two: ast.Expression) -> ast.Expression:
    return ast.Sum((one, ast.Negate(two)))


def _text(number: Fraction) -> str:
    return f"{float(number):.12g}"


def favourable_clause(ensemble: Ensemble, favourable: int, threshold: Fraction | None) -> ast.Formula:
    """The formula that states that the point `a` gets the favourable decision."""
    point, label = ast.Name("a"), label_of_class(ensemble, favourable)
    if threshold is None:
        return ast.ClassIs(point, label)
    return ast.Comparison(ast.Prob(point, label), ">=", ast.Number(threshold))
