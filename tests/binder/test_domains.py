"""Domains: what is declared, what comes from data, how units, categories and names reach the typed question."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import treesens as ts
from tests.binder.setting import NAMES, bound, one
from treesens.binder.domains import domain_of_column, nearest_floats, steps_domain
from treesens.cli import group
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.base.floats import NumberType, next_down, next_up
from treesens.compiler.query.domain import RealDomain, Unit, ValueDomain
from treesens.compiler.query.query import CellSet, OneHot

F32, F64 = NumberType.FLOAT32, NumberType.FLOAT64


def domain(text: str, name: str) -> RealDomain | ValueDomain:
    question = one("margin(a) >= 0", domains=text + "\n")
    return question.query.space.domains[NAMES.index(name)]


def test_a_feature_without_a_domain_ranges_over_all_finite_floats() -> None:
    assert domain("", "x") == RealDomain(-F32.max, F32.max)
    assert isinstance(domain("", "town"), ValueDomain)
    assert tuple(domain("", "town").labels) == ("Köln", "Bonn", "Ulm")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("interval", "low", "high"),
    [
        ("[0.1, 0.5]", float(np.float32(0.1)), 0.5),  # float32(0.1) lies above 0.1
        ("(0.5, 1)", next_up(0.5, F32), next_down(1.0, F32)),
        ("(0.1, 0.5)", float(np.float32(0.1)), next_down(0.5, F32)),
        ("[-inf, 0]", -F32.max, 0.0),
        ("[0, inf)", 0.0, F32.max),
    ],
)
def test_ends_are_the_floats_inside(interval: str, low: float, high: float) -> None:
    assert domain(f"feature x: real in {interval}", "x") == RealDomain(low, high)


def test_whole_numbers_stored_on_another_scale() -> None:
    ages = domain("feature age: integer in [17, 90] stored as [0, 1]", "age")
    assert isinstance(ages, ValueDomain)
    assert list(ages.labels) == list(range(17, 91))
    assert ages.values.tolist() == [float(np.float32((t - 17) / 73)) for t in range(17, 91)]
    assert ages.unit == Unit(Fraction(17), Fraction(90), Fraction(0), Fraction(1))


def test_what_the_data_hold_for_a_step_is_legal_too() -> None:
    unit = Unit(Fraction(0), Fraction(10), Fraction(0), Fraction(1))
    off = next_up(0.3, F64)
    found = steps_domain(0, 10, unit, F64, np.array([off, 0.35, np.nan, 2.0]), False)
    assert found.values.tolist() == sorted([*(t / 10 for t in range(11)), off])
    assert [t for t, v in zip(found.labels, found.values, strict=True) if v in (0.3, off)] == [3, 3]


def test_the_nearest_float_of_a_fraction_is_exact() -> None:
    rng = np.random.default_rng(0)
    numerators = [int(n) for n in rng.integers(-(10**12), 10**12, 200)]
    for kind in (F32, F64):
        for n, v in zip(numerators, nearest_floats(numerators, 10**7 + 19, kind), strict=True):
            exact = Fraction(n, 10**7 + 19)
            around = [abs(Fraction(float(w)) - exact) for w in (next_down(v, kind), v, next_up(v, kind))]
            assert around[1] == min(around)


def test_categories_have_names_and_may_be_missing() -> None:
    sex = domain("feature sex: category {Male = 1, Female = 0} or missing", "sex")
    assert isinstance(sex, ValueDomain)
    assert (sex.values.tolist(), tuple(sex.labels), sex.missing) == ([0.0, 1.0], ("Female", "Male"), True)
    towns = domain("feature town: category {Ulm, Köln}", "town")
    assert isinstance(towns, ValueDomain)
    assert (towns.values.tolist(), tuple(towns.labels)) == ([0.0, 2.0], ("Köln", "Ulm"))


def test_domain_from_data() -> None:
    question = one("margin(a) >= 0", domains="feature y: real in [0, 9]\ndomain from rows\n")
    x, y, age, _, sex, town, gap = question.query.space.domains
    assert x == RealDomain(-2.0, 9.0), "eight rows say little about a continuous feature"
    assert y == RealDomain(0.0, 9.0), "declared"
    assert isinstance(age, RealDomain)
    assert isinstance(sex, ValueDomain)
    assert tuple(sex.labels) == (0, 1)
    assert isinstance(town, ValueDomain)
    assert isinstance(gap, RealDomain)
    assert gap.missing, "two rows have no value"


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (np.tile([0.0, 1 / 3, 2 / 3, 1.0], 4), (0, 1 / 3, 2 / 3, 1)),
        (np.arange(12.0), tuple(range(12))),
        (np.arange(13.0), None),
        (np.linspace(0, 1, 10), None),
    ],
)
def test_columns_of_few_values_become_categories(column: np.ndarray, expected: tuple[float, ...] | None) -> None:
    found = domain_of_column("x", F32, column).domain
    assert (tuple(found.labels) if isinstance(found, ValueDomain) else None) == expected


def test_onehot_features_are_zero_or_one_and_exactly_one_is_one() -> None:
    question = one("margin(a) >= 0", domains="onehot {x, y, sex}\n", points="a")
    assert [c for c in question.query.constraints if isinstance(c, OneHot)]
    from treesens.compiler.query.evaluate import holds, inputs_of

    for x, y, sex in np.ndindex(2, 2, 2):
        values = np.array([[x, y, 0.5, 0.5, sex, 0.0, 0.5]], float)
        inputs = inputs_of(question.query, values)
        rules = [c for c in question.query.constraints if isinstance(c, OneHot | CellSet)]
        assert all(holds(c, inputs) for c in rules) == (x + y + sex == 1)
    declared = one("margin(a) >= 0", domains="feature x: integer in [0, 5]\nonehot {x, y}\n", points="a")
    inputs = inputs_of(declared.query, np.array([[2.0, 1, 0, 0, 0, 0, 0]]))
    assert not all(holds(c, inputs) for c in declared.query.constraints if isinstance(c, OneHot | CellSet))


def test_a_pinned_row_has_cells_of_its_own() -> None:
    question = one("a = row 3 of rows", points="a")
    space = question.query.space
    for constraint in question.query.constraints:
        assert isinstance(constraint, CellSet)
        (cell,) = np.flatnonzero(constraint.mask)
        grid = space.grid[constraint.feature]
        if not grid.categories:
            low, high = grid.interval(int(cell))
            assert low == high


def test_the_same_grid_is_made_once() -> None:
    queries = bound("query q: for each f in features: sensitive binary to f gap 0.1").queries
    assert len({id(q.query.space) for q in queries}) == 1
    assert len({id(q.query.models[0]) for q in queries}) == 1


def test_rows_that_no_answer_can_be_are_counted() -> None:
    messages = Diagnostics()
    text = "query q: find a in binary such that likelihood(a, rows) >= 0.001"
    bound(text, domains="feature x: real in [-2, 2]\n", diagnostics=messages)
    told = [(d.code, d.severity) for d in messages]
    assert told == [("E408", "warning"), ("E409", "note"), ("E401", "warning"), ("E402", "warning")]
    coded, endless, outside, lost = messages
    assert coded.message.startswith("`rows` contains numbers in `town`, where the model uses category names")
    assert "can be any number, also one that no row has" in endless.message
    assert endless.remedy.startswith("write `domain from rows`")
    assert outside.message == "1 of 8 rows of `rows` lie outside the domain, most often of `x`"
    assert lost.message == "2 of 8 rows of `rows` lack a value, most often of `gap`"
    bound(text, domains="domain from rows\n", diagnostics=(quiet := Diagnostics()))
    assert [d.code for d in quiet] == ["E408"]


@pytest.mark.parametrize("names", [(1, 2, 5), ("1", "2", "5"), ("low", "2", "high")])
def test_a_name_in_quotes_is_the_name_declared_or_not(names: tuple[str | int, ...]) -> None:
    """A model whose categories are called by numbers: the library's own prediction for each is the truth."""
    lightgbm, pd = pytest.importorskip("lightgbm"), pytest.importorskip("pandas")
    frame = pd.DataFrame({"c": pd.Categorical(list(names) * 40, categories=list(names))})
    model = lightgbm.LGBMClassifier(n_estimators=3, min_child_samples=2, n_jobs=1, verbose=-1)
    model.fit(frame, frame.c.cat.codes == 1)
    predicted = model.predict(frame[:3]).tolist()
    listed = ", ".join(f'"{name}"' for name in names)
    for declared in ("", f"feature c: category {{{listed}}}\n"):
        for name, own in zip(names, predicted, strict=True):
            text = "".join(
                f"query q{i}: find a such that {form}; class(a) = {int(own)}\n"
                for i, form in enumerate((f'a.c = "{name}"', f'a.c in {{"{name}"}}', f'not a.c != "{name}"'))
            )
            answers = ts.check_text(f'model m from "m"\n{declared}{text}', models={"m": model})
            assert {str(answers[f"q{i}"].verdict) for i in range(3)} == {"found"}, (declared, name)


@pytest.mark.parametrize("values", ["1e300,-1e300", "inf,-inf", "one,two"])
def test_values_that_the_model_cannot_hold_are_left_out_of_columns_that_no_question_names(
    values: str, tmp_path: Path
) -> None:
    """No tree asks about y, so that 0 stands for its values; a question that names y would be answered about other numbers."""
    import xgboost

    x = np.repeat([[0.0, 0.0], [1.0, 0.0]], 20, axis=0)
    trained = xgboost.XGBClassifier(n_estimators=2, max_depth=1).fit(x, x[:, 0] > 0.5)
    trained.get_booster().feature_names = ["x", "y"]
    trained.get_booster().save_model(tmp_path / "m.json")
    first, second = values.split(",")
    (tmp_path / "d.csv").write_text(f"x,y\n0,{first}\n1,{second}\n")
    text = 'model m from "m.json"\ndata d from "d.csv"\ndomain from d\nquery q: find a such that class(a) = 1'
    (tmp_path / "q.sens").write_text(text + "\n")
    ran = CliRunner().invoke(group, ["check", str(tmp_path / "q.sens")])
    assert ran.exit_code == 0
    assert "E405" in ran.output
    assert ("text" in ran.output) == (first == "one")
    assert "infinite" not in ran.output
    (tmp_path / "q.sens").write_text(f"{text} and a.y >= 0.5\n")
    ran = CliRunner().invoke(group, ["check", str(tmp_path / "q.sens")])
    assert "column `y` contains" in str(ran.exception)
