"""`treesens export MODEL -o FILE`: the trees of any model in one neutral JSON format."""

from __future__ import annotations

from pathlib import Path

import click

from treesens.commands.common import EXPECTED, trust_option
from treesens.commands.outputs import OutputFile
from treesens.compiler.base.files import write_atomically
from treesens.report.terminal import say


@click.command("export")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--format", "-f", "format_name", help="Name of the format, if the content does not show it.")
@trust_option
@click.option("--output", "-o", type=OutputFile(), required=True, help="The file, e.g. MODEL.trees.json.")
def command(model: Path, format_name: str | None, trust_pickle: bool, output: Path) -> int:
    """Write the trees of a model as certificates refer to them: cuts, sets of categories, exact leaves (docs/certificates.md).

    `treesens info MODEL --check` compares what was read with the library that made the model.
    """
    from treesens.extensions.certify.trees import trees_file
    from treesens.frontends.registry import load

    content = trees_file(load(model, format_name, trust_pickle=trust_pickle).ensemble)
    write_atomically(output, content)
    say(f"wrote {output} ({len(content):,} bytes)", err=True)
    return EXPECTED
