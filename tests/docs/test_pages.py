"""The pages under docs/ say what the code does: code blocks, tables, options and links are compared with it."""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import fields
from pathlib import Path

import click
import pytest

from tests.docs.option_tables import filled
from treesens.cli import command_names, group
from treesens.compiler.ir import Objective
from treesens.compiler.ir.text import KINDS, parse_module, print_module
from treesens.compiler.ir.verifier import verify

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PLUGIN = ROOT / "tests" / "plugin_package"
NAMED_BLOCK = re.compile(r"^<!-- (\S+) -->\n+```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_code_of_extending_md_is_that_of_the_plug_in_package() -> None:
    blocks = NAMED_BLOCK.findall((DOCS / "extending.md").read_text())
    blocks = [(name, code) for name, code in blocks if not (ROOT / name).is_file() or name == "pyproject.toml"]
    for name, code in blocks:
        assert code.rstrip("\n") in (PLUGIN / name).read_text(), f"the block of {name} differs from the file"
    shown = {Path(name).name for name, _ in blocks}
    modules = ("satisfied_clauses", "backend", "frontend", "softsign", "adult", "rows", "walk", "depth")
    assert shown == {"pyproject.toml", *(f"{name}.py" for name in modules)}


def test_extending_md_names_what_exists() -> None:
    text = (DOCS / "extending.md").read_text()
    package = ROOT / "src" / "treesens"
    for place in re.findall(r"`((?:compiler|backends|frontends|grammar|binder|report)/[a-z_/0-9.]+)`", text):
        assert (package / place).exists(), place


def rows_of_table(page: str, head: str) -> list[list[str]]:
    """The body of the table whose header starts with `head`; code marks are dropped."""
    lines = iter((DOCS / page).read_text().splitlines())
    for line in lines:
        if line.startswith(f"| {head} |"):
            break
    next(lines)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            return rows
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


@pytest.mark.parametrize("head", ["block", "op"])
def test_nodes_and_fields_of_ir_md(head: str) -> None:
    of = {"block": "treesens.compiler.ir.module", "op": "treesens.compiler.ir.ops"}[head]
    expected = {name: [f"`{f.name}`" for f in fields(kind)] for kind, name in KINDS.items() if kind.__module__ == of}
    found = {row[0].strip("`"): row[1].split(", ") for row in rows_of_table("ir.md", head)}
    assert found == expected


def test_the_objective_of_ir_md() -> None:
    names = ", ".join(f"`{f.name}`" for f in fields(Objective))
    assert f"(`maximize`) has the fields {names}" in (DOCS / "ir.md").read_text().replace("\n", " ")


def test_the_module_of_ir_md_parses_and_prints_back() -> None:
    text = re.search(r"```sir\n(.*?)```", (DOCS / "ir.md").read_text(), re.DOTALL)
    assert text is not None
    module = parse_module(text[1])
    verify(module)
    assert print_module(module, full=True) == text[1]


def sections(page: Path) -> list[tuple[str, str]]:
    """The commands that have a section in a page, with its text."""
    return re.findall(r"^## ([a-z]+)\n(.*?)(?=^## |\Z)", filled(page.read_text()), re.DOTALL | re.MULTILINE)


def test_every_command_and_option_is_in_one_page_of_commands() -> None:
    """Each command has one section, in the page of the need that it serves (cli-ask.md, cli-study.md, ...), which names options
    of this command alone; options.md has all of them.
    """
    found = [section for page in sorted(DOCS.glob("cli-*.md")) for section in sections(page)]
    assert sorted(name for name, _ in found) == sorted(command_names())
    index = (DOCS / "cli.md").read_text()
    jobs = re.findall(r"`([a-z]+) (--[a-z-]+)`", index)
    assert jobs
    listed = dict(sections(DOCS / "options.md"))
    for name, section in found:
        assert f"[`{name}`](cli-" in index
        command = group.get_command(click.Context(group), name)
        assert command is not None
        options = {o for p in command.params if isinstance(p, click.Option) for o in p.opts if o.startswith("--")}
        assert {*re.findall(r"`(--[a-z-]+)", section), *(option for of, option in jobs if of == name)} <= options, name
        assert set(re.findall(r"`(--[a-z-]+)", listed.get(name, ""))) == options, name


def test_the_rooms_of_architecture_md_are_those_of_the_import_contracts() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = [one["layers"] for one in project["tool"]["importlinter"]["contracts"] if one["type"] == "layers"]
    section = (DOCS / "architecture.md").read_text().partition("## Rooms")[2].partition("Backends and the compiler")[0]
    tables = re.split(r"^\| rooms of [^\n]*$", section, flags=re.MULTILINE)[1:]
    assert len(tables) == len(contracts) == 2
    for table, layers, prefix in zip(tables, contracts, ("treesens.", "treesens.extensions."), strict=True):
        rows = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
        position = {
            room.rstrip("/"): number for number, row in enumerate(rows) for room in re.findall(r"`([a-z_/]+)`", row)
        }
        last = -1
        for layer in layers:
            names = (one.strip().removeprefix(prefix) for one in layer.split("|"))
            rooms = {position[name.replace(".", "/")] for name in names}
            assert len(rooms) == 1, f"{layer} is on several lines"
            number = rooms.pop()
            assert number >= last, f"{layer} is too high up"
            last = number


FENCE = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
PAGES = sorted(
    p.relative_to(ROOT).as_posix()
    for place in ("*", "docs/**/*", "benchmarks/**/*", "verify/**/*", "editors/**/*", "examples/**/*")
    for p in ROOT.glob(f"{place}.md")
    if not {"node_modules", ".venv", "build", "out"} & set(p.relative_to(ROOT).parts)
)


@functools.cache
def prose(path: Path) -> str:
    """A page with its made tables, without its blocks of code."""
    return FENCE.sub("", filled(path.read_text()))


@functools.cache
def anchors(path: Path) -> set[str]:
    """The headings of a page that have the same anchor in the repository (GitHub's rule) and on the site (Markdown's)."""
    titles = [
        re.sub(r"[`*]|\]\([^)]*\)|\[", "", title) for title in re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    ]
    kept = [re.sub(r"[^\w\s-]", "", title.lower()).strip() for title in titles]
    there = {re.sub(r"\s", "-", title) for title in kept}
    return there & {re.sub(r"[-\s]+", "-", title.encode("ascii", "ignore").decode()) for title in kept}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    """To a file that exists, and to a heading of it."""
    path = ROOT / page
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if not target.startswith(("http:", "https:", "mailto:")):
            name, _, anchor = target.partition("#")
            to = (path.parent / name).resolve() if name else path
            assert to.exists(), target
            assert not anchor or anchor in anchors(to), target


def test_links_out_of_the_documentation_need_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mkdocs")
    from website.hooks import linked, repository

    monkeypatch.setenv("TREESENS_REPOSITORY", "https://me:secret@example.org/a/treesens.git")
    assert repository() == "https://example.org/a/treesens"
    text = "See [a\nfigure](../benchmarks/bounds.md#sizes), [SECURITY.md](../SECURITY.md) and [data](data.md)."
    assert linked(text, "../", repository()) == (
        "See [a\nfigure](https://example.org/a/treesens/blob/HEAD/benchmarks/bounds.md#sizes), "
        "[SECURITY.md](https://example.org/a/treesens/blob/HEAD/SECURITY.md) and [data](data.md)."
    )
    monkeypatch.setenv("TREESENS_REPOSITORY", "/a/folder")
    assert repository() is None
    expected = "See a\nfigure (`benchmarks/bounds.md`), `SECURITY.md` and [data](data.md)."
    assert linked(text, "../", repository()) == expected


def test_documents_that_are_named_exist() -> None:
    """Sources and pages name documents only if they are in the repository."""
    places = [
        p for kind in ("*.py", "*.hpp", "*.cpp", "*.md") for part in ("src", "docs") for p in (ROOT / part).rglob(kind)
    ]
    known = {
        p.name
        for folder in (ROOT, ROOT / "benchmarks", ROOT / "benchmarks" / "notebook", DOCS, DOCS / "adr")
        for p in folder.glob("*.md")
    }
    named = {(name, str(p.relative_to(ROOT))) for p in places for name in re.findall(r"\b[\w-]+\.md\b", p.read_text())}
    assert not {(name, place) for name, place in named if name not in known}


def test_numbers_of_engine_md_are_in_the_schedule() -> None:
    header = (ROOT / "src/treesens/engine/problem/schedule.hpp").read_text()
    options = re.findall(r"OPTION\((\w+), ", header)
    used = {n for row in rows_of_table("engine.md", "when") for n in re.findall(r"`(\w+)`", row[2])}
    assert used
    assert used <= set(options)
