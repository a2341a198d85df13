"""`treesens verify DIR`: the checker of certificates in a process of its own, which imports nothing of treesens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from treesens.commands.common import EXPECTED, VIOLATED
from treesens.errors import UsageError

_PROGRAM = "import sys; sys.path.insert(0, sys.argv.pop(1)); from treesens_verify import main; sys.exit(main())"


@click.command("verify")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@click.option(
    "--model",
    "models",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A model file that certificates are about; may be repeated. Trees beside the certificates are found.",
)
@click.option("--quiet", "-q", is_flag=True, help="Only the last line of each certificate.")
def command(paths: tuple[Path, ...], models: tuple[Path, ...], quiet: bool) -> int:
    """Check certificates (files, or all of a folder) against the original model files.

    Says in words what each one claims, and whether it is accepted. Exit codes: 0 all are accepted, 10 one is not.
    """
    certificates = _in(paths, ".cert.xz")
    if not certificates:
        raise UsageError("no certificates there", remedy="name files that end in .cert.xz, or a folder with some")
    known = [*models, *_in([p if p.is_dir() else p.parent for p in paths], ".trees.json")]
    if not known:
        raise UsageError("no model file to check them against", remedy="add --model FILE, the original model")
    return EXPECTED if run_checker(certificates, known, quiet=quiet) == 0 else VIOLATED


def run_checker(certificates: list[Path], models: list[Path], *, quiet: bool = False) -> int:
    """The exit code of the checker, which prints on standard output."""
    import treesens.certificates.treesens_verify as checker

    folder = Path(checker.__file__).parents[1]
    named = [part for model in models for part in ("--model", str(model.resolve()))]
    files = [str(path.resolve()) for path in certificates]
    options = ["--quiet"] if quiet else []
    return subprocess.run(
        [sys.executable, "-I", "-c", _PROGRAM, str(folder), *options, *named, "--", *files], check=False
    ).returncode


def _in(paths: tuple[Path, ...] | list[Path], suffix: str) -> list[Path]:
    found = [q for p in paths for q in (sorted(p.iterdir()) if p.is_dir() else [p]) if q.name.endswith(suffix)]
    return list(dict.fromkeys(found))
