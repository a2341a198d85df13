"""`docs/language.md` is executed: its examples are read as a user's file would be, and give the errors that they state.

`mistakes.txt` has more examples of errors in the same form.

An example is a fenced block marked `sens`, or `sens constraints` for lines that stand after `such that`. A comment
`# error: 7 [S018] "text"` states the column of a caret, the code and a part of the message, for its own line; standing
alone, for the next line with code; where none follows, for the first. An example gives exactly the errors it states.

Blocks marked `sens loan` stand after the block `sens declarations`, and are bound to the models of `examples/train.py` as well.
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from treesens.binder.file import bind
from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.grammar.messages.catalogue import SYNTAX
from treesens.grammar.parsing.parser import parse
from treesens.grammar.printing.formatter import format_text
from treesens.grammar.printing.printer import to_text

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "language.md").read_text("utf-8") + (Path(__file__).parent / "mistakes.txt").read_text("utf-8")
BLOCK = re.compile(r"^```sens( constraints)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
STATED = re.compile(r'# error: (\d+) \[([A-Z]\d+)\] "([^"]*)"')
HEADER = "query q:\n  find a, b such that\n"

DECLARATIONS = re.compile(r"^```sens declarations\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LOAN = re.compile(r"^```sens loan\n(.*?)^```$", re.DOTALL | re.MULTILINE)

NEED_FILES = {"S006", "S007", "S060", "S061", "S062", "S063", "S064"}
"""Errors that need a whole file, or more text than anyone would read in an example."""


@dataclass(frozen=True)
class Example:
    line: int
    text: str

    def stated(self) -> list[tuple[int, int, str, str]]:
        """Line, column, code and part of the message of every error that the example states."""
        found: list[tuple[int, int, str, str]] = []
        waiting: list[tuple[int, str, str]] = []
        for number, line in enumerate(self.text.split("\n"), start=1):
            here = [(int(column), code, text) for column, code, text in STATED.findall(line)]
            if here and line.lstrip().startswith("# error:"):
                waiting += here
            elif line.strip():
                found += [(number, *error) for error in (*waiting, *here)]
                waiting = []
        return sorted(found + [(1, *error) for error in waiting])


def examples() -> list[Example]:
    found: list[Example] = []
    for block in BLOCK.finditer(PAGE):
        text = (HEADER if block[1] else "") + block[2]
        found.append(Example(PAGE[: block.start()].count("\n") + 1, text))
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: f"line{example.line}")
def test_example(example: Example) -> None:
    given: list[tuple[int, int, str, str]] = []
    try:
        parse(example.text, f"docs/language.md (line {example.line})")
    except DiagnosticsError as error:
        given = places_of(error)
    agree(given, example)


def places_of(error: DiagnosticsError) -> list[tuple[int, int, str, str]]:
    given: list[tuple[int, int, str, str]] = []
    for diagnostic in error.diagnostics:
        assert diagnostic.span is not None
        line, column = diagnostic.span.source.position(diagnostic.span.start)
        given.append((line, column, diagnostic.code, diagnostic.message))
    return given


def agree(given: list[tuple[int, int, str, str]], example: Example) -> None:
    """The errors are those that the example states: line, column, code and part of the message."""
    stated = example.stated()
    assert [error[:3] for error in sorted(given)] == [error[:3] for error in stated], given
    for (*_, message), (*_, part) in zip(sorted(given), stated, strict=True):
        assert part in message


def bound_examples() -> list[Example]:
    declared = DECLARATIONS.search(PAGE)
    assert declared is not None
    blocks = LOAN.finditer(PAGE)
    return [Example(PAGE[: block.start()].count("\n") + 1, f"{declared[1]}\n{block[1]}") for block in blocks]


@pytest.fixture(scope="module")
def loan_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models of the examples, made by their own script."""
    pytest.importorskip("xgboost")
    spec = importlib.util.spec_from_file_location("train_examples", ROOT / "examples" / "train.py")
    assert spec is not None
    assert spec.loader is not None
    train = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(train)
    folder = tmp_path_factory.mktemp("examples")
    train.OUT = folder / "out"
    train.main()
    return folder


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(one, id=f"line{one.line}", marks=[pytest.mark.extensions] if "share of" in one.text else [])
        for one in bound_examples()
    ],
)
def test_bound_example(example: Example, loan_folder: Path) -> None:
    with pytest.raises(DiagnosticsError) as raised:
        bind(parse(example.text, f"docs/language.md (line {example.line})"), loan_folder)
    agree(places_of(raised.value), example)


@pytest.mark.parametrize("example", [e for e in EXAMPLES if not e.stated()], ids=lambda example: f"line{example.line}")
def test_example_survives_printing_and_formatting(example: Example) -> None:
    tree = parse(example.text)
    assert parse(to_text(tree)) == tree
    formatted = format_text(example.text)
    assert parse(formatted) == tree
    assert format_text(formatted) == formatted
    assert re.findall(r"#.*", formatted) == [c.rstrip() for c in re.findall(r"#.*", example.text)]


def test_every_syntax_error_has_an_example() -> None:
    shown = {code for example in EXAMPLES for _, _, code, _ in example.stated()}
    assert SYNTAX.keys() - NEED_FILES <= shown
