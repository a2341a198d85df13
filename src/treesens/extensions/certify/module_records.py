"""Records of `check FILE.sir --json`, evaluated again on the module."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from treesens.commands.common import EXPECTED, INCONCLUSIVE, VIOLATED
from treesens.compiler.base.files import MOST_TEXT_BYTES, read_regular
from treesens.compiler.ir.files import read_module
from treesens.compiler.ir.text import digest
from treesens.errors import DataError, UsageError
from treesens.records.modules import faults_of
from treesens.report.terminal import say
from treesens.visible import visible


def verify_records(modules: Sequence[Path], records: Sequence[Path], *, quiet: bool) -> int:
    """Evaluates the assignments of records on their modules, which are found by SHA-256. Proofs are not checked.

    The exit code is 0 if all agree, 10 if a field is wrong or belongs to another module, and otherwise 5 if a record has no
    assignment.
    """
    if not records:
        raise UsageError(
            f"no record of {modules[0]}", remedy="give the output of `treesens check FILE.sir --json` as a second file"
        )
    known = {digest(module): module for module in map(read_module, modules)}
    code = EXPECTED
    for path in records:
        for record in _records(path):
            try:
                module, name = known.get(record["sha256"]), visible(str(record["query"]))
                if module is None:
                    words, here = "rejected: the record is about another module", VIOLATED
                elif record["verdict"] != "found":
                    words, here = f"{record['verdict']}: a record has no proof; `check` answers again", INCONCLUSIVE
                else:
                    faults = faults_of(module, record)
                    words = f"rejected: {', '.join(faults)}" if faults else "accepted: assignment, cells and value"
                    here = VIOLATED if faults else EXPECTED
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                raise _no_record(path, str(error)) from None
            if not quiet or here != EXPECTED:
                say(f"{name}: {visible(words)}")
            code = VIOLATED if VIOLATED in (code, here) else max(code, here)
    return code


def _records(path: Path) -> Iterator[Any]:
    try:
        document = json.loads(read_regular(path, MOST_TEXT_BYTES))
        for file in document.get("files", [document]):
            yield from file["results"]
    except OSError as error:
        raise DataError(f"the record cannot be read: {error.strerror}", place=str(path)) from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _no_record(path, str(error)) from None


def _no_record(path: Path, words: str) -> DataError:
    remedy = "give the output of `treesens check FILE.sir --json`"
    return DataError(f"not a record of a module: {words[:200]}", place=str(path), remedy=remedy)
