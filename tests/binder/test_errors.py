"""Every mistake has a code, the place with a caret, and a remedy; all mistakes of a file are reported at once."""

from __future__ import annotations

import pytest

from tests.binder.setting import DATA, DOMAINS, MODELS, bound, load_model, load_table, one
from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.grammar.parsing.parser import parse

FIND = "query q: find a, b in binary such that "
MULTI = "query q: find a, b in multi such that "
# (text after the declarations, code, text under the caret, words of the message or the remedy)
CASES = [
    (FIND + "a.aeg >= 1", "E103", "aeg", "did you mean `age`?"),
    (FIND + "a = b except {sex, hight}", "E103", "hight", "did you mean `height`?"),
    ("query q: sensitive binary to sxe gap 0.1", "E103", "sxe", "did you mean `sex`?"),
    ("query q: find a in binry such that a.x >= 1", "E101", "binry", "did you mean `binary`?"),
    ("query q: find a such that a.x >= 1", "E109", "find", "say which: `in MODEL`"),
    (FIND + "likelihood(a, row) >= 0.1", "E102", "row", "did you mean `rows`?"),
    (FIND + "a = row 0 of peple", "E102", "peple", "known names: `rows`"),
    (FIND + "a = row 8 of rows", "E110", "row 8 of rows", "use a row from 0 to 7"),
    (FIND + "a = row 7 of rows", "E306", "row 7 of rows", "except {x}"),
    (FIND + "c.x >= 1", "E104", "c", "known names: `a`, `b`"),
    ("query q: find a in binary such that a = b", "E104", "b", "known names: `a`"),
    (FIND + "a = a", "E213", "a = a", "two different points"),
    ("query q: find a, a in binary such that a.x > 1", "E114", "a", "rename"),
    (FIND + "a.sex = Mal", "E106", "Mal", "did you mean `Male`?"),
    (FIND + "a.town in {Köln, Bon}", "E106", "Bon", "did you mean `Bonn`?"),
    (FIND + "a.sex = 2", "E106", "a.sex = 2", "no category with this number"),
    (FIND + "a.town = 2", "E106", "a.town = 2", "no category with this number"),
    (FIND + "a.x = Male", "E205", "Male", "a number"),
    (FIND + "a.sex >= 1", "E206", "a.sex >= 1", "no order"),
    (FIND + "a.town in [0, 1]", "E206", "[0, 1]", "no order"),
    (FIND + "a.sex <= b.sex", "E206", "a.sex <= b.sex", "no order"),
    (FIND + "a.x in [1, 0]", "E301", "[1, 0]", "swap the ends: `[0, 1]`"),
    (FIND + "a.x in [0, 0)", "E301", "[0, 0)", "close both ends"),
    (FIND + "a.x = 0.1", "E311", "a.x = 0.1", "0.10000000149011612"),
    (FIND + "a.age = 17.5", "E306", "a.age = 17.5", "whole"),
    (FIND + "a.age >= 28", "E306", "a.age >= 28", "the domain of `age`: a whole number in [17, 27]"),
    (FIND + "a.x >= 1\n a.x < 0.5", "E309", "a.x < 0.5", "both `a.x >= 1` and this"),
    (FIND + "missing(a.x)", "E210", "a.x", "or missing"),
    (FIND + "prob(a) >= 1.5", "E211", "prob(a) >= 1.5", "between 0 and 1"),
    (FIND + "prob(a) >= 160%", "E211", "prob(a) >= 160%", "between 0 and 100 %, e.g. 0.05 or 5%"),
    (FIND + "prob(a) * prob(b) >= 0.5", "E204", "prob(a) * prob(b)", "a probability"),
    (FIND + "1 / prob(a) >= 0.5", "E204", "prob(a)", "multiply both sides"),
    ("query q: find a, b in poisson such that value(a) - value(b) >= 0.5", "E204", None, "compare margins"),
    (FIND + "a.x >= prob(a)", "E205", "a.x >= prob(a)", "margin"),
    (FIND + "margin(a, 1) >= 0", "E208", "1", "one score"),
    (FIND + "value(a) >= 0", "E202", "value(a)", "prob"),
    (FIND + "class(a) >= 1", "E205", "class(a) >= 1", "no order"),
    (FIND + "class(a) = 7", "E105", "7", "its classes are `0`, `1`"),
    (FIND + "class(a) = 1 by factor 0.5", "E212", "0.5", "at least 1"),
    (FIND + "1 >= 0", "E218", "1 >= 0", "depends on a point"),
    (FIND + "a.x + a.y + b.sex >= 0", "E206", "a.x + a.y + b.sex >= 0", "no order"),
    (FIND + "distance(a, b, l2) + distance(a, row 0 of rows, l2) <= 1", "E220", None, "use `l1` for all"),
    (FIND + "a = b except sex\n distance(a, b, l2) <= 1", "E218", "distance(a, b, l2) <= 1", "always 0"),
    (FIND + "a = b except sex\n minimize distance(a, b, linf)", "E218", "distance(a, b, linf)", "changes(a, b)"),
    (FIND + "abs(a.x) + abs(b.x) <= 1", "E220", "abs(a.x) + abs(b.x) <= 1", "one constraint for each"),
    (
        FIND + "distance(a, nearest row of rows, l2) <= 1",
        "E220",
        "distance(a, nearest row of rows, l2) <= 1",
        "minimize",
    ),
    (FIND + "distance(a, row 0 of rows, l1) <= -1", "E309", "distance(a, row 0 of rows, l1) <= -1", "negative"),
    (FIND + "likelihood(a, rows) + likelihood(b, rows) >= 1", "E215", None, "multiply them"),
    (FIND + "likelihood(a, rows) >= 0", "E211", "likelihood(a, rows) >= 0", "positive"),
    (FIND + "a, b avoid cavities(rows, width = 0)", "E212", "0", "at least one feature"),
    (FIND + "not a avoid cavities(rows, width = 4)", "E224", "a avoid cavities(rows, width = 4)", "limit = 1500"),
    (FIND + "abs(a.x - b.x) = -1", "E309", "abs(a.x - b.x) = -1", "never negative"),
    (MULTI + "prob(a, low) >= 1.6", "E211", "prob(a, low) >= 1.6", "between 0 and 1"),
    (MULTI + "prob(a) >= 0.6", "E207", "prob(a)", "prob(a, low)"),
    (MULTI + "margin(a) >= 0.6", "E207", "margin(a)", "margin(a, low)"),
    (MULTI + "class(a) = lo", "E105", "lo", "did you mean `low`?"),
    ("query q: find a in raw such that prob(a) >= 0.5", "E219", "prob(a)", "margin(a)"),
    ("query q: find a in regressor such that prob(a) >= 0.5", "E201", "prob(a)", "value(a)"),
    ("query q: find a in regressor such that class(a) = 1", "E219", "1", "no classes"),
    ("query q: find a in poisson such that value(a) >= -1", "E211", "value(a) >= -1", "positive"),
    ("query q: sensitive binary to sex gap 0.5", "E212", "0.5", "margin M"),
    ("query q: sensitive binary to sex margin -1", "E212", "-1", "above 0"),
    ("query q: sensitive binary to sex gap 0.1 margin 1", "E217", "1", "keep one"),
    ("query q: sensitive binary to sex factor 2", "E214", "2", "from C1 to C2"),
    ("query q: sensitive multi to sex gap 0.1 from low to high", "E219", "0.1", "factor G"),
    ("query q: sensitive multi to sex from low to low", "E217", "low", "different"),
    ("query q: sensitive regressor to sex", "E212", "sensitive regressor to sex", "gap G"),
    ("query q: for each f in features: sensitive binary to sex gap 0.1", "E113", "f", "does not occur"),
    ("query q: for each f in protected: sensitive binary to f gap 0.1", "E225", "f in protected", "treesens.toml"),
    ("query q: for each x in features: sensitive binary to x gap 0.1", "E114", "x", "hides a feature"),
    ("query q: for each f in pairs: find a in binary such that a.f >= 1", "E221", "f", "for each f, g in pairs"),
    ("query q: find a in poisson such that a.x > 1 maximize value(a)", "E209", "value(a)", "maximize margin(a)"),
    (FIND + "a.x > 1 maximize prob(a) + margin(b)", "E209", "prob(a) + margin(b)", "a probability and a margin"),
    (FIND + "a.x > 1 maximize a.x + prob(a)", "E209", "a.x + prob(a)", "margin"),
    (FIND + "a.x > 1 maximize a.x + b.sex", "E206", "a.x + b.sex", "no order"),
    (FIND + "a.x > 1 maximize distance(a, nearest row of rows, l2)", "E209", None, "minimize"),
    (FIND + "a.x > 1 maximize likelihood(a, rows) + likelihood(b, rows)", "E215", None, "multiply"),
    ("query q: sensitive binary to sex gap 0.1\nquery q: sensitive binary to x gap 0.1", "E107", "q", "twice"),
]


def diagnostics_of(text: str, domains: str = DOMAINS) -> DiagnosticsError:
    with pytest.raises(DiagnosticsError) as caught:
        bound(text, domains=domains)
    return caught.value


@pytest.mark.parametrize(("text", "code", "caret", "words"), CASES, ids=[f"{c[1]} {c[0][9:]}"[:70] for c in CASES])
def test_a_mistake_is_named_with_its_place(text: str, code: str, caret: str | None, words: str) -> None:
    error = diagnostics_of(text)
    (found,) = error.diagnostics
    assert found.code == code, found.render()
    assert found.span is not None
    if caret is not None:
        assert found.span.text == caret
    assert words in found.render()
    assert found.remedy, "every error says what to do"


DECLARATIONS = [
    ("feature x: real in [2, 1]", "E301", "[2, 1]"),
    ("feature x: integer in [0.2, 0.8]", "E302", "[0.2, 0.8]"),
    ("feature x: integer in [1, 9] stored as [0, 0]", "E304", "[0, 0]"),
    ("feature x: integer stored as [0, 1]", "E305", "integer"),
    ("feature x: real in [0, inf] stored as [0, 1]", "E305", "[0, inf]"),
    ("feature sex: category {A = 0, B = 0}", "E303", "B = 0"),
    ("feature sex: category {A, B}", "E310", "A"),
    ("feature town: category {Köln, Bremen}", "E106", "Bremen"),
    ("feature town: real", "E205", "real"),
    ("feature town: category {A = 0.5}", "E306", "0.5"),
    ("feature sxe: real", "E103", "sxe"),
    ("feature x: real\nfeature x: real", "E307", "x"),
    ("onehot {x, sxe}", "E103", "sxe"),
    ("feature x: real in [2, 3]\nonehot {x, y}", "E308", "x"),
    ("domain from peple", "E102", "peple"),
    ('data more from "nothing"', "D001", '"nothing"'),
    ('data more from "rows" label "lable"', "E108", '"lable"'),
    ('model more from "nothing"', "M001", '"nothing"'),
]


@pytest.mark.parametrize(("text", "code", "caret"), DECLARATIONS)
def test_a_declaration_is_checked(text: str, code: str, caret: str) -> None:
    error = diagnostics_of("query q: sensitive binary to height gap 0.1", domains=text + "\n")
    (found,) = error.diagnostics
    assert (found.code, found.span and found.span.text) == (code, caret), found.render()
    assert found.remedy or code == "D001"


def test_an_objective_of_a_feature_without_ends_says_what_to_declare() -> None:
    error = diagnostics_of(
        "query q: find a in binary such that a.x > 1 minimize a.y", domains="feature x: real in [-2, 2]\n"
    )
    (found,) = error.diagnostics
    assert (found.code, found.span and found.span.text) == ("E312", "a.y"), found.render()
    assert "declare `feature y: real in [lo, hi]`" in found.render()


def test_all_mistakes_of_a_file_come_at_once_in_the_order_of_the_text() -> None:
    text = """
query one: find a, b in binary such that
  a = b except sxe
  a.age >= oops
  prob(c) >= 0.5
query two: find a in multi such that
  prob(a, low) >= 0.6 or a.hight > 3
"""
    error = diagnostics_of(text)
    assert [d.code for d in error.diagnostics] == ["E103", "E205", "E104", "E103"]


def test_the_caret_points_at_line_and_column() -> None:
    error = diagnostics_of("query q:\n  find a in binary such that\n    a.aeg >= 3\n", domains="")
    (found,) = error.diagnostics
    assert found.span is not None
    line, column = found.span.source.position(found.span.start)
    assert found.span.source.line(line)[column - 1 :] == "aeg >= 3"
    assert "    a.aeg >= 3\n      |       ^^^" in found.render()


def test_a_file_without_a_model_says_so() -> None:
    from pathlib import Path

    from treesens.binder.file import bind

    file = parse("query q: find a such that a.x >= 1", "t.sens")
    with pytest.raises(DiagnosticsError) as caught:
        bind(file, Path(), load_model=load_model, load_table=load_table)
    assert [d.code for d in caught.value.diagnostics] == ["E112"]


def test_a_column_that_the_data_lacks_is_named() -> None:
    from pathlib import Path

    import numpy as np

    from treesens.binder.file import bind
    from treesens.data.tables import Table

    def short(path: Path, label: str | None, rows: int | None) -> Table:
        return Table("short", {"x": np.zeros(3), "hight": np.zeros(3)}, 3)

    text = 'model binary from "binary"\n' + DATA
    for rest in ("domain from rows\nquery q: sensitive to x gap 0.1", "query q: sensitive to x gap 0.1 near rows"):
        with pytest.raises(DiagnosticsError) as caught:
            bind(parse(text + rest, "t.sens"), Path(), load_model=load_model, load_table=short)
        assert [d.code for d in caught.value.diagnostics] == ["E116"]
        assert "did you mean `hight`?" in str(caught.value)


def test_contradictions_that_need_the_model_are_no_errors() -> None:
    assert one("margin(a) >= 1000").query.constraints
    assert one("a.x >= 1 or a.x < 0\n a.x < 0.5\n a.x >= 0").query.constraints


def test_models_of_different_kinds_cannot_share_a_question() -> None:
    text = "query q: find a in binary, b in regressor such that class(a) = class(b)"
    error = diagnostics_of(text)
    assert [d.code for d in error.diagnostics] == ["E219"]
    assert len(MODELS) == 6
