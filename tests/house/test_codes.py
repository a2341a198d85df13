"""Every code of a message is in the catalogue with title, cause and remedy, and every entry of the catalogue is in use."""

import ast
import re
from pathlib import Path

from treesens.grammar.constructs.registry import constructs
from treesens.grammar.messages.catalogue import ANSWERS, CATALOGUE, DATA, DOMAINS, NAMES, SYNTAX, TYPES

SOURCES = Path(__file__).parents[2] / "src" / "treesens"


def codes_in(source: str) -> set[str]:
    """Texts of a module that look like a code."""
    texts = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    return {text for text in texts if isinstance(text, str) and re.fullmatch(r"[SE]\d{3}", text)}


def test_the_codes_that_are_raised_are_those_of_the_catalogue() -> None:
    paths = [
        path for path in SOURCES.rglob("*.py") if path != SOURCES / "errors.py"
    ]  # the codes of its classes are its own
    raised = set[str]().union(*(codes_in(path.read_text()) for path in paths))
    assert raised - CATALOGUE.keys() == set(), "raised, and not in the catalogue"
    assert CATALOGUE.keys() - raised == set(), "in the catalogue, and raised nowhere"


def test_a_code_has_one_entry() -> None:
    listed = [code for part in (SYNTAX, NAMES, TYPES, DOMAINS, DATA, ANSWERS) for code in part]
    listed += [str(code) for construct in constructs().values() for code in construct.codes]
    assert len(listed) == len(set(listed))
    assert all(code.title and code.cause and code.remedy for code in CATALOGUE.values())


def test_a_code_is_seen() -> None:
    assert codes_in('fail("E999", "E1")') == {"E999"}
