"""Files that hold a Python object: skops archives, pickles, and joblib's pickles, compressed or not.

Only a file that was opened already, because its user trusts it or because skops has found nothing but plain data in it, is
opened here again.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treesens.compiler.model import ModelSource
from treesens.frontends.sklearn.frontend import open_skops
from treesens.frontends.sklearn.pickles import open_pickle

_Way = Callable[[bytes], bytes]
_COMPRESSIONS: tuple[tuple[tuple[bytes, ...], _Way, _Way], ...] = (
    ((b"\x1f\x8b",), gzip.decompress, lambda data: gzip.compress(data, mtime=0)),
    ((b"x\x01", b"x^", b"x\x9c", b"x\xda"), zlib.decompress, zlib.compress),
    ((b"BZh",), bz2.decompress, bz2.compress),
    ((b"\xfd7zXZ",), lzma.decompress, lzma.compress),
    ((b"]\x00\x00",), lzma.decompress, lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE)),
)
"""First bytes of a compressed file, and the ways to and fro."""
_OF_JOBLIB = b"joblib.numpy_pickle"
_FIRST_PROTOCOL = 2


@dataclass(frozen=True, eq=False)
class Store:
    """The object of a file, and the content of such a file with another object."""

    model: Any
    content: Callable[[Any], bytes]


def stored(source: ModelSource, data: bytes) -> Store:
    """The object in the content of a file that its user trusts."""
    if source.format.startswith("sklearn-skops"):
        return Store(open_skops(data, source.path), _as_skops)
    squeeze: _Way = bytes
    for starts, unpacked, packed in _COMPRESSIONS:
        if data.startswith(starts):
            data, squeeze = unpacked(data), packed
    dump = _as_joblib if _OF_JOBLIB in data else _as_pickle(data)
    return Store(open_pickle(Path(source.path)), lambda model: squeeze(dump(model)))


def _as_skops(model: Any) -> bytes:
    from skops import io as skops_io

    return bytes(skops_io.dumps(model))


def _as_joblib(model: Any) -> bytes:
    import joblib

    file = io.BytesIO()
    joblib.dump(model, file)
    return file.getvalue()


def _as_pickle(data: bytes) -> Callable[[Any], bytes]:
    """Writes pickles of the protocol of another one."""
    protocol = data[1] if data[:1] == b"\x80" and data[1] <= pickle.HIGHEST_PROTOCOL else _FIRST_PROTOCOL
    return lambda model: pickle.dumps(model, protocol=protocol)
