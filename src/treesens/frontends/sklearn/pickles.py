"""Pickles and joblib files, which can run code when opened. Such files are opened only if the user declares them trusted."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from treesens.errors import ModelError

# Protocols 2 to 5 start with PROTO, their number and a first opcode; joblib compresses with zlib, gzip, bz2, xz and lzma.
_STARTS = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"x\x01", b"x^", b"x\x9c", b"x\xda", b"\x1f\x8b", b"BZh")
_STARTS_OF_XZ = (b"\xfd7zXZ", b"]\x00\x00")
# Errors that unpickling raises for damaged bytes and missing libraries.
_ERRORS = (
    pickle.UnpicklingError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)


def is_pickle(head: bytes) -> bool:
    """True if a file may be a pickle, compressed or not, of protocol 2 or later."""
    return head.startswith(_STARTS + _STARTS_OF_XZ)


def untrusted_pickle(place: str) -> ModelError:
    """The error for an untrusted pickle."""
    return ModelError(
        "this is a pickle (or joblib file), which can run any code when it is opened",
        place=place,
        remedy="pass --trust-pickle if you know where it comes from, or save the model with skops",
    )


def open_pickle(path: Path) -> Any:
    """The object in a pickle or joblib file that the user trusts. Runs the code in the file."""
    try:
        import joblib

        return joblib.load(path)
    except ImportError as error:
        raise ModelError(
            f"opening the pickle needs {error.name or 'a library'}, which is not installed",
            place=str(path),
            remedy="install the library that made the model",
        ) from None
    except _ERRORS as error:
        raise ModelError(
            f"the pickle cannot be opened: {type(error).__name__}: {error}",
            place=str(path),
            remedy="save the model again with the installed versions of the libraries",
        ) from None
