"""`treesens doctor`: checks which solvers and libraries work here."""

from __future__ import annotations

import platform
import sys
import time
from dataclasses import asdict
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from treesens import __version__
from treesens.backends.base import BACKENDS, Backend, get_backend
from treesens.commands.common import EXPECTED, INTERNAL
from treesens.compiler.base.plugins import installed_plugins
from treesens.errors import TreesensError
from treesens.records.installation import LIBRARIES, package_version, solver_packages
from treesens.report.terminal import console, say, say_json, say_wrapped

if TYPE_CHECKING:
    from treesens.frontends.base import Frontend

DEFAULT_BACKENDS = ("native", "cpsat", "highs", "z3")
"""The solvers that `pip install treesens` installs and `--backend auto` uses."""

_PACKAGES = (
    ("numpy", "required"),
    ("lark", "required"),
    ("click", "required"),
    ("rich", "required"),
    ("narwhals", "required"),
    ("pandas", "data frames"),
    ("pyarrow", "Parquet files"),
    ("jinja2", "HTML reports"),
    ("onnx", "ONNX files"),
    ("skops", "files of scikit-learn"),
)


@click.command("doctor")
@click.option("--solve", is_flag=True, help="Solve a feasible, an infeasible and an optimal case with each backend.")
@click.option(
    "--backends", "matrix", is_flag=True, help="Show the form in which each backend receives each kind of block and op."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def command(solve: bool, matrix: bool, as_json: bool) -> int:
    """Check which solvers and libraries work here.

    Exit codes: 0 if the default set of solvers works, otherwise 6.
    """
    backends = [_backend(name, solve) for name in BACKENDS.names()]
    facts = {
        "schema_version": 1,
        "treesens": __version__,
        "python": platform.python_version(),
        "executable_bits": 64 if sys.maxsize > 2**32 else 32,
        "platform": platform.platform(),
        "packages": [{"name": n, "version": package_version(n), "for": why} for n, why in _packages()],
        "engine": _engine(),
        "backends": backends,
        "frontends": _frontends(),
        "plugins": [asdict(one) for one in installed_plugins()],
    }
    works = facts["engine"] is None and all(b["works"] for b in backends if b["name"] in DEFAULT_BACKENDS)
    facts["default_set_works"] = works
    if as_json:
        say_json(facts)
    elif matrix:
        _show_forms(backends)
    else:
        _show(facts)
    return EXPECTED if works else INTERNAL


def _packages() -> list[tuple[str, str]]:
    """Distributions and their purposes."""
    solvers = [(name, f"backend {', '.join(used)}") for name, used in solver_packages().items()]
    return [*_PACKAGES, *solvers, *((name, "replay in the library") for name in LIBRARIES)]


def _engine() -> str | None:
    """The reason why the compiled extension does not load; None if it loads."""
    try:
        from treesens._engine import SCORE_BITS
    except ImportError as error:
        return f"{error}: reinstall treesens with a C++ compiler present"
    del SCORE_BITS
    return None


def _backend(name: str, solve: bool) -> dict[str, Any]:
    from treesens.compiler.ir import Bool
    from treesens.compiler.ir.text import KINDS
    from treesens.report.explain import form_of

    facts: dict[str, Any] = {
        "name": name,
        "available": False,
        "reason": None,
        "proof": None,
        "solved": None,
        "forms": {},
    }
    try:
        backend = get_backend(name)
        facts["reason"] = backend.available()
        facts["proof"] = backend.capabilities.proof.value
        own = backend.capabilities.rewrites
        forms = {kind.__name__: form_of(kind.__name__, backend) for kind in KINDS if kind is not Bool}
        facts["forms"] = {kind: "native" if form is None else own.get(kind, "rows") for kind, form in forms.items()}
    except (TreesensError, ImportError) as error:
        facts["reason"] = str(error)
    facts["available"] = facts["reason"] is None
    if solve and facts["available"]:
        facts |= _solved(backend)
    facts["works"] = facts["available"] and facts["solved"] is not False
    return facts


def _show_forms(backends: list[dict[str, Any]]) -> None:
    """The matrix of kinds and backends: native, as integer rows, or in a form of the backend's own, which a note states."""
    from treesens.report.tables import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for header in ("", *(one["name"] for one in backends)):
        table.add_column(header)
    forms = [one["forms"] for one in backends if one["forms"]]
    notes = list(dict.fromkeys(text for form in forms for text in form.values() if text not in {"native", "rows"}))
    for kind in forms[0]:
        cells = [one["forms"].get(kind, "-") for one in backends]
        table.add_row(kind, *(f"({notes.index(cell) + 1})" if cell in notes else cell for cell in cells))
    table.add_row("proof", *(one["proof"] or "-" for one in backends))
    table.print_fitted(console())
    say("rows: integer rows of docs/encodings.md")
    for number, text in enumerate(notes, 1):
        say_wrapped(f"({number}) {text}", 4)


def _solved(backend: Backend) -> dict[str, Any]:
    """Results of a feasible, an infeasible and an optimal case, in the backend's own worker, compared with brute force."""
    from treesens.builtin import service

    kit = service("conformance")
    say(f"solving with {backend.name} …", err=True)
    started = time.perf_counter()
    report = kit.backends.run(backend, only=("path", "equal-copies", "maximum"))
    bad = [check for check in report.checks if check.outcome is not kit.passes.Outcome.PASSED]
    return {
        "solved": not bad,
        "reason": "; ".join(f"{check.name}: {check.reason}" for check in bad) or None,
        "seconds": round(time.perf_counter() - started, 3),
    }


def _frontends() -> list[dict[str, Any]]:
    from treesens.frontends.registry import frontend, frontend_names

    found: list[dict[str, Any]] = []
    for name in frontend_names():
        try:
            reader = frontend(name)
            library, reason = reader.library, _unreadable(reader)
        except TreesensError as error:
            library, reason = "", str(error)
        found.append(
            {
                "name": name,
                "library": library or None,
                "library_installed": bool(library) and find_spec(library.partition(".")[0]) is not None,
                "reason": reason,
            }
        )
    return found


def _unreadable(reader: Frontend) -> str | None:
    """The reason why files of this format cannot be read here; None if they can be read."""
    package = getattr(reader, "reads_with", "")
    if not package or find_spec(package) is not None:
        return None
    return f"reading needs {package}, which is not installed: pip install 'treesens[{package}]'"


def _show(facts: dict[str, Any]) -> None:
    say_wrapped(f"treesens {facts['treesens']}, Python {facts['python']}, {facts['platform']}")
    say_wrapped(f"native extension: {facts['engine'] or 'loads'}")
    say("\nbackends")
    for b in facts["backends"]:
        state = "works" if b["works"] and b["solved"] else "available" if b["works"] else "FAILS"
        if not b["available"]:
            state = "not here"
        notes = [f"{b['proof']} proofs"] if b["proof"] else []
        notes += [f"solved in {b['seconds']:.1f} s"] if b["solved"] else []
        notes += [b["reason"]] if b["reason"] else []
        mark = "*" if b["name"] in DEFAULT_BACKENDS else " "
        say_wrapped(f" {mark} {b['name']:10} {state:10} {', '.join(notes)}", 25)
    say("   (* belongs to the default set)")
    say("\nmodel formats")
    for f in facts["frontends"]:
        if f["reason"]:
            state = f["reason"]
        elif not f["library"]:
            state = "reads files; there is no library for replay"
        elif f["library_installed"]:
            state = f"reads files; library replay with {f['library']}"
        else:
            state = f"reads files; {f['library']} is not installed, so replay is emulated"
        say_wrapped(f"   {f['name']:10} {state}", 11)
    if facts["plugins"]:
        say("\nplug-ins")
        for p in facts["plugins"]:
            say_wrapped(f"   {p['kind']:14} {p['name']}: {p['package']} {p['version']}, {p['entry_point']}", 18)
    say("\nlibraries")
    for p in facts["packages"]:
        say(f"   {p['name']:14} {p['version'] or '-':14} {p['for']}")
    if not facts["default_set_works"]:
        say("\nThe default set does not work: pip install --force-reinstall treesens", err=True)
