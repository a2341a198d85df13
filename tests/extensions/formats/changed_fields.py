"""Files with one changed field, each read by the library, our reader and the checker of certificates.

Every leaf of a document is changed by values of its own kind (a list at its first and last place), every list is cut,
doubled and turned, and every field is left out. The library is the judge: whatever our reader reads has the library's margins,
classes and probabilities, and so has whatever the checker reads. A file that one of them refuses is not misread by it. A
library may end its process on a damaged file, so all of this runs in a worker.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import copy
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from shutil import which
from typing import Any
from xml.etree import ElementTree

import numpy as np
from google.protobuf import json_format
from google.protobuf.json_format import ParseError

from tests.extensions.formats.java import in_java
from treesens.compiler.model import Ensemble
from treesens.compiler.model.evaluate import Predicted
from treesens.compiler.model.numbers import closed_over
from treesens.compiler.query.predicted_classes import sure_classes
from treesens.errors import ModelError
from treesens.extensions import treesens_verify as checker
from treesens.extensions.conformance.probes import probes
from treesens.extensions.formats.catboost.known import TABLE as CATBOOST
from treesens.extensions.formats.interpret.known import TABLE as INTERPRET
from treesens.extensions.formats.onnx.known import TABLE as ONNX
from treesens.frontends import load
from treesens.frontends.documents import Meaning, Table
from treesens.frontends.lightgbm.known import TABLE as LIGHTGBM
from treesens.frontends.registry import UnforeseenError
from treesens.frontends.xgboost.known import LINEAR_TABLE as XGBOOST_LINEAR
from treesens.frontends.xgboost.known import TABLE as XGBOOST

ROWS = 100
LIST = "list<element: "
DATA = Path(__file__).parents[2] / "data"
NUMBERS = np.array([-7.0, -1.0, 0.0, 1.0, 3.0, 40.0])
Way = tuple[str | int, ...]
Margins = Callable[[bytes, np.ndarray], np.ndarray | None]
"""The library's margins for the bytes of a file; None if it does not take the file or the rows."""
Change = tuple[Way, str, Any]
"""The place of a change, its description, and the new value; ABSENT leaves the field out."""
ABSENT = object()


@dataclass
class Tally:
    """Outcomes of the changed files; `wrong` names each that was misread."""

    equal: int = 0
    refused: int = 0
    by_library: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def changes(document: Any, words: Sequence[str] = (), way: Way = ()) -> Iterator[Change]:
    """Every change of a document, from the outside in; `words` are texts that may take the place of another text."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield (*way, key), "left out", ABSENT
            yield from changes(value, words, (*way, key))
    elif isinstance(document, list):
        if document:
            yield way, "without its last", document[:-1]
            yield way, "its last twice", [*document, copy.deepcopy(document[-1])]
            yield way, "empty", []
        if len(document) > 1 and document[0] != document[-1]:
            yield way, "turned", document[::-1]
            yield way, "ends swapped", [document[-1], *document[1:-1], document[0]]
        for i in sorted({0, len(document) - 1}) if document else ():
            yield from changes(document[i], words, (*way, i))
    else:
        for value in _others(document, words):
            yield way, f"{document!r} is {value!r}", value


def _others(value: Any, words: Sequence[str]) -> Iterable[Any]:
    """Other values of the same kind, and some of another."""
    match value:
        case bool():
            return [not value, None]
        case int():
            return [x for x in (value + 1, value - 1, 0, 1, 2, -value, 1000, value + 0.5) if x is not value]
        case float():
            others = [value + 1, -value, 0.0, np.nextafter(value, np.inf).item(), 1e30]
            return [*others, int(value)] if np.isfinite(value) else others
        case str():
            bare = value.strip("[]")
            try:
                number = float(bare)
            except ValueError:
                return ["", f"{value}x", None, *(word for word in words if word != value)]
            whole = int(number) if number.is_integer() and "." not in bare and "E" not in bare.upper() else number
            made = [x for x in (whole + 1, whole - 1, 0, 1, 2, -whole, 1000) if x != number]
            return ["", *(value.replace(bare, str(x)) for x in made)]
        case _:
            return [0, "", []]


def changed(document: Any, change: Change) -> Any:
    """A copy of the document with that change."""
    way, _, value = change
    made = copy.deepcopy(document)
    if not way:
        return value
    at = made
    for key in way[:-1]:
        at = at[key]
    if value is ABSENT:
        del at[way[-1]]
    else:
        at[way[-1]] = value
    return made


def _closed(ensemble: Ensemble) -> Ensemble:
    """The ensemble, its features that have a coefficient over these numbers alone."""
    return closed_over(ensemble, dict.fromkeys(ensemble.open_features, NUMBERS))


@cache
def _rows(path: str) -> np.ndarray:
    """Rows on and next to the cuts of the unchanged file."""
    ensemble = load(path).ensemble
    rows = np.concatenate([probe.rows for probe in probes(_closed(ensemble), ROWS, 0)])
    for name in ensemble.open_features:
        f = ensemble.feature_names.index(name)
        drawn = np.random.default_rng(f).choice(NUMBERS, len(rows))
        rows[:, f] = np.where(np.isnan(rows[:, f]), np.nan, drawn)
    for f, feature in enumerate(ensemble.features):
        if feature.categories:  # codes alone, which certificates are about
            rows[:, f] = np.floor(np.abs(np.nan_to_num(rows[:, f], posinf=0, neginf=0))) % (feature.categories + 2)
    rows = rows[~np.isinf(rows).any(axis=1)]
    return np.asarray(rows[np.linspace(0, len(rows) - 1, min(ROWS, len(rows))).astype(int)])


def judge(path: str, right: str, margins: Margins | None) -> tuple[str, str]:
    """`equal`, `refused`, `library` or `wrong`, and the error in words; `right` is the unchanged file.

    `margins` are the library's for the bytes of a file that the checker reads; None if it reads no such files.
    """
    try:
        loaded = load(path)
    except UnforeseenError as error:
        return "wrong", f"damage that no check has found: {error}"
    except ModelError:
        loaded = None
    if margins is not None and (words := _by_checker(path, right, margins)):
        return "wrong", words
    if loaded is None:
        return "refused", ""
    rows = _rows(right)
    if rows.shape[1] != loaded.ensemble.n_features:
        rows = np.resize(rows, (len(rows), loaded.ensemble.n_features))
    rows = _taken(loaded.ensemble, rows)
    try:
        library = in_java(loaded)
        theirs = np.asarray(library.margins(rows))
        said = library.predicts(rows) if library.predicts is not None else None
    except Exception as error:  # noqa: BLE001 - a library raises whatever it likes
        return "library", f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"
    words = _differ(_closed(loaded.ensemble), rows, theirs, said)
    return ("wrong", words) if words else ("equal", "")


def _taken(e: Ensemble, rows: np.ndarray) -> np.ndarray:
    """The rows, with a known value wherever the library takes no other."""
    made = rows.copy()
    for f, feature in enumerate(e.features):
        if feature.needs_value:
            known = np.nan_to_num(made[:, f])
            made[:, f] = known % feature.categories if feature.categories else known
    return made


def _differ(e: Ensemble, rows: np.ndarray, theirs: np.ndarray, said: Predicted | None) -> str:
    """The difference, in words, between the predictions of our reader and of the library."""
    ours = np.asarray(e.margins_emulated(rows)).reshape(len(rows), -1)
    if theirs.shape != ours.shape:
        return f"margins of shape {ours.shape}, the library's have {theirs.shape}"
    near = np.array([2 * float(band) if e.accumulation.any_order else 0.0 for band in e.bands()])
    with np.errstate(invalid="ignore"):
        bad = ~((np.abs(theirs.astype(float) - ours) <= near) | (theirs == ours))
    if bad.any():
        row = int(np.argwhere(bad)[0][0])
        return f"margin {ours[row]}, the library's {theirs[row]}, at {rows[row].tolist()}"
    if said is not None and said.probabilities is not None:
        mine = np.asarray(e.probabilities(theirs), float)
        if mine.shape != said.probabilities.shape or not np.allclose(mine, said.probabilities, 1e-5, 1e-7):
            return f"predictions {mine[0]}, the library's {said.probabilities[0]}"
    if said is not None and said.classes is not None:
        sure = sure_classes(e, theirs.astype(np.float64))
        if len(said.classes) != len(sure):
            return f"{len(sure)} classes, the library's are {len(said.classes)}"
        differ = [i for i, c in enumerate(sure) if c is not None and c != said.classes[i]]
        if differ:
            return f"class {sure[differ[0]]}, the library's {said.classes[differ[0]]}"
    return ""


def _by_checker(path: str, right: str, margins: Margins) -> str:
    """The checker's misreading, in words."""
    data, truth = Path(path).read_bytes(), load(right).ensemble
    bases = [truth.base]
    with contextlib.suppress(ModelError):
        bases.append(load(path).ensemble.base)
    rows = _rows(right)
    for base in bases:
        stated = {"format": "xgboost-json", "trees": truth.n_trees, "base": [str(Fraction(b)) for b in base.tolist()]}
        try:
            model = checker.models.read_model(data, stated)
        except Exception:  # noqa: BLE001 - the command calls every exception a rejection
            continue
        if model.total != truth.n_trees:
            continue  # a certificate about some of the trees, which says so
        fitting = np.resize(rows, (len(rows), len(model.features)))
        split_by_sets = sorted(model.categories)  # codes alone here, too
        fitting[:, split_by_sets] = np.floor(np.abs(np.nan_to_num(fitting[:, split_by_sets])))
        ours = np.array([_margin(model, row) for row in fitting])
        theirs = margins(data, fitting)
        if theirs is None:
            continue
        if ours.shape != theirs.shape or (np.abs(ours - theirs) > 1e-4 * (1 + np.abs(theirs))).any():
            return f"the checker reads other margins: {ours[0]}, the library {theirs[0]}"
    return ""


def _margin(model: Any, row: np.ndarray) -> list[float]:
    total = [float(b) for b in model.base]
    for tree, outputs in zip(model.trees, model.outputs, strict=True):
        node = tree.nodes[0]
        while len(node) > 1:
            feature, test, missing, left, right = node
            x = np.float32(row[feature])
            goes = missing if np.isnan(x) else (int(x) in test if isinstance(test, frozenset) else bool(x < test))
            node = tree.nodes[left if goes else right]
        for output, value in zip(outputs, node[0], strict=True):
            total[output] += float(value)
    return total


@cache
def _context() -> Any:
    """Processes that begin with everything imported, and before any library has started threads."""
    context = get_context("forkserver")
    context.set_forkserver_preload(
        ["tests.extensions.formats.changed_fields", "xgboost", "lightgbm", "catboost", "pandas"]
    )
    return context


class Judges:
    """A worker that judges files; a new one if a library has ended it."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Judges:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def judge(self, path: Path, right: Path, margins: Any) -> tuple[str, str]:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(1, mp_context=_context())
        try:
            return self._pool.submit(judge, str(path), str(right), margins).result()
        except BrokenProcessPool:
            self._pool = None
            return "library", "ends its process"


@dataclass(frozen=True)
class Format:
    """A small model as a document, how a document becomes a file, and texts that replace others in it."""

    make: Callable[[], Any]
    write: Callable[[Any], bytes]
    suffix: str
    words: tuple[str, ...] = ()
    margins: Margins | None = None
    """The library's margins for files that the checker reads, too."""
    table: Table = field(default_factory=dict)
    kinds: Mapping[Way, str] = field(default_factory=lambda: {(): "model"})
    """Where the objects of the table are, and of which kind; those inside them follow from the table."""
    needs: tuple[str, ...] = ()
    """The packages and programs without which there is no judge, if not everybody has them."""
    few: int = 0
    """So many changes of each place are drawn, the first one among them, because a judge takes a second for a file; 0: all."""

    @property
    def lacks(self) -> str:
        """What is needed and not there; empty if nothing is."""
        return ", ".join(name for name in self.needs if find_spec(name) is None and which(name) is None)

    def changes(self, document: Any) -> Iterator[Change]:
        """The changes of the document that are judged."""
        found: dict[Way, list[Change]] = {}
        for change in changes(document, self.words):
            found.setdefault(change[0], []).append(change)
        rng = np.random.default_rng(0)
        for first, *others in found.values():
            yield first
            yield from (others[i] for i in rng.permutation(len(others))[: self.few - 1]) if self.few else others

    def used_fields(self, document: Any) -> Iterator[tuple[Way, Meaning]]:
        """The place of the first field of each name and kind that the table says is used."""
        seen: set[tuple[str, str]] = set()
        todo = [(way, kind) for way, kind in self.kinds.items() if self.table]
        while todo:
            way, kind = todo.pop(0)
            value = document
            for key in way:
                value = value[key]
            if isinstance(value, list):
                todo += [((*way, i), kind) for i in range(len(value))]
                continue
            for name in value if isinstance(value, dict) else ():
                meaning = self.table[kind].get(name)
                if meaning is None or meaning.what != "used":
                    continue
                if meaning.kind is not None:
                    todo.append(((*way, name), meaning.kind))
                if (kind, name) not in seen:
                    seen.add((kind, name))
                    yield (*way, name), meaning


def judge_all(form: Format, folder: Path, judges: Judges, part: tuple[int, int] = (0, 1)) -> Tally:
    """Judges every change of the document, or those of one of several parts."""
    tally, document = Tally(), form.make()
    right, path = folder / f"right.{form.suffix}", folder / f"changed.{form.suffix}"
    right.write_bytes(form.write(document))
    assert judges.judge(right, right, form.margins) == ("equal", "")
    for change in list(form.changes(document))[part[0] :: part[1]]:
        try:
            path.write_bytes(form.write(changed(document, change)))
        except (AttributeError, LookupError, NotImplementedError, TypeError, ValueError, ParseError):
            continue  # no file of this format has such a value
        what, why = judges.judge(path, right, form.margins)
        line = f"{'.'.join(map(str, change[0]))} {change[1][:80]}: {why}"
        match what:
            case "equal":
                tally.equal += 1
            case "refused":
                tally.refused += 1
            case "library":
                tally.by_library.append(line)
            case _:
                tally.wrong.append(line)
    return tally


def xgboost_margins(data: bytes, rows: np.ndarray) -> np.ndarray | None:
    """XGBoost's margins for a file."""
    import xgboost

    booster = xgboost.Booster()
    try:
        booster.load_model(bytearray(data))
        matrix = xgboost.DMatrix(rows, feature_types=booster.feature_types, nthread=1)
        found = booster.predict(matrix, output_margin=True, strict_shape=True, validate_features=False)
    except (xgboost.core.XGBoostError, ValueError):
        return None
    return np.asarray(found).reshape(len(rows), -1)


def _as_json(document: Any) -> bytes:
    return json.dumps(document).encode()


def _xgboost(label: str = "value", *, rounds: int = 2, all_kinds: bool = False, **options: Any) -> Format:
    def make() -> Any:
        from tests.frontends import trained

        y = trained.target()
        labels = {"value": y, "two": (y > 1).astype(int), "three": np.digitize(y, [0, 1])}[label]
        rows = trained.frame() if all_kinds else trained.numeric()
        return json.loads(bytes(trained.train({"max_depth": 2, **options}, labels, rows, rounds).save_raw("json")))

    words = ("binary:logistic", "count:poisson", "multi:softmax", "gbtree", "dart", "gblinear", "c", "int")
    margins = None if options.get("booster") == "gblinear" else xgboost_margins
    table = XGBOOST_LINEAR if options.get("booster") == "gblinear" else XGBOOST
    return Format(make, _as_json, "json", words, margins, table)


def _lightgbm(label: str, *, all_kinds: bool = False, **options: Any) -> Format:
    """Lines as objects, one for the header and one for each tree; the sizes of trees, which are bytes, are left out."""

    def make() -> Any:
        from tests.frontends import trained, trained_lightgbm

        y = trained.target()
        labels = {"value": y, "two": (y > 1).astype(int), "three": np.digitize(y, [0, 1])}[label]
        rows = trained.frame() if all_kinds else trained_lightgbm.numeric()
        text = trained_lightgbm.train({"num_leaves": 4, **options}, labels, rows, 2).model_to_string()
        blocks: list[dict[str, Any]] = [{}]
        for line in text.partition("\nend of trees")[0].splitlines():
            key, equals, value = line.partition("=")
            if key == "Tree":
                blocks.append({})
            if line and key != "tree_sizes":
                blocks[-1][key] = value.split(" ") if equals else None
        return blocks

    words = ("binary", "poisson", "regression", "binary sigmoid:2", "none")
    kinds: dict[Way, str] = {(0,): "header", **{(i,): "tree" for i in range(1, 3)}}
    return Format(make, _as_lines, "txt", words, None, LIGHTGBM, kinds)


def _as_lines(blocks: Any) -> bytes:
    def line(key: str, value: Any) -> str:
        if value is None:
            return key
        return f"{key}={' '.join(map(str, value)) if isinstance(value, list) else value}"

    texts = ["\n".join(line(key, value) for key, value in block.items()) for block in blocks]
    return (
        "\n\n".join(texts) + "\n\nend of trees\n\nparameters:\nend of parameters\n\npandas_categorical:null\n"
    ).encode()


def _catboost(kind: str, label: str, **options: Any) -> Format:
    def make() -> Any:
        from tests.extensions.formats import trained_catboost

        with tempfile.TemporaryDirectory() as folder:
            made = trained_catboost.fitted(kind, label, iterations=2, depth=2, **options)
            made.save_model(f"{folder}/m.json", format="json")
            return json.loads(Path(folder, "m.json").read_text())

    words = ("AsIs", "AsFalse", "AsTrue", "Logloss", "Poisson", "FloatFeature")
    return Format(make, _as_json, "json", words, None, CATBOOST)


def _onnx(label: str) -> Format:
    def make() -> Any:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        from tests.extensions.formats import trained_onnx

        kind = RandomForestRegressor if label == "value" else RandomForestClassifier
        model = trained_onnx.converted(kind(n_estimators=2, max_depth=2, random_state=1), label)
        made = json_format.MessageToDict(model)
        for node in made["graph"]["node"]:  # by name, so that every attribute is changed, and left out
            node["attribute"] = {a["name"]: a for a in node.get("attribute", ())}
        return made

    def write(document: Any) -> bytes:
        import onnx

        graph = document.get("graph", {})
        if "node" in graph:
            nodes = [{**node, "attribute": list(node.get("attribute", {}).values())} for node in graph["node"]]
            document = {**document, "graph": {**graph, "node": nodes}}
        return bytes(json_format.ParseDict(document, onnx.ModelProto()).SerializeToString())

    texts = (b"BRANCH_LT", b"BRANCH_GTE", b"LEAF", b"LOGISTIC", b"SOFTMAX", b"NONE", b"AVERAGE", b"MIN")
    words = tuple(base64.b64encode(text).decode() for text in texts)
    operator = "TreeEnsembleRegressor" if label == "value" else "TreeEnsembleClassifier"
    return Format(make, write, "onnx", words, None, ONNX, {("graph", "node", 0, "attribute"): operator})


def _interpret() -> Format:
    def make() -> Any:
        from tests.extensions.formats import trained_interpret

        name = next(iter(trained_interpret.MODELS))
        with tempfile.TemporaryDirectory() as folder:
            trained_interpret.MODELS[name]().to_json(f"{folder}/m.json")
            return json.loads(Path(folder, "m.json").read_text())

    return Format(make, _as_json, "json", ("identity", "logit", "continuous", "nominal"), None, INTERPRET)


def _treelite(name: str) -> Format:
    """The fields of the header and of every tree, which its accessors write into a checkpoint that is right."""
    header = "task_type average_tree_output num_target num_class leaf_vector_shape target_id class_id postprocessor"
    header += " sigmoid_alpha ratio_c base_scores num_feature"
    tree = "node_type cleft cright split_index default_left leaf_value threshold cmp category_list_right_child"
    tree += " leaf_vector leaf_vector_begin leaf_vector_end category_list category_list_begin category_list_end"

    @cache
    def right() -> bytes:
        from tests.extensions.formats import trained_treelite

        return bytes(trained_treelite.MODELS[name]().serialize_bytes())

    def parts(model: Any) -> list[tuple[Any, list[str]]]:
        trees = [(model.get_tree_accessor(i), tree.split()) for i in range(min(2, model.num_tree))]
        return [(model.get_header_accessor(), header.split()), *trees]

    def make() -> Any:
        import treelite

        model = treelite.Model.deserialize_bytes(right())  # which owns the memory of its fields
        found = [{key: at.get_field(key) for key in keys} for at, keys in parts(model)]
        return [{key: x if isinstance(x, str) else x.tolist() for key, x in part.items()} for part in found]

    def write(document: Any) -> bytes:
        import treelite

        model = treelite.Model.deserialize_bytes(right())
        for given, (at, keys) in zip(document, parts(model), strict=True):
            for key in keys:
                if key not in given:
                    raise ValueError("a checkpoint has every field")
                kind = at.get_field(key)
                value = given[key]
                if not isinstance(kind, str):
                    value = np.array(value)
                    if value.ndim != 1 or (value.astype(kind.dtype) != value).any():
                        raise ValueError("a field has one type")
                    value = value.astype(kind.dtype)
                try:
                    at.set_field(key, value)
                except treelite.TreeliteError as error:
                    raise ValueError(str(error)) from None
        return bytes(model.serialize_bytes())

    return Format(make, write, "tl", ("identity", "sigmoid", "softmax", "exponential", "hinge", "multiclass_ova"))


def _skops(kind: str, label: str, **options: Any) -> Format:
    """The numbers, texts and arrays of an archive by their places in its `schema.json`; a structured array is its columns."""

    @cache
    def right() -> bytes:
        from sklearn import ensemble
        from skops import io as skops_io

        from tests.frontends import trained_sklearn

        estimator = getattr(ensemble, kind)(random_state=1, **options)
        return bytes(skops_io.dumps(trained_sklearn.fitted(estimator, label)))

    def parts() -> tuple[dict[str, bytes], Any, dict[str, tuple[Any, str | int]]]:
        """The files of the archive, its schema, and where in it each place is."""
        files = _unzipped(io.BytesIO(right()))
        schema, found = json.loads(files["schema.json"]), {}
        todo: list[tuple[str, Any]] = [("", schema)]
        while todo:
            place, at = todo.pop()
            for key, value in at.items() if isinstance(at, dict) else enumerate(at):
                inner = f"{place}/{key}".replace("/content", "")
                if key in ("_sklearn_version", "verbose"):
                    continue  # they are written to standard error, once for each file
                if isinstance(value, dict) and value.get("__loader__") in ("JsonNode", "NdArrayNode"):
                    if value["__loader__"] == "JsonNode" or value["type"] == "numpy":
                        found[inner] = at, key
                elif isinstance(value, dict | list):
                    todo.append((inner, value))
        return files, schema, found

    @cache
    def values() -> dict[str, Any]:
        files, _, found = parts()
        made: dict[str, Any] = {}
        for place, (at, key) in found.items():
            node = at[key]
            if node["__loader__"] == "JsonNode":
                made[place] = json.loads(node["content"])
                continue
            array = np.load(io.BytesIO(files[node["file"]]))
            made[place] = {n: array[n].tolist() for n in array.dtype.names} if array.dtype.names else array.tolist()
        return made

    def write(document: Any) -> bytes:
        files, schema, found = parts()
        was = values()
        for number, (place, (at, key)) in enumerate(found.items()):
            if place in document and document[place] == was[place]:
                continue
            if place not in document:
                if not isinstance(key, str):
                    raise ValueError("a place in a list")
                del at[key]
                continue
            node = at[key] = {**at[key], "__id__": number}  # its own: what has the number of another is that other one
            if node["__loader__"] == "JsonNode":
                node["content"] = json.dumps(document[place])
                continue
            kind = np.load(io.BytesIO(files[node["file"]])).dtype
            node["file"] = f"changed_{number}.npy"
            stream = io.BytesIO()
            np.save(stream, _array(document[place], kind))
            files[node["file"]] = stream.getvalue()
        return _zipped({**files, "schema.json": json.dumps(schema)})

    return Format(values, write, "skops", ("entropy", "log_loss", "squared_error", "SAMME", "raw", "int"))


def _array(value: Any, kind: np.dtype[Any]) -> np.ndarray:
    """The array of that type; ValueError if a number of the value is none of the type."""
    if kind.names is None:
        made = np.array(value)
        with np.errstate(all="ignore"):
            if made.dtype.kind in "OUS" or not np.array_equal(made.astype(kind), made, equal_nan=True):
                raise ValueError("an array has one type")
        return made.astype(kind)
    if list(value) != list(kind.names):
        raise ValueError("an array has all its columns")
    columns = [_array(value[name], kind[name]) for name in kind.names]
    made = np.zeros(len(columns[0]), kind)
    for name, column in zip(kind.names, columns, strict=True):
        made[name] = column
    return made


def _pmml(name: str) -> Format:
    """A file of the repository; JPMML-Evaluator is the judge."""

    def element(at: ElementTree.Element) -> Any:
        inside = [element(child) for child in at]
        return {"tag": at.tag, "attributes": dict(at.attrib), "inside": inside, "text": at.text or ""}

    def make() -> Any:
        path = DATA / "pmml" / f"{name}.pmml"
        return element(ElementTree.fromstring(path.read_text(encoding="utf-8")))

    def made(given: Any) -> ElementTree.Element:
        at = ElementTree.Element(given["tag"], given["attributes"])
        at.text = given["text"]
        at.extend([made(child) for child in given["inside"]])
        return at

    def write(document: Any) -> bytes:
        return ElementTree.tostring(made(document))

    words = ("lessThan", "greaterOrEqual", "isMissing", "none", "defaultChild", "lastPrediction", "nullPrediction")
    words += (
        "returnLastPrediction",
        "asIs",
        "asMissing",
        "double",
        "float",
        "integer",
        "sum",
        "average",
        "softmax",
        "logit",
    )
    return Format(make, write, "pmml", words, needs=("jpmml_evaluator",))


def _unzipped(file: Any) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _zipped(files: Mapping[str, bytes | str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _spark(name: str) -> Format:
    """A folder of the repository: the metadata of the model and of its trees, and every table as its columns and rows."""

    def make() -> Any:
        import pyarrow as pa
        from pyarrow import parquet

        def columns(kind: Any) -> Any:
            """The types of a structure by name, and the text of every other type."""
            if isinstance(kind, pa.StructType):
                return {part.name: columns(part.type) for part in kind}
            return str(kind).replace(" not null", "")

        def parsed(value: Any) -> Any:
            """A value of a table, or the metadata of a tree, which are a text."""
            return json.loads(value) if isinstance(value, str) and value.startswith("{") else value

        made: dict[str, Any] = {}
        for file, data in _unzipped(DATA / "spark" / f"{name}.zip").items():
            if file.endswith(".parquet"):
                table = parquet.read_table(io.BytesIO(data))
                rows = [{key: parsed(value) for key, value in row.items()} for row in table.to_pylist()]
                made[file] = {"columns": columns(pa.struct(list(table.schema))), "rows": rows}
            elif data:
                made[file] = json.loads(data)
        return made

    def write(document: Any) -> bytes:
        import pyarrow as pa

        from tests.extensions.formats.spark_files import parquet_of

        def typed(kind: Any) -> Any:
            if isinstance(kind, dict):
                return pa.struct([(key, typed(inner)) for key, inner in kind.items()])
            if kind.startswith(LIST):
                return pa.list_(pa.field("element", typed(kind[len(LIST) : -1])))
            return pa.type_for_alias(kind)

        files: dict[str, bytes | str] = {}
        for file, given in document.items():
            files[file] = json.dumps(given)
            if file.endswith(".parquet"):
                kinds = typed(given["columns"])
                texts = [part.name for part in kinds if part.type == pa.string()]
                rows = [
                    {k: json.dumps(x) if k in texts and isinstance(x, dict) else x for k, x in row.items()}
                    for row in given["rows"]
                ]
                files[file] = parquet_of(rows, pa.schema(list(kinds)))
        return _zipped(files)

    words = ("double", "int32", "int64", "string", "gini", "variance", "error", "keep", "2.4.8", "4.3.0")
    return Format(make, write, "zip", words, few=3, needs=("pyspark", "pyarrow", "java"))


def _mojo(name: str) -> Format:
    """A file of the repository: its index, the lines of its texts, and its trees as runs of bytes."""
    index, run, unscored = "model.ini", 11, "_aux.bin"
    files = cache(lambda: _unzipped(DATA / "h2o" / f"{name}.zip"))

    def sections(text: str) -> Iterator[tuple[str, Any]]:
        for title, *lines in (part.splitlines() for part in text.strip().split("\n\n")):
            pairs = [line.split(" = ") for line in lines]
            if title == "[info]":
                yield title, {key: told[1:-1].split(", ") if told[:1] == "[" else told for key, told in pairs}
            else:
                yield title, [line.replace(":", "").split(" ") for line in lines] if title == "[domains]" else lines

    def make() -> Any:
        made: dict[str, Any] = {}
        for file, data in files().items():
            if file.endswith(".bin"):
                made[file] = {at: list(data[at : at + run]) for at in range(0, len(data), run)}
            else:
                made[file] = dict(sections(data.decode()) if file == index else enumerate(data.decode().splitlines()))
        return {file: value for file, value in made.items() if not file.endswith(unscored)}

    def lines_of(section: Any) -> list[str]:
        if isinstance(section, dict):
            told = {key: text if isinstance(text, str) else f"[{', '.join(text)}]" for key, text in section.items()}
            return [f"{key} = {text}" for key, text in told.items()]
        return [line if isinstance(line, str) else " ".join(line).replace(" ", ": ", 1) for line in section]

    def write(document: Any) -> bytes:
        written: dict[str, bytes | str] = {file: data for file, data in files().items() if file.endswith(unscored)}
        for file, value in document.items():
            if file.endswith(".bin"):
                written[file] = b"".join(map(bytes, value.values()))
            elif file == index:
                written[file] = "\n\n".join("\n".join([title, *lines_of(part)]) for title, part in value.items())
            else:
                written[file] = "\n".join([*value.values(), ""])
        return _zipped(written)

    words = ("true", "null", "drf", "Regression", "poisson", "log", "OneHotExplicit", "d001.txt")
    return Format(make, write, "zip", words, needs=("h2o", "jpype", "java"))


FORMATS = {
    "xgboost, two classes": _xgboost("two", rounds=3, objective="binary:logistic"),
    "xgboost, three classes": _xgboost("three", objective="multi:softprob", num_class=3),
    "xgboost, dart": _xgboost(rounds=4, booster="dart", rate_drop=0.4, one_drop=1),
    "xgboost, categories": _xgboost(all_kinds=True, max_depth=3, max_cat_to_onehot=3),
    "xgboost, linear": _xgboost(booster="gblinear"),
    "lightgbm, two classes": _lightgbm("two", objective="binary"),
    "lightgbm, forest of three classes": _lightgbm(
        "three", objective="multiclass", num_class=3, boosting="rf", bagging_freq=1, bagging_fraction=0.6
    ),
    "lightgbm, categories": _lightgbm(
        "value", all_kinds=True, objective="regression", min_data_per_group=5, cat_smooth=1
    ),
    "catboost, two classes": _catboost("CatBoostClassifier", "two"),
    "catboost, leaf by leaf": _catboost("CatBoostRegressor", "value", grow_policy="Lossguide", max_leaves=4),
    "onnx, four classes": _onnx("four"),
    "onnx, value": _onnx("value"),
    "interpret": _interpret(),
    "skops, forest": _skops("RandomForestClassifier", "four", n_estimators=2, max_depth=2),
    "skops, histograms": _skops("HistGradientBoostingRegressor", "value", max_iter=2, max_leaf_nodes=4, max_bins=8),
    **{f"pmml, {name}": _pmml(name) for name in ("drawn_02", "scorecard", "xgboost_missing", "xgboost_value")},
    "treelite, two classes": _treelite("xgboost, logistic"),
    "treelite, forest of two classes": _treelite("forest, two classes"),
    "treelite, categories": _treelite("lightgbm, categories"),
    **{f"spark, {name}": _spark(name) for name in ("boosting_two", "later_pipeline_keep")},
    **{f"h2o, {name}": _mojo(name) for name in ("boosting_two", "forest_both_balanced", "boosting_one_hot_three")},
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Judges every change of a saved file of every format.")
    parser.add_argument("formats", nargs="*", default=list(FORMATS), metavar="FORMAT")
    wrong = 0
    for name in parser.parse_args(arguments).formats:
        if lacking := FORMATS[name].lacks:
            print(f"{name}: not judged, for there is no {lacking}", flush=True)
            continue
        with tempfile.TemporaryDirectory() as folder, Judges() as judges:
            tally = judge_all(FORMATS[name], Path(folder), judges)
        counts = f"{tally.equal} equal, {tally.refused} refused, {len(tally.by_library)} refused by the library alone"
        print(
            f"{name}: {counts}, {len(tally.wrong)} wrong",
            *(f"  WRONG {line}" for line in tally.wrong),
            sep="\n",
            flush=True,
        )
        wrong += len(tally.wrong)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
