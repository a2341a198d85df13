"""Manifests: what parts claim together. True ones are accepted; a part that is missing, swapped or another one is noticed."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from click.testing import CliRunner

from tests.corpus import margins_of
from tests.extensions.certify.made import parts_of
from tests.extensions.certify.models import train
from treesens.cli import group
from treesens.extensions import treesens_verify as checker
from treesens.extensions.certify.command import run_checker

ROWS = "f0,f1,f2\n0,0,0\n1,0.5,1.5\n0.5,1,1\n1.5,1.5,0\n"
STUDIES = {
    "gap": "gap m.json --data d.csv",
    "range": "range m.json --data d.csv",
    "shape": "shape m.json --data d.csv",
    "diff": "diff m.json n.json --data d.csv",
    "sensitivities": "diff m.json n.json --data d.csv --gap 0.1,0.45",
    "same": "diff m.json again.json --data d.csv",
    "equal": "diff m.json split.json --data d.csv",
    "audit": "audit m.json --data d.csv --margin 0.1,9",
    "sets": "sets m.json --data d.csv --margin 0.1",
    "why": "why m.json --data d.csv",
    "robust": "robust m.json --data d.csv",
    "reasons": "reasons m.json --data d.csv --favourable 1 --protected f0",
    "values": "reasons m.json --data d.csv --favourable 1 --way values",
    "rows": "check rows.sens",
    "top": "check top.sens",
    "explain": "check explain.sens",
    "smallest": "check smallest.sens",
}
FILES = {
    "rows": "query q: count rows of d as a, b in m such that a = b except f0; margin(a) - margin(b) >= 0.3",
    "top": "query q: find a in m such that a.f0 <= 1 maximize margin(a) top 3",
    "explain": "query q: explain row 1 of d in m",
    "smallest": "query q: explain row 1 of d in m smallest",
}
Manifest = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("manifests")
    train(4, made / "m.json")
    train(5, made / "n.json")
    (made / "d.csv").write_text(ROWS)
    document = json.loads((made / "m.json").read_text())
    (made / "again.json").write_text(json.dumps(document, indent=1))
    booster = document["learner"]["gradient_booster"]["model"]
    for name in ("trees", "tree_info"):  # the same sum in another order: equal, and not the same trees
        booster[name] = booster[name][::-1]
    for number, tree in enumerate(booster["trees"]):
        tree["id"] = number
    (made / "split.json").write_text(json.dumps(document))
    for name, query in FILES.items():
        (made / f"{name}.sens").write_text(f'model m from "m.json"\ndata d from "d.csv"\ndomain from d\n{query}\n')
    return made


@pytest.fixture(scope="module")
def made(folder: Path) -> Callable[[str], Path]:
    """The manifest of a study, which is asked once."""
    known: dict[str, Path] = {}

    def manifest(kind: str) -> Path:
        if kind not in known:
            words = [str(folder / w) if w.endswith((".json", ".csv", ".sens")) else w for w in STUDIES[kind].split()]
            out = folder / f"out-{kind}"
            asked = [*words, "--certificate", str(out), "--require-certificate"]
            done = CliRunner().invoke(group, asked, standalone_mode=False)
            assert done.return_value == 0, done.output
            (known[kind],) = out.glob("*.manifest.json")
        return known[kind]

    return manifest


def models(folder: Path) -> list[Path]:
    return [folder / f"{name}.json" for name in ("m", "n", "again", "split")]


@pytest.mark.parametrize("kind", STUDIES)
def test_what_is_claimed_together_is_accepted(
    kind: str, made: Callable[[str], Path], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = made(kind)
    assert run_checker([path], models(folder), {}) == 0
    said = capfd.readouterr().out
    assert "Together: " in said
    assert said.endswith(": accepted\n")
    assert not json.loads(path.read_text())["about"]["without"]


def follows(claim: Manifest, certificates: list[dict[str, Any]], folder: Path) -> list[str]:
    data = [path.read_bytes() for path in models(folder)]
    return checker.together(claim, certificates, lambda stated: checker.core.model_of(stated, data))


def values_of(booster: xgboost.Booster) -> list[list[float]]:
    """A value in every box between two thresholds, within the ranges of the table, and the values of its rows."""
    cuts: list[set[float]] = [set(), set(), set()]
    for tree in booster.trees_to_dataframe().itertuples():
        if tree.Feature != "Leaf":
            cuts[int(tree.Feature[1:])].add(float(np.float32(tree.Split)))
    ends = np.array([[float(x) for x in row.split(",")] for row in ROWS.split()[1:]])
    return [
        [x for x in sorted({*cut, *own.tolist()}) if own.min() <= x <= own.max()]
        for cut, own in zip(cuts, ends.T, strict=True)
    ]


def scored(booster: xgboost.Booster) -> tuple[np.ndarray, np.ndarray]:
    """All combinations of such values, and what XGBoost says of them."""
    points = np.array(list(itertools.product(*values_of(booster))), np.float32)
    return points, margins_of(booster, points)


SUBSETS = list(itertools.chain.from_iterable(itertools.combinations(range(3), size) for size in range(4)))


def test_sets_are_those_of_brute_force(made: Callable[[str], Path], folder: Path) -> None:
    points, scores = scored(xgboost.Booster(model_file=folder / "m.json"))
    flipping = []
    for free in SUBSETS:
        kept = [f for f in range(3) if f not in free]
        groups: dict[tuple[float, ...], list[float]] = {}
        for point, score in zip(points, scores, strict=True):
            groups.setdefault(tuple(point[kept]), []).append(float(score))
        if any(max(g) >= 0.1 and min(g) <= -0.1 for g in groups.values()):
            flipping.append(set(free))
    least = [one for one in flipping if not any(other < one for other in flipping)]
    path = made("sets")
    shown = [set(one["statement"]["same_except"]) for one in parts_of(path) if one["claim"] == "found"]
    assert sorted(map(sorted, shown)) == sorted(map(sorted, least))


def test_smallest_reasons_are_those_of_brute_force(tmp_path: Path) -> None:
    """The sizes of the reasons of all rows; what shows that a reason is minimal does not always show that it is smallest."""
    booster = train(1, tmp_path / "m.json", trees=6, depth=3)
    (tmp_path / "d.csv").write_text(ROWS)
    points, scores = scored(booster)
    rows = np.array([[float(x) for x in row.split(",")] for row in ROWS.split()[1:]], np.float32)
    positive = margins_of(booster, rows) > 0
    asked = ["why", "m.json", "--data", "d.csv", "--smallest", "-q", "--require-certificate", "--certificate"]
    words = [str(tmp_path / word) if word.endswith((".json", ".csv")) else word for word in asked]
    done = CliRunner().invoke(group, [*words, str(tmp_path / "out")], standalone_mode=False)
    assert done.return_value == 0, done.output
    (path,) = (tmp_path / "out").glob("*.manifest.json")
    manifest = json.loads(path.read_text())
    certificates, data = parts_of(path), [(tmp_path / "m.json").read_bytes()]

    def says(claim: Manifest) -> list[str]:
        return checker.together(claim, certificates, lambda stated: checker.core.model_of(stated, data))

    extra = 0
    claims = [claim for claim in manifest["claims"] if claim["kind"] != "each"]  # beside what shows a change
    for claim, row, own in zip(claims, rows, positive, strict=True):
        deciding = [
            chosen for chosen in SUBSETS if ((scores > 0) == own)[(points == row)[:, list(chosen)].all(axis=1)].all()
        ]
        assert claim["kind"] == "smallest"
        assert len(claim["features"]) == min(map(len, deciding))
        assert tuple(claim["features"]) in deciding
        assert says(claim)
        count = 1 + len(claim["features"])
        first = {"parts": claim["parts"][:count], "kept": claim["kept"][:count]}
        assert says({**claim, "kind": "reason", **first})
        if count < len(claim["parts"]):
            extra += 1
            with pytest.raises(checker.Rejected, match="fewer features"):
                says({**claim, **first})
    assert extra, "some reason is a smallest one only by more inputs than those that show that it is minimal"


def without(claim: Manifest, place: int) -> Manifest:
    """A claim without one of its parts, and without what is said of it."""
    lists = {name: claim[name] for name in ("parts", "kept") if name in claim}
    return {**claim, **{name: [x for i, x in enumerate(one) if i != place] for name, one in lists.items()}}


@pytest.mark.parametrize("kind", ["equal", "sets"])
def test_every_part_is_needed(kind: str, made: Callable[[str], Path], folder: Path) -> None:
    path = made(kind)
    manifest = json.loads(path.read_text())
    (claim,), certificates = manifest["claims"], parts_of(path)
    assert follows(claim, certificates, folder)
    for place in range(len(claim["parts"])):
        with pytest.raises(checker.Rejected):
            follows(without(claim, place), certificates, folder)


def test_every_part_of_a_reason_is_needed(made: Callable[[str], Path], folder: Path) -> None:
    path = made("explain")
    manifest = json.loads(path.read_text())
    (claim,), certificates = manifest["claims"], parts_of(path)
    assert claim["kind"] == "reason"
    assert claim["features"]
    for place in range(len(claim["parts"])):
        with pytest.raises(checker.Rejected):
            follows(without(claim, place), certificates, folder)
    for f in claim["features"]:
        with pytest.raises(checker.Rejected):
            follows({**claim, "features": [g for g in claim["features"] if g != f]}, certificates, folder)
    more = sorted({0, 1, 2} - set(claim["features"]))
    if more:
        with pytest.raises(checker.Rejected):
            follows({**claim, "features": [*claim["features"], more[0]]}, certificates, folder)


DECISION = """model m from "m.json"
decision credit of x: approve when prob(x) >= 0.7 and x.f0 >= 0.5
  refer when x.f1 <= 1 or prob(x) >= 0.9 else decline
"""


def outcome(score: float, point: tuple[float, ...]) -> str:
    if score >= math.log(0.7 / 0.3) and point[0] >= 0.5:
        return "approve"
    return "refer" if point[1] <= 1 or score >= math.log(0.9 / 0.1) else "decline"


def test_reasons_of_a_decision_that_names_features(tmp_path: Path) -> None:
    """Cases of other outcomes ask for values of the very features that a reason keeps; outcomes are those of XGBoost."""
    booster = train(5, tmp_path / "m.json", trees=10, depth=3)
    (tmp_path / "d.csv").write_text(ROWS)
    (tmp_path / "credit.sens").write_text(DECISION)
    asked = [
        "why",
        "m.json",
        "--data",
        "d.csv",
        "--decision",
        "credit.sens",
        "-q",
        "--require-certificate",
        "--certificate",
    ]
    words = [str(tmp_path / word) if word.endswith((".json", ".csv", ".sens")) else word for word in asked]
    done = CliRunner().invoke(group, [*words, str(tmp_path / "out")], standalone_mode=False)
    assert done.return_value == 0, done.output
    (path,) = (tmp_path / "out").glob("why.*.manifest.json")
    manifest = json.loads(path.read_text())
    certificates, data = parts_of(path), [(tmp_path / "m.json").read_bytes()]

    def says(claim: Manifest, parts: list[Manifest]) -> list[str]:
        return checker.together(claim, parts, lambda stated: checker.core.model_of(stated, data))

    rows = np.array([[float(x) for x in row.split(",")] for row in ROWS.split()[1:]], np.float32)
    cuts = np.float32([*booster.trees_to_dataframe().Split.dropna(), 0.5, 1.0])
    around = np.concatenate([cuts, np.nextafter(cuts, np.float32(-9)), np.nextafter(cuts, np.float32(9)), rows.ravel()])
    values = np.unique(np.clip(around, 0, 1.5))  # the domain is the range of the table
    points = np.array(list(itertools.product(values, repeat=3)), np.float32)
    scores = margins_of(booster, points)
    outcomes = np.array([outcome(s, p) for s, p in zip(scores.tolist(), points.tolist(), strict=True)])
    claims = [claim for claim in manifest["claims"] if claim["kind"] == "reason"]
    narrower = 0
    for claim, row in zip(claims, rows, strict=True):
        same = points == row
        for kept in [claim["features"], *([g for g in claim["features"] if g != f] for f in claim["features"])]:
            constant = len(set(outcomes[same[:, kept].all(axis=1)])) == 1
            assert constant == (kept == claim["features"])
        assert says(claim, certificates)
        for lie in lies_about_a_row(claim):
            with pytest.raises((checker.Rejected, *checker.core.MALFORMED)):
                says(lie, certificates)
        for number in claim["parts"]:
            # An input of no case that anything is proved of.
            more = copy.deepcopy(certificates)
            stated = more[number]["statement"]
            stated["rows"] = []
            stated["domain"] = [x for i, x in enumerate(stated["domain"]) if i < 3 or x[1:] in claim["row"]]
            if more[number]["claim"] == "found" and len(stated["domain"]) < len(
                certificates[number]["statement"]["domain"]
            ):
                narrower += 1
                with pytest.raises(checker.Rejected, match="left open"):
                    says(claim, more)
    assert narrower


def lies_about_a_row(claim: Manifest) -> Iterator[Manifest]:
    for f in claim["features"]:
        for value in ({"runs": [[None, None]]}, {"runs": [[7.0, 8.0]]}, [0, 1], None):
            yield {**claim, "row": [[g, value if g == f else allowed] for g, allowed in claim["row"]]}
        yield {**claim, "row": [one for one in claim["row"] if one[0] != f]}
    yield {**claim, "row": [*claim["row"], claim["row"][0]]}
    yield {**claim, "row": [[f + 3, allowed] for f, allowed in claim["row"]]}
    yield {**claim, "row": None}
    yield {**claim, "kept": claim["kept"][1:]}
    yield {**claim, "kept": [[] for _ in claim["parts"]]}
    yield {**claim, "kept": [[0, 1, 2] for _ in claim["parts"]]}
    yield {**claim, "kept": [["f0"] for _ in claim["parts"]]}
    yield {name: part for name, part in claim.items() if name != "row"}


def test_every_part_of_a_change_is_needed(made: Callable[[str], Path], folder: Path) -> None:
    path = made("reasons")
    manifest = json.loads(path.read_text())
    certificates = parts_of(path)
    claims = [claim for claim in manifest["claims"] if claim["kind"] == "change"]
    assert claims
    for claim in claims:
        assert follows(claim, certificates, folder)
        for place in range(len(claim["parts"])):
            with pytest.raises(checker.Rejected):
                follows(without(claim, place), certificates, folder)
        for features in ([f for f in range(3) if f not in claim["features"]], []):
            with pytest.raises(checker.Rejected):
                follows({**claim, "features": features}, certificates, folder)
        free = copy.deepcopy(certificates)
        for number in claim["parts"]:
            free[number]["statement"]["domain"] = free[number]["statement"]["domain"][:3]
        with pytest.raises(checker.Rejected):
            follows(claim, free, folder)


def test_changes_are_those_of_brute_force(made: Callable[[str], Path], folder: Path) -> None:
    """With the features of a claim changed some input is favourable by XGBoost, and with fewer of them none."""
    points, scores = scored(xgboost.Booster(model_file=folder / "m.json"))
    rows = np.array([[float(x) for x in row.split(",")] for row in ROWS.split()[1:]], np.float32)
    manifest = json.loads(made("reasons").read_text())
    changes = 0
    for claim, title in zip(manifest["claims"], manifest["about"]["titles"], strict=True):
        if claim["kind"] == "change":
            row = rows[int(title.split()[-1])]
            changes += 1
            for free in SUBSETS:
                if set(free) <= set(claim["features"]):
                    kept = [f for f in range(3) if f not in free]
                    reached = bool((scores[(points == row)[:, kept].all(axis=1)] > 0).any())
                    assert reached == (list(free) == claim["features"])
    assert changes


def test_a_bound_below_what_is_reached_is_rejected(made: Callable[[str], Path], folder: Path) -> None:
    path = made("gap")
    manifest = json.loads(path.read_text())
    certificates = parts_of(path)
    for claim in manifest["claims"]:
        with pytest.raises(checker.Rejected):
            follows({**claim, "reached": claim["beyond"], "beyond": claim["reached"]}, certificates, folder)
        lower = copy.deepcopy(certificates)
        for row in lower[claim["beyond"]]["statement"]["rows"]:
            row["bound"]["rational"] = "-1000"
        with pytest.raises(checker.Rejected):
            follows(claim, lower, folder)


def test_models_that_differ_are_not_the_same(made: Callable[[str], Path], folder: Path) -> None:
    """The same trees in another order are not the same tree by tree."""
    same = json.loads(made("same").read_text())["claims"][0]
    stated = {m["sha256"]: m for kind in ("same", "equal", "diff") for m in _models_of(made(kind))}
    for sha256, other in stated.items():
        if sha256 not in {m["sha256"] for m in same["models"]}:
            with pytest.raises(checker.Rejected):
                follows({**same, "models": [same["models"][0], other]}, [], folder)


def _models_of(path: Path) -> list[dict[str, Any]]:
    manifest = json.loads(path.read_text())
    found = [m for claim in manifest["claims"] for m in claim.get("models", ())]
    return found + [m for one in parts_of(path) for m in one["statement"]["models"]]


def test_rows_of_other_sets_are_rejected(made: Callable[[str], Path], folder: Path) -> None:
    path = made("rows")
    manifest = json.loads(path.read_text())
    (claim,), certificates = manifest["claims"], parts_of(path)
    yes = sum(certificates[n]["claim"] == "found" for n in claim["parts"])
    first, which, *_ = follows(claim, certificates, folder)
    assert first == f"of 4 rows, each one of a part (a part stands for all rows of its sets), {yes} have an answer"
    sets = [certificates[n]["statement"]["domain"][-3:] for n in claim["parts"]]
    text = json.dumps(sets, separators=(",", ":"), sort_keys=True)
    assert which.endswith(f" SHA-256 {hashlib.sha256(text.encode()).hexdigest()}")
    free = copy.deepcopy(certificates)
    free[claim["parts"][0]]["statement"]["domain"].pop()
    with pytest.raises(checker.Rejected):
        follows(claim, free, folder)


HOSTILE: dict[str, Callable[[Manifest], Any]] = {
    "no object": lambda m: [m],
    "another version": lambda m: {**m, "version": 2},
    "a flag as version": lambda m: {**m, "version": True},
    "nothing claimed": lambda m: {**m, "claims": []},
    "no parts": lambda m: {**m, "parts": []},
    "a part elsewhere": lambda m: {**m, "parts": [{**p, "file": "../" + p["file"]} for p in m["parts"]]},
    "a part by its full path": lambda m: {**m, "parts": [{**p, "file": "/etc/passwd"} for p in m["parts"]]},
    "another content": lambda m: {**m, "parts": [{**p, "sha256": "0" * 64} for p in m["parts"]]},
    "a part that is not there": lambda m: {**m, "parts": [{**p, "file": "gone.cert.xz"} for p in m["parts"]]},
    "more in a part": lambda m: {**m, "parts": [{**p, "size": 1} for p in m["parts"]]},
    "an unknown kind": lambda m: {**m, "claims": [{**c, "kind": "all"} for c in m["claims"]]},
    "a kind that is a list": lambda m: {**m, "claims": [{**c, "kind": ["border"]} for c in m["claims"]]},
    "more in a claim": lambda m: {**m, "claims": [{**c, "trust": True} for c in m["claims"]]},
    "an index outside": lambda m: {**m, "claims": [{**c, "parts": [99]} for c in m["claims"]]},
    "an index below": lambda m: {**m, "claims": [{**c, "parts": [-1]} for c in m["claims"]]},
    "an index that is a flag": lambda m: {**m, "claims": [{**c, "parts": [True, False]} for c in m["claims"]]},
    "parts that are a number": lambda m: {**m, "claims": [{**c, "parts": 0} for c in m["claims"]]},
    "features outside": lambda m: {**m, "claims": [{**c, "features": [0, 1, 2, 7]} for c in m["claims"]]},
    "features twice": lambda m: {**m, "claims": [{**c, "features": [0, 0, 1, 2]} for c in m["claims"]]},
    "fewer features": lambda m: {**m, "claims": [{**c, "features": [1]} for c in m["claims"]]},
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_manifests_are_rejected(
    kind: str, made: Callable[[str], Path], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = made("sets")
    hostile = path.parent / "hostile.manifest.json"
    hostile.write_text(json.dumps(HOSTILE[kind](json.loads(path.read_text()))))
    assert run_checker([hostile], models(folder), {}) == 1
    said = capfd.readouterr()
    assert ": rejected: " in said.out
    assert "Traceback" not in said.err
    hostile.unlink()


NEXT = float(np.nextafter(np.float32(0.5), np.float32(1)))


@pytest.mark.parametrize(
    ("low", "high", "covers"),
    [
        ({"runs": [[None, 0.5]], "missing": True}, {"runs": [[0.5, None]]}, True),
        (
            {"runs": [[None, 0.5]]},
            {"runs": [[NEXT, None]], "missing": True},
            True,
        ),
        ({"runs": [[None, 0.5]], "missing": True}, {"runs": [[0.5000002, None]]}, False),
        ({"runs": [[None, 0.5]]}, {"runs": [[0.5, None]]}, True),  # f0 is never missing
        ({"runs": [[0.0, 0.5]], "missing": True}, {"runs": [[0.5, None]]}, False),
        ({"runs": [[None, 0.5]], "missing": True}, {"runs": [[0.5, 1.0]]}, False),
        ({"values": [0.5], "missing": True}, {"runs": [[0.5, None]]}, False),
    ],
)
def test_parts_cover_a_whole_only_without_a_hole(
    low: Any, high: Any, covers: bool, made: Callable[[str], Path], folder: Path
) -> None:
    path = made("audit")
    one = next(c for c in parts_of(path) if c["claim"] == "none")
    parts = [copy.deepcopy(one), copy.deepcopy(one)]
    for part, side in zip(parts, (low, high), strict=True):
        part["statement"]["domain"].append([0, 0, side])
    claim = {"kind": "cover", "tree": [0, 0, low, high, 0, 1]}
    if covers:
        assert follows(claim, parts, folder)
    else:
        with pytest.raises(checker.Rejected):
            follows(claim, parts, folder)
    for tree in ([0, 1, low, high, 0, 1], [0, 0, low, high, 1, 0], [0, 0, low, high, 0, 0]):
        with pytest.raises(checker.Rejected):
            follows({"kind": "cover", "tree": tree}, parts, folder)


def test_a_cut_that_loses_a_missing_value_is_rejected(made: Callable[[str], Path], folder: Path) -> None:
    """It may do so only if the domain of the whole has none."""
    path = made("audit")
    one = next(c for c in parts_of(path) if c["claim"] == "none")
    low, high = {"runs": [[None, 0.5]]}, {"runs": [[0.5, None]]}
    claim = {"kind": "cover", "tree": [0, 0, low, high, 0, 1]}
    parts = [copy.deepcopy(one), copy.deepcopy(one)]
    for part, side in zip(parts, (low, high), strict=True):
        for place in part["statement"]["domain"]:
            if place[:2] == [0, 0]:
                place[2]["missing"] = True
        part["statement"]["domain"].append([0, 0, side])
    with pytest.raises(checker.Rejected, match="loses the missing value"):
        follows(claim, parts, folder)


def test_the_record_and_the_page_name_the_manifest(folder: Path, tmp_path: Path) -> None:
    words = [str(folder / w) if w.endswith((".json", ".csv")) else w for w in STUDIES["audit"].split()]
    page, out = tmp_path / "audit.html", tmp_path / "out"
    done = CliRunner().invoke(
        group, [*words, "--json", "--report", str(page), "--certificate", str(out)], standalone_mode=False
    )
    told = json.loads(done.stdout)["manifest"]
    (path,) = out.glob("*.manifest.json")
    kinds = [claim["kind"] for claim in json.loads(path.read_text())["claims"]]
    assert told["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert Path(told["file"]).name == path.name
    assert [claim["kind"] for claim in told["claims"]] == kinds
    assert told["sha256"] in page.read_text()
    assert json.loads(page.with_suffix(".audit.json").read_text())["manifest"] == told


def test_a_folder_is_checked_once(made: Callable[[str], Path], folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = made("gap")
    parts = sorted(path.parent.glob("*.cert.xz"))
    assert run_checker([*parts, path], models(folder), {}) == 0
    said = capfd.readouterr().out
    assert said.count("accepted above") == len(parts)
    assert said.count("exist, in values as the models store them:") == len(parts)
