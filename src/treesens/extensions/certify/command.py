"""`treesens verify` checks certificates in a process that imports nothing from treesens; `treesens export` writes trees."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from treesens.commands.common import EXPECTED, VIOLATED, Number, Whole, trust_option
from treesens.commands.modules import are_modules
from treesens.commands.outputs import OutputFile
from treesens.compiler.base.files import write_atomically
from treesens.compiler.ir.files import is_module_file
from treesens.errors import UsageError
from treesens.extensions.certify.module_records import verify_records
from treesens.report.terminal import say

_PROGRAM = "import sys; sys.path.insert(0, sys.argv.pop(1)); from treesens_verify import main; sys.exit(main())"


@click.command("verify")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option(
    "--model",
    "models",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    help="A model file (or folder) that certificates are about; may be repeated. Trees files next to them are found.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print only the last line of each certificate.")
@click.option(
    "--first-trees", is_flag=True, help="Accept claims about the first trees of a model alone (early stopping)."
)
@click.option("--trees-alone", is_flag=True, help="Trust a trees file without the model that it names as its source.")
@click.option("--numpy", is_flag=True, help="Check proofs of deep trees with numpy, much faster.")
@click.option("--seconds", type=Number(0, min_open=True), help="Maximum seconds per certificate.  [default: 600]")
@click.option("--megabytes", type=Whole(min=64), help="Maximum memory in MB.  [default: 4096]")
@click.option("--entries", type=Whole(min=1), help="Maximum of leaf combinations.  [default: 2000000]")
def command(paths: tuple[Path, ...], models: tuple[Path, ...], **asked: float | None) -> int:
    """Check certificates and manifests (files, or a whole folder) against the original model files. With FILE.sir RECORD.json,
    check records of modules instead.

    Prints each claim in words, and the verdict on it. A manifest is accepted if all its parts are accepted and its claims
    follow from the parts. Trees files next to the certificates are found; a trees file counts only if the source that it names
    is among the models. Exit codes: 0 all certificates are accepted, 10 one is rejected.
    """
    modules = [path for path in paths if is_module_file(path)]
    if are_modules(modules, ()):
        records = [path for path in paths if path not in modules]
        return verify_records(modules, records, quiet=bool(asked["quiet"]))
    certificates = [*_in(paths, ".cert.xz"), *_in(paths, ".manifest.json")]
    if not certificates:
        remedy = "pass files that end in .cert.xz or .manifest.json, or a folder that contains them"
        raise UsageError("these paths contain no certificates", remedy=remedy)
    known = [*models, *_in([p if p.is_dir() else p.parent for p in paths], ".trees.json")]
    if not known:
        raise UsageError("a check needs the model file", remedy="add --model FILE, the original model")
    code = run_checker(certificates, known, asked)
    if code not in (0, 1):
        raise UsageError("a file cannot be read, or the checker was stopped", remedy="see the line above")
    return EXPECTED if code == 0 else VIOLATED


def run_checker(certificates: list[Path], models: list[Path], asked: Mapping[str, float | None]) -> int:
    """The exit code of the checker, which prints on standard output. `asked` maps options to values; flags are booleans."""
    import treesens.extensions.treesens_verify as checker

    folder = Path(checker.__file__).parents[1]
    named = [part for model in models for part in ("--model", str(model.resolve()))]
    files = [str(path.resolve()) for path in certificates]
    options = []
    for name, value in asked.items():
        if value is not None and value is not False:
            options += [f"--{name.replace('_', '-')}"] if value is True else [f"--{name.replace('_', '-')}", str(value)]
    return subprocess.run(
        [sys.executable, "-I", "-c", _PROGRAM, str(folder), *options, *named, "--", *files], check=False
    ).returncode


def _in(paths: tuple[Path, ...] | list[Path], suffix: str) -> list[Path]:
    found = [q for p in paths for q in (sorted(p.iterdir()) if p.is_dir() else [p]) if q.name.endswith(suffix)]
    return list(dict.fromkeys(found))


@click.command("export")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--format", "-f", "format_name", help="Name of the format, if the content does not determine it.")
@trust_option
@click.option("--output", "-o", type=OutputFile(), required=True, help="The file, e.g. MODEL.trees.json.")
def export(model: Path, format_name: str | None, trust_pickle: bool, output: Path) -> int:
    """Write the trees of a model as certificates refer to them: cuts, sets of categories, exact leaves (docs/certificates.md).

    `treesens info MODEL --check` compares the loaded model with its library.
    """
    from treesens.extensions.certify.trees import trees_file
    from treesens.frontends.registry import load

    content = trees_file(load(model, format_name, trust_pickle=trust_pickle).ensemble)
    write_atomically(output, content)
    say(f"wrote {output} ({len(content):,} bytes)", err=True)
    return EXPECTED
