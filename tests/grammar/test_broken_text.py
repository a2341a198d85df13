"""Whatever the text: a tree, or messages with a code and a place, never anything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.grammar import trees
from treesens.compiler.base.diagnostics import Diagnostic, DiagnosticsError, Source, Span, did_you_mean
from treesens.grammar.constructs.registry import functions
from treesens.grammar.messages.catalogue import CATALOGUE
from treesens.grammar.parsing.parser import LARGEST_FILE, parse, read
from treesens.grammar.parsing.terminals import keywords
from treesens.grammar.printing.printer import to_text
from treesens.grammar.tree import ast

# Hypothesis warns that these strategies are long to print; nobody prints them.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

# On failure hypothesis prints the text and the seed that made it.
budget = settings(max_examples=150, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
pieces = st.sampled_from(
    [*sorted(keywords()), *functions(), *"()[]{},:;=.<>+-*/`\"'@#\n ", "==", "<=", "1", "0.5", "a.x", "inf"]
)


def check(text: str) -> list[str]:
    """The codes of the messages about a text; each has a place in it and a remedy or cause in the catalogue."""
    diagnostics: tuple[Diagnostic, ...] = ()
    try:
        parse(text, "t")
    except DiagnosticsError as error:
        diagnostics = error.diagnostics
    for diagnostic in diagnostics:
        assert diagnostic.code in CATALOGUE
        assert diagnostic.message
        assert diagnostic.span is not None
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
        assert diagnostic.render().startswith(f"{diagnostic.span.place}: error[{diagnostic.code}]")
    return [diagnostic.code for diagnostic in diagnostics]


@budget
@given(trees.files, st.data())
def test_cut_short(tree: ast.File, data: st.DataObject) -> None:
    text = to_text(tree)
    check(text[: data.draw(st.integers(0, len(text)))])


@budget
@given(trees.files, st.data())
def test_changed_somewhere(tree: ast.File, data: st.DataObject) -> None:
    text = to_text(tree)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 6)))
        text = text[:start] + data.draw(pieces) + text[end:]
    check(text)


@budget
@given(st.lists(pieces, max_size=30).map(" ".join))
def test_words_in_any_order(text: str) -> None:
    check(text)


@budget
@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    "text",
    [
        "query q: find a such that " + "(" * 100_000,
        "query q: find a such that " + "not " * 20_000 + "a.x <= 1",
        "query q: find a such that a.x <= " + "-" * 100_000 + "1",
        "query q: find a such that a.x <= 1" + " implies a.x <= 1" * 10_000,
        "query q: find a such that a.x <= 1" + " / 2" * 10_000,
        "query q: " + "for each f in features: " * 10_000,
    ],
)
def test_deep_nesting_is_refused(text: str) -> None:
    assert check(text) == ["S007"]


@pytest.mark.parametrize("joint", [" or a.x <= 1", " and a.x <= 1", "; a.x <= 1", " + 1", " * 2"])
def test_long_lists_are_not_deep(joint: str) -> None:
    assert check("query q: find a such that a.x <= 1" + joint * 5_000) == []


@pytest.mark.parametrize(
    "line", ["ab, cd; 12,3.5\n", "@ # $\n", "query q: find a such that a.x <= = 1\n", "model a b\n"]
)
def test_a_text_that_is_something_else_gets_a_hundred_messages_at_most(line: str) -> None:
    assert 1 <= len(check(line * 3_000)) <= 100
    assert 1 <= len(check("query q: find a such that\n" + line * 3_000)) <= 101


def test_too_many_words() -> None:
    assert check("# a\n" * 600_000) == ["S061"]


def test_all_mistakes_of_a_file_at_once() -> None:
    text = """
model m form "m.json"
feature age reel
query one:
  find a, b such that
    age >= 3
    a = b exept sex
    prob(a >= 0.5
    probability(b) <= 0.1
  maximise margin(a)
query two: sensitive m to
query three: find a where a.x <= 1
"""
    codes = check(text)
    assert codes == ["S015", "S012", "S033", "S015", "S020", "S040", "S015", "S018", "S013"]


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "latin.sens"
    path.write_bytes("# Größe\nfeature größe: real\n".encode("latin-1"))
    with pytest.raises(DiagnosticsError) as caught:
        read(path)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "S060"
    assert diagnostic.span is not None
    assert diagnostic.span.place == f"{path}:1:5"
    assert "0xF6" in diagnostic.message
    assert "UTF-8" in diagnostic.remedy
    assert "# Größe" in diagnostic.render()


def test_a_byte_order_mark_and_dos_line_ends_are_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "dos.sens"
    path.write_bytes(b'\xef\xbb\xbfmodel m from "m.json"\r\nquery q: find a such that\r\n  a.x <= 1\r\n  a.y <= 1\r\n')
    (query,) = read(path).queries
    assert isinstance(query.body, ast.Find)
    assert len(query.body.constraints) == 2


@pytest.mark.parametrize(("size", "code"), [(100_000_000, "S061"), (LARGEST_FILE + 1, "S061"), (1_000_000, "S062")])
def test_zeros_are_refused_at_once(tmp_path: Path, size: int, code: str) -> None:
    path = tmp_path / "zeros.sens"
    with open(path, "wb") as file:
        file.truncate(size)
    with pytest.raises(DiagnosticsError) as caught:
        read(path)
    assert [d.code for d in caught.value.diagnostics] == [code]
    assert len(str(caught.value)) < 1000


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "none.sens", tmp_path, "a\0b"):
        with pytest.raises(DiagnosticsError) as caught:
            read(path)
        assert caught.value.diagnostics[0].code == "S063"
        assert " | " not in str(caught.value)


@pytest.mark.parametrize(
    ("constraint", "message", "remedy"),
    [
        ("a.x >= 3 // at least", "`//` does not start a comment", "a comment starts with `#`"),
        ("a.x = 0,1", "`0,1` is not a number", "write a point: `0.1`"),
        ("a.x = 3, prob(a) >= 0.5", "`,` cannot continue", "by `;`"),
    ],
)
def test_habits_of_other_languages(constraint: str, message: str, remedy: str) -> None:
    with pytest.raises(DiagnosticsError) as caught:
        parse(f"query q: find a such that {constraint}\n")
    (diagnostic,) = caught.value.diagnostics
    assert message in diagnostic.message
    assert remedy in diagnostic.remedy


def test_a_model_in_place_of_questions_is_told_once_and_in_few_words() -> None:
    with pytest.raises(DiagnosticsError) as caught:
        parse('{"learner": {"trees": [' + "1, " * 50_000 + '"\\n"]}}', "m.json")
    (diagnostic,) = caught.value.diagnostics
    assert "this file contains JSON" in diagnostic.message
    assert len(diagnostic.render()) < 1000


@pytest.mark.parametrize("before", [0, 10, 150, 5_000])
@pytest.mark.parametrize("after", [0, 10, 5_000])
def test_of_a_long_line_the_part_around_the_place_is_shown(before: int, after: int) -> None:
    source = Source("t", "x" * before + "HERE" + "y" * after)
    shown, carets = Span(source, before, before + 4).excerpt().split("\n")
    assert len(shown) < 220
    assert shown[carets.index("^") : carets.rindex("^") + 1] == "HERE"


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("target", "Age", None),
        ("Agee", "Age", "Age"),
        ("hours", "hours-per-week", "hours-per-week"),
        ("SEX", "sex", "sex"),
    ],
)
def test_a_name_is_proposed_if_it_is_near(name: str, known: str, meant: str | None) -> None:
    said = did_you_mean(name, [known])
    assert said == (f"did you mean `{meant}`?" if meant else f"known names: `{known}`")


def test_a_module_of_the_ir_is_told_as_one(tmp_path: Path) -> None:
    small = Path(__file__).parents[2] / "examples" / "small.sir"
    with pytest.raises(DiagnosticsError) as caught:
        read(small)
    assert [one.code for one in caught.value.diagnostics] == ["S064"]
    assert f"treesens check {small}" in str(caught.value)


def test_ten_mistakes_are_enough_to_print(tmp_path: Path) -> None:
    (tmp_path / "q.sens").write_text("".join(f"feature f{i}: nonsense\n" for i in range(40)))
    with pytest.raises(DiagnosticsError) as caught:
        read(tmp_path / "q.sens")
    assert str(caught.value).count("error[") == 10
    assert str(caught.value).endswith(f"and {len(caught.value.diagnostics) - 10} more mistakes")
