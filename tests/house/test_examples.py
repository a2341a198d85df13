"""Examples state each domain once: a declaration is in one file, which the other examples include."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from treesens.grammar.parsing.parser import parse_tree, read
from treesens.grammar.tree import ast

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_no_declaration_is_repeated() -> None:
    files = sorted(EXAMPLES.rglob("*.sens"))
    assert len(files) > 15
    seen: Counter[ast.Declaration] = Counter()
    for path in files:
        declared = parse_tree(path.read_text("utf-8")).declarations
        # `domain from patients` is about the table that this file calls so.
        seen.update({one for one in declared if not isinstance(one, ast.Query | ast.Include | ast.DomainFrom)})
    assert [one for one, number in seen.items() if number > 1] == []


def test_forty_questions_about_one_domain_declare_it_once(tmp_path: Path) -> None:
    include = f'include "{EXAMPLES / "include" / "loan.sens"}"\n'
    for number in range(40):
        (tmp_path / f"{number}.sens").write_text(
            f"{include}query q{number}: sensitive loan to {{sex}} gap 0.{number + 10}\n"
        )
    (tmp_path / "all.sens").write_text("".join(f'include "{number}.sens"\n' for number in range(40)))
    found = read(tmp_path / "all.sens")
    assert len(found.queries) == 40
    models = [one for one in found.declarations if isinstance(one, ast.Model)]
    assert [Path(one.path.value) for one in models] == [EXAMPLES / "include" / "../out/loan.json"]
