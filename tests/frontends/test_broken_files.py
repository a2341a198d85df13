"""Damaged, hostile and foreign files: a typed error with a place, never a traceback, a hang or an Ensemble."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.counted import calls_of
from tests.frontends.damage import refusals
from tests.frontends.trained import MODELS
from treesens.errors import ModelError
from treesens.frontends import load
from treesens.frontends.xgboost.frontend import XGBoostFrontend
from treesens.frontends.xgboost.ubjson import parse_ubjson


@cache
def saved(name: str, form: str) -> bytes:
    return bytes(MODELS[name]().save_raw(form))


def document(name: str = "logistic") -> dict[str, Any]:
    made: dict[str, Any] = json.loads(saved(name, "json"))
    return made


def read(data: bytes) -> Any:
    return XGBoostFrontend().load(Path("model.json"), data)


def tree(d: dict[str, Any], number: int = 0) -> dict[str, Any]:
    booster = d["learner"]["gradient_booster"]
    found: dict[str, Any] = booster.get("gbtree", booster)["model"]["trees"][number]
    return found


def _set(*path: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(d: dict[str, Any]) -> None:
        at: Any = d
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    return change


MODEL = ("learner", "gradient_booster", "model")
TREE = (*MODEL, "trees", 0)
WRONG = {
    "unknown objective": (
        _set("learner", "objective", "name", value="rank:quantum"),
        "objective.name: objective `rank:qu",
    ),
    "linear booster": (
        _set("learner", "gradient_booster", "name", value="gblinear"),
        "this field is not known here",
    ),
    "no learner": (lambda d: d.pop("learner"), "no field `learner`"),
    "no base score": (
        lambda d: d["learner"]["learner_model_param"].pop("base_score"),
        "base_score: this field is missing",
    ),
    "base score 2": (_set("learner", "learner_model_param", "base_score", value="2E0"), "not a probability"),
    "base score text": (_set("learner", "learner_model_param", "base_score", value="[a]"), "neither a number"),
    "base score NaN": (_set("learner", "learner_model_param", "base_score", value="[NaN]"), "not a probability"),
    "base score of two meanings": (
        lambda d: (
            d.update(version=[3, 0, 5]),
            _set("learner", "learner_model_param", "base_score", value="1E-7")(d),
        ),
        "XGBoost 3.1 and later clip base_score",
    ),
    "two base scores": (
        _set("learner", "learner_model_param", "base_score", value="[0.1,0.2]"),
        "2 values for 1 outputs",
    ),
    "features -1": (_set("learner", "learner_model_param", "num_feature", value="-1"), "out of range"),
    "features huge": (_set("learner", "learner_model_param", "num_feature", value="9" * 30), "out of range"),
    "features text": (_set("learner", "learner_model_param", "num_feature", value="five"), "not a whole number"),
    "classes huge": (_set("learner", "learner_model_param", "num_class", value="99999999"), "out of range"),
    "trees announced": (_set(*MODEL, "gbtree_model_param", "num_trees", value="13"), "announces 13 trees"),
    "trees not a list": (_set(*MODEL, "trees", value={}), "expected a list"),
    "tree info": (_set(*MODEL, "tree_info", value=[0] * 11 + [1]), "output that does not exist"),
    "cycle": (_set(*TREE, "left_children", 1, value=0), "right child does not follow|reached twice|two parents"),
    "loop": (_set(*TREE, "left_children", 0, value=0), "two parents|reached twice"),
    "child far away": (_set(*TREE, "left_children", 0, value=10**9), "does not exist"),
    "child too large": (_set(*TREE, "left_children", 0, value=10**30), "flat list"),
    "child float": (_set(*TREE, "left_children", 0, value=1.0), "flat list"),
    "half a leaf": (_set(*TREE, "right_children", 0, value=-1), "does not exist|does not follow"),
    "short array": (lambda d: tree(d)["split_indices"].pop(), "entries, one per node"),
    "nodes announced": (_set(*TREE, "tree_param", "num_nodes", value="1000000000"), "expected 1000000000 entries"),
    "no nodes": (_set(*TREE, "tree_param", "num_nodes", value="0"), "expected 0 entries"),
    "feature out of range": (_set(*TREE, "split_indices", 0, value=5), "feature that does not exist"),
    "NaN threshold": (_set(*TREE, "split_conditions", 0, value=float("nan")), "threshold of node 0 is NaN"),
    "infinite leaf": (_set(*TREE, "split_conditions", -1, value=float("inf")), "leaf value is not finite"),
    "text threshold": (_set(*TREE, "split_conditions", 0, value="1"), "flat list of numbers"),
    "null threshold": (_set(*TREE, "split_conditions", 0, value=None), "flat list of numbers"),
    "nested threshold": (_set(*TREE, "split_conditions", 0, value=[1.0]), "flat list of numbers"),
    "default 2": (_set(*TREE, "default_left", 0, value=2), "neither 0 nor 1"),
    "type of features": (_set("learner", "feature_types", 0, value="complex"), "unknown feature type"),
    "names twice": (_set("learner", "feature_names", value=["a", "a", "b", "c", "d"]), "same name"),
    "names missing": (_set("learner", "feature_names", value=["a"]), "expected 5 entries"),
    "categorical without set": (_set(*TREE, "split_type", 0, value=1), "no categories"),
    "unknown field of trees": (_set(*TREE, "oblique", value=[]), r"trees\[0\].oblique: this field is not known"),
    "unknown field of models": (_set(*MODEL, "extra", value=[]), r"model.extra: this field is not known"),
    "version 4": (_set("version", value=[4, 0, 0]), "files of XGBoost 4"),
    "leaf vectors": (_set(*TREE, "tree_param", "size_leaf_vector", value="7"), "leaves contain"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_contents_name_the_field(name: str) -> None:
    change, message = WRONG[name]
    wrong = copy.deepcopy(document())
    change(wrong)
    with pytest.raises(ModelError, match=message) as caught:
        read(json.dumps(wrong).encode())
    assert caught.value.remedy
    assert caught.value.place.startswith("model.json")


def test_logitraw_files_from_before_its_meaning_changed_are_refused() -> None:
    old = document("logitraw")
    old["version"] = [2, 1, 0]
    with pytest.raises(ModelError, match=r"XGBoost 3.1 changed"):
        read(json.dumps(old).encode())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "file is empty"),
        (b"\0" * 5000, "all bytes at the start of the file are zero"),
        (b"{}", "not a model of a known format"),
        (b"[1, 2]", "not a model of a known format"),
        (b"age,sex\n1,2\n", "not a model of a known format"),
        (b'{"name": "package", "learner": 3}', "expected an object|missing"),
        (b'{"learner": {"attributes": {}', "ends in the middle"),
        (b'{"learner": {"attributes": {]}}', "not valid JSON"),
        (b'{"learner": ' + b"[" * 200_000, "nested too deeply|ends in the middle"),
        (b'{"learner": "\xff\xfe"}', "neither UTF-8 JSON nor UBJSON"),
        (b'{"learner": ' + b"9" * 10_000 + b"}", "not valid JSON|expected an object"),
        (b"binf" + b"\0\1" * 50, "old binary format"),
        (pickle.dumps({"learner": 1}), "pickle"),
    ],
)
def test_other_files_are_refused(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=message) as caught:
        load(path)
    assert str(path) in caught.value.place


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read"):
        load(tmp_path / "nothing.json")
    with pytest.raises(ModelError, match="folder"):
        load(tmp_path)


def test_a_hundred_megabytes_of_zeros_are_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "zeros.json"
    with path.open("wb") as file:
        file.truncate(100 << 20)

    def refuse() -> None:
        with pytest.raises(ModelError, match="all bytes at the start of the file are zero"):
            load(path)

    assert calls_of(refuse) < 20_000


@pytest.mark.parametrize("form", ["json", "ubj"])
def test_every_truncation_is_noticed(form: str) -> None:
    data = saved("dart", form)
    for end in [*range(2, 400, 7), *range(400, len(data) - 1, max(1, len(data) // 200)), len(data) - 1]:
        with pytest.raises(ModelError):
            read(data[:end])


@pytest.mark.parametrize(
    "data",
    [
        b"{L\0\0\0\0\0\0\0\7learner[$d#L\x7f\xff\xff\xff\xff\xff\xff\xff",
        b"{L\0\0\0\0\0\0\0\7learner[#L\x7f\xff\xff\xff\xff\xff\xff\xff",
        b"{L\0\0\0\0\0\0\0\7learner[$Z#L\x7f\xff\xff\xff\xff\xff\xff\xff",
        b"{L\0\0\0\0\0\0\0\7learner[$i#l\xff\xff\xff\xff",
        b"{L\x7f\xff\xff\xff\xff\xff\xff\xff",
        b"{L\0\0\0\0\0\0\0\7learner" + b"[" * 100_000,
        b"{i\7learnerD",
        b"{i\7learner?}",
        b"{i\7learnerZi\7learnerZ}",
        b"{}{}",
        b"{i\1aZ",
        b"",
    ],
)
def test_hostile_ubjson_is_bounded_by_its_bytes(data: bytes) -> None:
    def refuse() -> None:
        with pytest.raises(ModelError, match=r"byte|nested"):
            parse_ubjson(data, "model.ubj")

    assert calls_of(refuse) < 20_000


def test_ubjson_values_of_every_kind() -> None:
    data = b"{i\1a[$U#i\3\1\2\xffi\1b[TFZ]i\1cSi\3abci\1dC!i\1eI\xff\xfei\1f{#i\1i\1gd\x3f\x80\0\0i\1hN[]}"
    value = parse_ubjson(data, "x")
    assert value["a"].tolist() == [1, 2, 255]
    assert (value["b"], value["c"], value["d"], value["e"]) == ([True, False, None], "abc", "!", -2)
    assert (value["f"], value["h"]) == ({"g": 1.0}, [])


@pytest.mark.parametrize("form", ["json", "ubj"])
@pytest.mark.parametrize("name", ["logistic", "categories, both", "vector leaves", "dart"])
def test_random_damage_gives_a_typed_error_or_a_valid_model(name: str, form: str) -> None:
    """A fixed budget of flipped, dropped and repeated bytes; whatever still loads has passed every check of
    validate().
    """
    assert refusals(saved(name, form), read) > 10
