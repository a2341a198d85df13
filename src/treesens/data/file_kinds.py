"""Recognises table files other than CSV and Parquet by their first bytes: the kind of file, and how to convert it."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping

_BY_PANDAS = 'python -c "import pandas; pandas.{}({!r}{}).to_parquet({!r})"'
_BEGINNINGS: Mapping[bytes, tuple[str, str]] = {
    b"\xd0\xcf\x11\xe0": ("an Excel file (xls)", "{read_excel}"),
    b"BZh": ("a bzip2 file", "unpack it: bunzip2 {file}"),
    b"\xfd7zXZ\0": ("an xz file", "unpack it: unxz {file}"),
    b"\x28\xb5\x2f\xfd": ("a Zstandard file", "unpack it: unzstd {file}"),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", "unpack it, and pass the CSV inside"),
    b"ARROW1": ("an Arrow file (Feather)", "{read_feather}"),
    b"FEA1": ("a Feather file", "{read_feather}"),
    b"ORC": ("an ORC file", "{read_orc}"),
    b"\x89HDF": ("an HDF5 file", "{read_hdf}"),
    b"\x80\x02": ("a pickle", "{read_pickle}"),
    b"\x80\x03": ("a pickle", "{read_pickle}"),
    b"\x80\x04": ("a pickle", "{read_pickle}"),
    b"\x80\x05": ("a pickle", "{read_pickle}"),
    b"\x93NUMPY": ("an array of numpy", "numpy.savetxt writes it as CSV, with a header for the names of the columns"),
    b"SQLite format 3\0": ("an SQLite database", "export a table: sqlite3 -csv -header {file} 'SELECT * FROM ..'"),
    b"$FL2": ("an SPSS file", "{read_spss}"),
    b"<stata_dta>": ("a Stata file", "{read_stata}"),
    b"%PDF": ("a PDF file", "pass CSV or Parquet"),
    codecs.BOM_UTF16_LE: ("UTF-16, not UTF-8", "save it as UTF-8 (`iconv -f utf-16 -t utf-8`)"),
    codecs.BOM_UTF16_BE: ("UTF-16, not UTF-8", "save it as UTF-8 (`iconv -f utf-16 -t utf-8`)"),
}
_ZIP = b"PK\x03\x04"
_JSON = re.compile(rb'\s*(\{\s*["}]|\[\s*[\[{"\]])')
_JSON_LINES = re.compile(rb'\s*\{\s*"[^\n]*\}\r?\n\s*\{')
_MARKUP = re.compile(rb"\s*<(\?xml|!DOCTYPE|html|table|\w+:?Workbook)", re.IGNORECASE)


def kind_of(head: bytes, file: str) -> tuple[str, str] | None:
    """The kind of file that begins with `head`, and how to convert it to CSV or Parquet; None for text and unknown kinds."""
    if head.startswith(_ZIP):
        if b"opendocument.spreadsheet" in head[:200]:
            return "an OpenDocument spreadsheet (ods)", "save the sheet as CSV UTF-8"
        if b"[Content_Types].xml" in head or b"xl/" in head:
            return "an Excel file (xlsx)", f"save the sheet as CSV UTF-8, or {_converted('read_excel', file)}"
        return "a zip archive", f"unpack it: unzip {file}"
    text = head.removeprefix(codecs.BOM_UTF8)
    if _JSON_LINES.match(text):
        return "JSON lines", _converted("read_json", file, ", lines=True")
    if _JSON.match(text):
        return "JSON", _converted("read_json", file)
    if _MARKUP.match(text):
        return "XML or HTML", "save the table as CSV UTF-8"
    for beginning, (name, remedy) in _BEGINNINGS.items():
        if head.startswith(beginning):
            if remedy.startswith("{read_"):
                return name, _converted(remedy.strip("{}"), file)
            return name, remedy.format(file=file)
    return ("binary (with NUL bytes)", "pass CSV or Parquet") if b"\0" in head else None


def _converted(reader: str, file: str, options: str = "") -> str:
    """The command line that converts a file with pandas."""
    return "convert it: " + _BY_PANDAS.format(reader, file, options, f"{file.rpartition('.')[0] or file}.parquet")
