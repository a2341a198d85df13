"""`treesens lsp`: the language server for `.sens` files."""

from __future__ import annotations

import os
import sys

import click

from treesens.commands.common import trust_option


@click.command("lsp")
@trust_option
def command(trust_pickle: bool) -> None:
    """Serve the Language Server Protocol on standard input and output: messages while typing, completion, hover, formatting.

    Editors start the server, which needs the extra `treesens[lsp]`.
    """
    from treesens.errors import UsageError

    try:
        from treesens.extensions.editor.server import make_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol", "attrs", "attr", "cattrs"):
            raise
        raise UsageError(
            f"the language server needs {error.name}, which is not installed", remedy="pip install 'treesens[lsp]'"
        ) from None
    # Output of libraries on standard output would break the protocol.
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    make_server(trust_pickle=trust_pickle).start_io(stdout=out)
    sys.stderr.flush()
    # A file that is being read must not keep a server without a client alive; there is nothing to save.
    os._exit(0)
