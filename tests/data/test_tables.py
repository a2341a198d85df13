"""Tables from files and frames: what is read, and what each broken one says."""

from __future__ import annotations

import gzip
import zipfile
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest

from tests.counted import calls_of
from treesens.data.tables import Categories, read_table
from treesens.errors import DataError


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_numbers_are_read_exactly_and_the_label_is_no_input(tmp_path: Path) -> None:
    table = read_table(write(tmp_path / "t.csv", "a,b,label\n0.1,1e-3,0\n2,-5,1\n"), label="label")
    assert table.inputs == ("a", "b")
    assert table.matrix(["b", "a"]).tolist() == [[0.001, 0.1], [-5.0, 2.0]]
    assert "label" not in table


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_quotes_and_a_byte_order_mark(tmp_path: Path, separator: str) -> None:
    text = "\ufeff" + separator.join(['"a"', "b"]) + "\r\n" + separator.join(["1", '"2"']) + "\r\n"
    assert read_table(write(tmp_path / "t.csv", text)).matrix(["a", "b"]).tolist() == [[1.0, 2.0]]


def test_empty_fields_are_missing_and_text_becomes_its_category(tmp_path: Path) -> None:
    table = read_table(write(tmp_path / "t.csv", "a,sex\n1,Male\n,Female\nNA,\n"))
    assert np.array_equal(table.numbers("a"), [1.0, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(
        table.numbers("sex", Categories({"Male": 1.0, "Female": 0.0})), [1.0, 0.0, np.nan], equal_nan=True
    )


def test_text_without_categories_names_row_and_column(tmp_path: Path) -> None:
    table = read_table(write(tmp_path / "t.csv", "a,sex\n1,0\n2,Male\n"))
    with pytest.raises(DataError) as caught:
        table.matrix(["a", "sex"])
    assert "row 1, column `sex`" in caught.value.place
    assert "`Male`" in caught.value.message
    assert "feature sex: category {NAME = code" in caught.value.remedy
    with pytest.raises(DataError, match="did you mean `Male`"):
        read_table(write(tmp_path / "u.csv", "sex\nMal\n")).numbers("sex", Categories({"Male": 1.0}))


@pytest.mark.parametrize("text", ["1,234.5", "1 000", "1,234", "1_000", "12'500"])
def test_numbers_as_people_write_them_are_told_how_they_are_read(text: str, tmp_path: Path) -> None:
    """As spreadsheets of many countries write them: their remedy is no category."""
    table = read_table(write(tmp_path / "t.csv", f"a;b\n{text};1\n"))
    with pytest.raises(DataError, match="with a decimal point and without separators"):
        table.numbers("a")


@pytest.mark.parametrize("text", ["35,6", "1.234,5", "-2,0"])
def test_a_decimal_comma_is_named_with_the_line_that_reads_it(text: str, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="reads the file; pip install pandas")
    path = write(tmp_path / "t.csv", f"a;b\n{text};1\n")
    with pytest.raises(DataError, match=r"decimal comma: pandas.read_csv\(.., decimal=',', thousands='.'\)"):
        read_table(path).numbers("a")
    frame = pandas.read_csv(path, sep=";", decimal=",", thousands=".")
    assert read_table(frame).numbers("a").tolist() == [float(text.replace(".", "").replace(",", "."))]


def test_a_percentage_is_named_with_the_line_that_reads_it(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="reads the file; pip install pandas")
    path = write(tmp_path / "t.csv", "a,b\n18.7 %,1\n2%,2\n")
    with pytest.raises(DataError) as caught:
        read_table(path).numbers("a")
    frame = pandas.read_csv(path)
    line = caught.value.remedy.partition("e.g. ")[2]
    assert eval(line, {"frame": frame}).tolist() == [18.7, 2.0]


def test_a_text_among_numbers_is_no_category(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the other rows contain numbers: correct `x12y`"):
        read_table(write(tmp_path / "t.csv", "a,b\n1,1\n2,2\nx12y,3\n")).numbers("a")


def test_gzip_files_are_read_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, csv = tmp_path / "t.csv.gz", write(tmp_path / "t.csv", "a,b\n1,x\n2,\n")
    path.write_bytes(gzip.compress(csv.read_bytes()))
    assert read_table(path).numbers("a").tolist() == [1.0, 2.0]
    assert list(read_table(path).columns["b"]) == ["x", None]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="the gzip file is damaged"):
        read_table(path)
    path.write_bytes(gzip.compress(b'{"a": [1]}'))
    with pytest.raises(DataError, match="gzip with JSON"):
        read_table(path)
    monkeypatch.setattr("treesens.data.tables._MOST_UNPACKED", 1000)
    path.write_bytes(gzip.compress(b"a\n" + b"1\n" * 1000))
    with pytest.raises(DataError, match="unpacks to more than 1000 bytes") as caught:
        read_table(path)
    assert caught.value.remedy == "unpack it: gunzip t.csv.gz"


def test_dates_and_words_are_no_numbers_as_people_write_them(tmp_path: Path) -> None:
    for text in ("2024-01-02", "1,2,3", "12 Main Street", "1.2.2024"):
        with pytest.raises(DataError, match="declare its categories"):
            read_table(write(tmp_path / "t.csv", f"a;b\n{text};1\n")).numbers("a")


@pytest.mark.parametrize("token", ["?", ".", "-", "n.a.", "none", "None", "N.A.", "\\N"])
def test_a_token_of_a_missing_number_is_named(token: str, tmp_path: Path) -> None:
    """As UCI, SAS, MySQL and people write them; among categories the same text is one."""
    table = read_table(write(tmp_path / "t.csv", f"a,b,c\n1,own,0\n{token},{token},1\n"))
    with pytest.raises(DataError, match="column `a` contains the text") as caught:
        table.numbers("a")
    assert caught.value.remedy.startswith(f"`{token}` looks like a missing value: leave such cells empty")
    assert caught.value.remedy.endswith(f"na_values=[{token!r}])")
    with pytest.raises(DataError, match="declare its categories"):
        table.numbers("b")
    assert table.numbers("b", Categories({"own": 0.0, token: 1.0})).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("text", ["$1,200", "35 kg", "12\u20ac", "-3\u00b0C", "1.200,50 EUR"])
def test_a_number_with_a_unit_is_named(text: str, tmp_path: Path) -> None:
    table = read_table(write(tmp_path / "t.csv", f'a;b\n"{text}";1\n;2\n'))
    with pytest.raises(DataError) as caught:
        table.numbers("a")
    assert f"`{text}` looks like a number with a unit" in caught.value.remedy
    with pytest.raises(DataError, match="declare its categories"):
        read_table(write(tmp_path / "t.csv", "a;b\nA11;1\nA12;2\n")).numbers("a")


def test_what_excel_writes_for_a_missing_number_is_missing(tmp_path: Path) -> None:
    """pandas reads `#N/A` so by itself."""
    pandas = pytest.importorskip("pandas", reason="compares with data frames; pip install pandas")
    path = write(tmp_path / "t.csv", "a,b\n1,x\n#N/A,#N/A\n")
    frame, table = pandas.read_csv(path), read_table(path)
    assert frame.isna().to_numpy().tolist() == [[False, False], [True, True]]
    assert np.array_equal(table.numbers("a"), frame["a"], equal_nan=True)
    assert table.columns["b"].tolist() == ["x", None]


def test_files_of_other_kinds_are_named_with_their_conversion(tmp_path: Path) -> None:
    """Each is made by its own library, and converted as the remedy says where pandas does it."""
    pandas = pytest.importorskip("pandas", reason="makes the files; pip install pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    frame.to_csv(tmp_path / "t.csv.bz2", index=False)
    frame.to_csv(tmp_path / "t.csv.xz", index=False)
    frame.to_csv(tmp_path / "t.zip", index=False)
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as file:  # the first part of every workbook
        file.writestr("[Content_Types].xml", "<Types/>")
    frame.to_json(tmp_path / "t.json")
    frame.to_json(tmp_path / "l.jsonl", orient="records", lines=True)
    frame.to_feather(tmp_path / "t.feather")
    frame.to_orc(tmp_path / "t.orc")
    frame.to_pickle(tmp_path / "t.pkl")
    np.save(tmp_path / "t.npy", frame.to_numpy())
    kinds = {
        "t.csv.bz2": ("bzip2", "bunzip2"),
        "t.csv.xz": ("xz file", "unxz"),
        "t.zip": ("zip archive", "unzip"),
        "t.xlsx": ("Excel", "save the sheet as CSV UTF-8"),
        "t.json": ("JSON", "pandas.read_json('t.json').to_parquet('t.parquet')"),
        "l.jsonl": ("JSON lines", "pandas.read_json('l.jsonl', lines=True)"),
        "t.feather": ("Arrow", "read_feather"),
        "t.orc": ("ORC", "read_orc"),
        "t.pkl": ("pickle", "read_pickle"),
        "t.npy": ("numpy", "savetxt"),
    }
    for name, (kind, remedy) in kinds.items():
        with pytest.raises(DataError) as caught:
            read_table(tmp_path / name)
        assert kind in caught.value.message, name
        assert remedy in caught.value.remedy, name
    with chdir(tmp_path):
        exec(caught_line("t.json"))
        assert read_table("t.parquet").numbers("b").tolist() == [0.5, 1.5]


def caught_line(name: str) -> str:
    """The program of a remedy."""
    with pytest.raises(DataError) as caught:
        read_table(name)
    return caught.value.remedy.partition('python -c "')[2].rstrip('"')


def test_absent_columns_are_listed_with_a_guess(tmp_path: Path) -> None:
    table = read_table(write(tmp_path / "t.csv", "aeg\n1\n"))
    with pytest.raises(DataError) as caught:
        table.matrix(["age", "sex"])
    assert "`age`, `sex`" in caught.value.message
    assert caught.value.remedy == "did you mean `aeg`?"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("a,b\n", "no rows"),
        ("a,a\n1,2\n", "occurs twice"),
        ("a,b\n1,x\n1,2,3\n", "row 1 has 3 fields, the header has 2"),
        ("a,b\n1\0,2\n", "NUL"),
        ('\ufeff [\n{"a": 1}]', "is JSON"),
        ("<?xml version='1.0'?><a/>", "XML"),
    ],
)
def test_broken_files_say_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DataError) as caught:
        read_table(write(tmp_path / "t.csv", text))
    assert words in caught.value.message
    assert "t.csv" in caught.value.place


def test_a_file_that_is_not_utf8_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("stra\xdfe\nK\xf6ln\n".encode("latin-1"))
    with pytest.raises(DataError, match="UTF-8"):
        read_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("Straße;Köln\n1;2\n", encoding="utf-16")
    with pytest.raises(DataError, match="is UTF-16, not UTF-8") as caught:
        read_table(tmp_path / "t.csv")
    assert "iconv -f utf-16" in caught.value.remedy
    with pytest.raises(DataError, match="cannot be read"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(DataError, match="no column `lable`"):
        read_table(write(tmp_path / "u.csv", "label\n1\n"), label="lable")
    with pytest.raises(DataError, match="not a data frame"):
        read_table(object())


def test_only_the_first_rows_are_kept(tmp_path: Path) -> None:
    assert read_table(write(tmp_path / "t.csv", "a\n1\n2\n3\n"), rows=2).rows == 2


def test_frames_and_parquet_give_the_same_table(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="compares with data frames; pip install pandas")
    frame = pandas.DataFrame(
        {"a": [1.5, np.nan], "n": [1, 2], "ok": [True, False], "c": pandas.Categorical(["x", None])}
    )
    frame.to_parquet(tmp_path / "t.parquet")
    for source in (frame, tmp_path / "t.parquet"):
        table = read_table(source)
        assert np.array_equal(table.numbers("a"), [1.5, np.nan], equal_nan=True)
        assert table.numbers("ok").tolist() == [1.0, 0.0]
        assert np.array_equal(table.numbers("c", Categories({"x": 3.0})), [3.0, np.nan], equal_nan=True)


def test_a_table_of_numbers_is_read_without_a_call_for_each_row(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [",".join(f"c{i}" for i in range(14))]
    lines += [",".join(map(repr, row)) for row in rng.random((22_792, 14)).tolist()]
    path = write(tmp_path / "t.csv", "\n".join(lines))
    assert calls_of(lambda: read_table(path)) < 22_792


def test_columns_that_are_called_by_numbers_keep_their_values() -> None:
    """A frame made of an array: its names are numbers, and no places of rows."""
    pandas = pytest.importorskip("pandas", reason="reads a data frame; pip install pandas")
    frame = pandas.DataFrame(np.arange(6.0).reshape(2, 3), columns=[2, 0, 7])
    table = read_table(frame)
    assert {name: values.tolist() for name, values in table.columns.items()} == {
        "2": [0.0, 3.0],
        "0": [1.0, 4.0],
        "7": [2.0, 5.0],
    }


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("name", ["a\nb", "a\r\nb", 'a "quoted" name', "a,b;c|d\te", "a\n,;|\nb", 'half " a quote'])
def test_a_quoted_name_of_a_column_is_that_of_pandas(name: str, text: bool, separator: str, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="writes the file; pip install pandas")
    values = ["x", "y\nz"] if text else [1.0, 3.0]
    pandas.DataFrame({name: values, "c": [2.0, 4.0]}).to_csv(tmp_path / "d.csv", sep=separator, index=False)
    read = read_table(tmp_path / "d.csv")
    known = pandas.read_csv(tmp_path / "d.csv", sep=separator)
    assert list(read.columns) == list(known.columns) == [name, "c"]
    assert [list(read.columns[column]) for column in read.columns] == [list(known[column]) for column in known.columns]


def test_a_quote_inside_a_name_does_not_begin_a_quoted_one(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text('5" pipe,b\n1,2\n3,4\n')
    assert {name: list(values) for name, values in read_table(tmp_path / "d.csv").columns.items()} == {
        '5" pipe': [1.0, 3.0],
        "b": [2.0, 4.0],
    }
