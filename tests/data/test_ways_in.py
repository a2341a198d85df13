"""Ordinary data in every wrapping: each type of column in each library and file gives one table, and every study one answer.

The plain table is written down here by hand: float64 with NaN, and texts with None.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import xgboost

import treesens as ts
from treesens.builtin import STUDIES
from treesens.data.columns import Column
from treesens.data.tables import read_table, table_of_array, table_of_columns
from treesens.errors import DataError, InternalError, TreesensError
from treesens.extensions.studies.registry import CALLS, study_of
from treesens.extensions.studies.study import Door, declared

SMALL = {"objective": "binary:logistic", "max_depth": 2, "eta": 1.0, "base_score": 0.5, "seed": 1, "nthread": 1}


def pl() -> Any:
    return pytest.importorskip("polars", reason="reads frames of polars; pip install polars")


COUNTS: list[Any] = [3, None, 0, -7, 2**40]
PARTS: list[Any] = [0.1, None, -2.5, 1e30, 3.0]
TRUTHS: list[Any] = [True, None, False, True, False]
WORDS: list[Any] = ["own", None, "rent", "köln, süd", "own"]
WANTED: dict[str, Column] = {
    "counts": np.array([3.0, np.nan, 0.0, -7.0, 2.0**40]),
    "parts": np.array([0.1, np.nan, -2.5, 1e30, 3.0]),
    "truths": np.array([1.0, np.nan, 0.0, 1.0, 0.0]),
    "words": np.array(WORDS, dtype=object),
}
"""The column that a table holds for each of the lists above."""
MILLIONTHS = [None if v is None else Decimal(v) for v in COUNTS]
COLUMNS: dict[str, dict[str, Callable[[], Any]]] = {
    "counts": {
        "Int64": lambda: pd.array(COUNTS, dtype="Int64"),
        "Float64": lambda: pd.array(COUNTS, dtype="Float64"),
        "float64": lambda: pd.array(COUNTS, dtype="float64"),
        "int64[pyarrow]": lambda: pd.array(COUNTS, dtype="int64[pyarrow]"),
        "object": lambda: pd.Series(COUNTS, dtype=object),
        "object with NA": lambda: pd.Series([pd.NA if v is None else v for v in COUNTS], dtype=object),
        "Decimal": lambda: pd.Series(MILLIONTHS, dtype=object),
        "convert_dtypes": lambda: pd.Series(COUNTS, dtype="float64").convert_dtypes(),
        "polars Int64": lambda: pl().Series(COUNTS, dtype=pl().Int64),
        "polars Float64": lambda: pl().Series(COUNTS, dtype=pl().Float64),
        "polars Decimal": lambda: pl().Series(MILLIONTHS, dtype=pl().Decimal(20, 2)),
        "polars Object": lambda: pl().Series(COUNTS, dtype=pl().Object),
        "arrow int64": lambda: pa.array(COUNTS, pa.int64()),
        "arrow double": lambda: pa.array(COUNTS, pa.float64()),
        "arrow decimal": lambda: pa.array(MILLIONTHS, pa.decimal128(20, 2)),
        "array": lambda: np.array(COUNTS, dtype=object),
    },
    "parts": {
        "Float64": lambda: pd.array(PARTS, dtype="Float64"),
        "double[pyarrow]": lambda: pd.array(PARTS, dtype="double[pyarrow]"),
        "object": lambda: pd.Series(PARTS, dtype=object),
        "polars Float64": lambda: pl().Series(PARTS, dtype=pl().Float64),
        "arrow double": lambda: pa.array(PARTS, pa.float64()),
        "array": lambda: np.array(PARTS, dtype=np.float64),
    },
    "truths": {
        "boolean": lambda: pd.array(TRUTHS, dtype="boolean"),
        "bool[pyarrow]": lambda: pd.array(TRUTHS, dtype="bool[pyarrow]"),
        "object": lambda: pd.Series(TRUTHS, dtype=object),
        "polars Boolean": lambda: pl().Series(TRUTHS, dtype=pl().Boolean),
        "arrow bool": lambda: pa.array(TRUTHS, pa.bool_()),
        "array": lambda: np.array(TRUTHS, dtype=object),
    },
    "words": {
        "string": lambda: pd.array(WORDS, dtype="string"),
        "str": lambda: pd.Series(WORDS, dtype="str"),
        "string[pyarrow]": lambda: pd.array(WORDS, dtype="string[pyarrow]"),
        "large_string[pyarrow]": lambda: pd.array(WORDS, dtype=pd.ArrowDtype(pa.large_string())),
        "object": lambda: pd.Series(WORDS, dtype=object),
        "object with NA": lambda: pd.Series([pd.NA if v is None else v for v in WORDS], dtype=object),
        "category": lambda: pd.Series(WORDS, dtype="category"),
        "polars String": lambda: pl().Series(WORDS, dtype=pl().String),
        "polars Categorical": lambda: pl().Series(WORDS, dtype=pl().Categorical),
        "polars Enum": lambda: pl().Series(WORDS, dtype=pl().Enum(["own", "rent", "köln, süd"])),
        "arrow string": lambda: pa.array(WORDS, pa.string()),
        "arrow dictionary": lambda: pa.array(WORDS, pa.string()).dictionary_encode(),
        "array": lambda: np.array(WORDS, dtype=object),
    },
}


def sources(made: Any, folder: Path) -> Iterator[Any]:
    """The frame of a column `c`, and a Parquet file of it where its library writes one."""
    path = folder / "c.parquet"
    if type(made).__module__.startswith("polars"):
        frame = pl().DataFrame({"c": made})
        yield frame
        if made.dtype != pl().Object:
            frame.write_parquet(path)
            yield path
            yield frame.to_arrow()
    elif isinstance(made, pa.Array | pa.ChunkedArray):
        frame = pa.table({"c": made})
        yield frame
        pyarrow.parquet.write_table(frame, path)
        yield path
    else:
        frame = pd.DataFrame({"c": made})
        yield frame
        yield frame.set_index(pd.Index([5, 5, 1, 0, 9]))
        frame.to_parquet(path)
        yield path


def same(one: Column, other: Column) -> bool:
    return one.dtype == other.dtype and all(a == b or (a != a and b != b) for a, b in zip(one, other, strict=True))  # noqa: PLR0124 - NaN


@pytest.mark.parametrize(
    ("kind", "wrapping"), [(kind, wrapping) for kind, made in COLUMNS.items() for wrapping in made]
)
def test_a_column_is_the_same_in_every_wrapping(kind: str, wrapping: str, tmp_path: Path) -> None:
    made = COLUMNS[kind][wrapping]()
    if isinstance(made, np.ndarray):
        model = ts.load(booster_of_one_feature(tmp_path))
        assert same(table_of_array(made[:, None], [model], None).columns["c"], WANTED[kind])
        return
    for source in sources(made, tmp_path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of polars about the order of categories
            read = read_table(source)
        assert same(read.columns["c"], WANTED[kind]), type(source)


def booster_of_one_feature(folder: Path) -> Path:
    x = np.array([[0.0], [1.0], [2.0], [3.0]])
    data = xgboost.DMatrix(x, [0, 0, 1, 1], feature_names=["c"])
    xgboost.train(SMALL, data, 1).save_model(folder / "c.json")
    return folder / "c.json"


def test_fields_of_a_file_are_the_same_columns(tmp_path: Path) -> None:
    for mark in ("", "NA", "#N/A", "NaN", "null"):
        lines = [",".join(f'"{v}"' if isinstance(v, str) else mark if v is None else str(v) for v in row) for row in
                 zip(COUNTS, PARTS, TRUTHS, WORDS, strict=True)]  # fmt: skip
        (tmp_path / "t.csv").write_text("\n".join(["counts,parts,truths,words", *lines]) + "\n")
        for kind, column in read_table(tmp_path / "t.csv").columns.items():
            assert same(column, WANTED[kind]), (mark, kind)


@pytest.mark.parametrize("value", [10**400, Decimal("1e999"), float("inf"), np.float64("inf")])
def test_numbers_past_every_float_are_infinite(value: Any) -> None:
    """They are refused with a clear error when the column is read for a model."""
    column = read_table(pd.DataFrame({"c": pd.Series([1, value, pd.NA], dtype=object)})).columns["c"]
    assert same(column, np.array([1.0, np.inf, np.nan]))


def test_times_are_texts_and_missing_ones_are_missing() -> None:
    day = datetime.datetime(2024, 5, 1)
    for frame in (
        lambda: pd.DataFrame({"c": pd.Series([day, pd.NaT])}),
        lambda: pa.table({"c": [day, None]}),
        lambda: pl().DataFrame({"c": [day, None]}),
    ):
        column = read_table(frame()).columns["c"]
        assert column[0].startswith("2024-05-01")
        assert column[1] is None


def test_only_missing_values_are_numbers_of_no_value(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("c,d\n,1\n,2\n")
    for source in (
        lambda: pd.DataFrame({"c": [pd.NA, None]}),
        lambda: tmp_path / "t.csv",
        lambda: pl().DataFrame({"c": [None, None]}),
    ):
        assert same(read_table(source()).columns["c"], np.array([np.nan, np.nan]))


# Studies: one model of whole numbers, fractions and truths that knows where to send missing values.

ROWS = 40
MODELS = ("m.json", "n.json")
NEEDED: dict[str, dict[str, Any]] = {
    "audit": {"vary": "age", "gap": 0.02, "jobs": 1},
    "count": {"vary": "age", "gap": 0.02},
    "diff": {"set_limit": 2},
    "groups": {"by": ["owner"]},
    "reasons": {"rows": [0, 1, 2]},
    "repair": {"vary": "age", "gap": 0.02, "method": "average"},
    "robust": {"rows": [0, 1]},
    "sets": {"gap": 0.02, "features": ["age", "owner"]},
    "shape": {"features": ["age"]},
    "why": {"rows": [0, 1]},
}
"""Options that a study requires, or is slow without; a new study runs with its rows alone."""
TEXT = """model m from "m"
data d from "d" label "y"
domain from d
query pair: sensitive m to age gap 0.02
query likely: find a such that class(a) = 1 maximize likelihood(a, d)
query near: find a such that class(a) = 1 minimize distance(a, row 1 of d, l1)
query rows: count rows of d as a such that prob(a) >= 0.5
"""


def plain_columns() -> dict[str, Column]:
    random = np.random.default_rng(3)
    age = random.integers(18, 40, ROWS).astype(float)
    owner = random.integers(0, 2, ROWS).astype(float)
    debt = random.integers(0, 100, ROWS) / 4
    label = (age / 10 + 2 * owner - debt / 10 > 2).astype(float)
    age[[4, 9]], owner[[4, 11]], debt[7] = np.nan, np.nan, np.nan
    return {"age": age, "owner": owner, "debt": debt, "y": label}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("ways")
    columns = plain_columns()
    x = np.stack([columns[name] for name in ("age", "owner", "debt")], axis=1)
    for seed, name in enumerate(MODELS):
        data = xgboost.DMatrix(x, columns["y"], feature_names=["age", "owner", "debt"])
        xgboost.train({**SMALL, "max_depth": 2 + seed}, data, 3).save_model(place / name)
    return place


WAYS = ("nullable", "pyarrow-backed", "object", "arrow", "parquet", "csv", "polars")


def wrapped(columns: dict[str, Column], way: str, folder: Path) -> Any:
    """The plain table in another wrapping: whole numbers and truths as such, missing values as its library has them."""

    def values(name: str, kind: Callable[[float], Any]) -> list[Any]:
        return [None if np.isnan(v) else v if np.isinf(v) else kind(v) for v in columns[name]]

    whole = "Int64" if np.isfinite(columns["age"][~np.isnan(columns["age"])]).all() else "Float64"
    made = {"age": values("age", int), "owner": values("owner", bool), "debt": values("debt", float)}
    made["y"] = [int(v) for v in columns["y"]]
    if way in ("nullable", "pyarrow-backed"):
        kinds = {"age": whole, "owner": "boolean", "debt": "Float64", "y": "Int64"}
        frame = pd.DataFrame({name: pd.array(made[name], dtype=kinds[name]) for name in made})
        return frame if way == "nullable" else frame.convert_dtypes(dtype_backend="pyarrow")
    if way == "object":
        return pd.DataFrame(
            {name: pd.Series([pd.NA if v is None else v for v in made[name]], dtype=object) for name in made}
        )
    if way == "polars":
        kind = pl().Int64 if whole == "Int64" else pl().Float64
        return pl().DataFrame(made, schema={"age": kind, "owner": pl().Boolean, "debt": pl().Float64, "y": pl().Int8})
    arrow = pa.table(made)
    if way == "parquet":
        pyarrow.parquet.write_table(arrow, folder / "rows.parquet")
        return folder / "rows.parquet"
    if way == "csv":
        lines = [",".join("" if v is None else str(v) for v in row) for row in zip(*made.values(), strict=True)]
        (folder / "rows.csv").write_text("\n".join([",".join(made), *lines]) + "\n")
        return folder / "rows.csv"
    return arrow


def ask(study: str, source: Any, folder: Path) -> Any:
    """The results of a study, or of a text of questions, on rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if study == "check_text":
            answers = ts.check_text(TEXT, models={"m": folder / "m.json"}, data={"d": source}, time_limit=20)
            return [answer.to_dict() for answer in answers.values()]
        declaration = study_of(study)
        known = {one.field for one in declared(declaration.options, Door.PYTHON)}
        given = {"time_limit": 20, "threads": 1, "label": "y", "favourable": "1", **NEEDED.get(study, {})}
        if study == "repair":
            given |= {"out": folder / "repaired.json"}
        given = {name: value for name, value in given.items() if name in {*known, "label"}}
        call = getattr(ts, next((name for name, mine in CALLS.items() if mine == study), study))
        found = call(*(folder / name for name in MODELS[: len(declaration.models)]), source, **given)
        return getattr(found, "records", None) or str(found)


VOLATILE = ("seconds", "reason", "attempts", "file", "sha256", "data", "sources")


def settled(value: Any) -> Any:
    """Without times, the search that was the first to end, and the names of files."""
    if isinstance(value, dict):
        return {k: settled(v) for k, v in value.items() if k not in VOLATILE}
    return [settled(v) for v in value] if isinstance(value, list | tuple) else repr(value)


CALLED = [name for name in STUDIES.names() if study_of(name).call is not None and study_of(name).table is not None]
ASKED = [*CALLED, "check_text"]


@pytest.mark.parametrize("study", ASKED)
def test_every_study_says_the_same(study: str, folder: Path) -> None:
    plain = settled(ask(study, table_of_columns(plain_columns(), "rows", "y"), folder))
    for way in WAYS:
        assert settled(ask(study, wrapped(plain_columns(), way, folder), folder)) == plain, way
    if study == "audit":
        assert any(record["rows_flipped"] != "0" for record in plain), "the rows matter"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("study", ASKED)
def test_infinite_values_are_refused_in_words(study: str, way: str, folder: Path) -> None:
    """1e300 is infinite to XGBoost, which reads float32. Rules are about the table alone, and leave such columns out."""
    columns = plain_columns()
    columns["debt"][2] = {"polars": np.inf, "csv": -np.inf}.get(way, 1e300 if len(study) % 2 else np.inf)
    if study == "learn":
        assert "debt" in ask(study, wrapped(columns, way, folder), folder)
        return
    with pytest.raises(TreesensError, match="column `debt` contains infinite values") as caught:
        ask(study, wrapped(columns, way, folder), folder)
    assert not isinstance(caught.value, InternalError)
    assert isinstance(caught.value, DataError) or study == "check_text"
    assert "row 2" in str(caught.value)
