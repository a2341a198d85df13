"""`treesens vnnlib MODEL PROPERTY [TIMEOUT]`: decides a VNN-LIB property of an ONNX tree ensemble."""

from __future__ import annotations

from pathlib import Path

import click

from treesens.commands.common import EXPECTED, INCONCLUSIVE, INTERRUPTED, SECONDS, option_like, write_output
from treesens.commands.outputs import OutputFile
from treesens.errors import DataError, UsageError
from treesens.report.terminal import say
from treesens.runtime.interruption import interruptible


@click.command("vnnlib")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", metavar="PROPERTY", type=click.Path(path_type=Path))
@click.argument("timeout", type=SECONDS, default=60.0)
@click.option("--results", "-o", type=OutputFile(), help="A file to which the result is also written.")
@option_like("seed", 0)
def command(model: Path, file: Path, timeout: float, results: Path | None, seed: int) -> int:
    """Decides whether an input satisfies all assertions of PROPERTY: `sat` with a counterexample confirmed by onnxruntime,
    `unsat` (proved), `unknown`, or `timeout` after TIMEOUT seconds.

    Exit codes: 0 sat or unsat, 5 unknown or timeout, 1 usage, 2 unreadable input, 130 interrupted.
    """
    from treesens.compiler.base.files import write_atomically
    from treesens.extensions.vnnlib.parsing import parse_property
    from treesens.extensions.vnnlib.property import decide_property, read_content, result_text
    from treesens.frontends.registry import load

    asked = parse_property(_text(file), str(file))
    loaded = load(model)
    if loaded.frontend != "onnx":
        raise UsageError(f"`{model}` is not an ONNX model", remedy="convert it, e.g. with skl2onnx or onnxmltools")
    data, found = read_content(model, loaded), None
    with interruptible() as interruption:
        found = decide_property(loaded, data, asked, time_limit=timeout, seed=seed, stop=interruption.event)
    if found is None or interruption.happened:
        return INTERRUPTED
    text = result_text(found, asked)
    say(text.rstrip("\n"))
    if results is not None:
        write_output(str(results), lambda: write_atomically(results, text))
    if found.reason and found.status not in ("sat", "unsat"):
        say(found.reason, err=True)
    return EXPECTED if found.status in ("sat", "unsat") else INCONCLUSIVE


def _text(path: Path) -> str:
    """The text of a property, plain or gzipped. Raises DataError if the property is not text."""
    import gzip
    from zlib import error as ZlibError

    from treesens.compiler.base.files import open_regular
    from treesens.extensions.vnnlib.parsing import LARGEST

    try:
        with open_regular(path) as file:
            packed = path.suffix == ".gz"
            content = gzip.GzipFile(fileobj=file).read(LARGEST + 1) if packed else file.read(LARGEST + 1)
        return content.decode("utf-8-sig")
    except (OSError, EOFError, ZlibError) as error:
        raise DataError(f"the property cannot be read: {error}", place=str(path)) from None
    except UnicodeDecodeError:
        raise DataError("the property is not UTF-8 text", place=str(path)) from None
