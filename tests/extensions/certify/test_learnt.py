"""What is typical of rows: trees that stand beside those of a model, in statements, proofs and both checkers."""

from __future__ import annotations

import hashlib
import itertools
import json
import lzma
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import xgboost
from click.testing import CliRunner

from tests.corpus import margins_of
from tests.extensions.certify.made import query_of
from tests.extensions.certify.models import train
from tests.extensions.certify.test_coq_agreement import export, program
from treesens.binder.file import bind
from treesens.cli import group as commands
from treesens.compiler.query.query import Query
from treesens.compiler.result import Verdict
from treesens.extensions import treesens_verify as checker
from treesens.extensions.certify.produce import Certificate, bound, refutation
from treesens.extensions.certify.statement import NoCertificate
from treesens.grammar.parsing.parser import parse
from treesens.solve.options import Options
from treesens.solve.question import answer_question

__all__ = ["export", "program"]
WAYS = ("", " by isolation")
PAIR = "find a, b in m such that a = b except {f0, f1}; a, b typical of d at 20 %"
VALUES = (0.0, 0.5, 1.0, 1.5, 2.0)

Document = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("learnt")
    train(5, made / "m.json", trees=4)
    rows = np.random.default_rng(2).integers(0, 4, (60, 3)) / 2
    rows[:, 0] %= 1
    rows[:, 1] = np.where(np.arange(60) % 6, rows[:, 0], rows[:, 1])
    (made / "d.csv").write_text("f0,f1,f2\n" + "".join(",".join(map(str, row)) + "\n" for row in rows.tolist()))
    return made


def head(folder: Path) -> str:
    domain = "".join(f"feature f{f}: real in [0, 2]\n" for f in range(3))
    return f'model m from "{folder / "m.json"}"\ndata d from "{folder / "d.csv"}"\n{domain}'


def question(folder: Path, text: str) -> Query:
    return query_of(f"{head(folder)}query q: {text}\n", folder)


def typical(query: Query) -> tuple[Any, Any, Any]:
    """Inputs of a fine grid; by the judge of the rows (the library's forest, or a table) which are typical, and may be."""
    grid = np.array(list(itertools.product(VALUES, repeat=3)))
    rows = [part for c in query.constraints for part in getattr(c, "parts", [c]) if getattr(part, "form", None)]
    row = next(c for c in rows if c.form.forests)
    (term,) = row.form.forests
    low, high = term.forest.judge(grid)
    return grid, low >= float(row.bound), high >= float(row.bound)


@pytest.mark.parametrize("way", WAYS)
def test_a_certificate_is_true_by_the_judge_of_the_rows_and_by_the_library(way: str, folder: Path) -> None:
    booster = xgboost.Booster(model_file=folder / "m.json")
    grid, inside, maybe = typical(question(folder, f"{PAIR}{way}; margin(a) - margin(b) >= 0"))
    margin = margins_of(booster, grid)
    same = grid[:, None, 2] == grid[None, :, 2]
    gaps = margin[:, None] - margin[None, :]
    best, most = (float(gaps[same & such[:, None] & such[None, :]].max()) for such in (inside, maybe))
    assert most < float(gaps[same].max()) - 0.01  # what is typical matters
    made = refutation(question(folder, f"{PAIR}{way}; margin(a) - margin(b) >= {most + 0.001:.4f}"))
    assert made.document["statement"]["learnt"] == [1]
    with pytest.raises(NoCertificate):
        refutation(question(folder, f"{PAIR}{way}; margin(a) - margin(b) >= {best - 0.001:.4f}"))


@pytest.mark.parametrize("way", WAYS)
def test_the_best_typicality_has_a_certificate(way: str, folder: Path) -> None:
    text = f"typicality(a, d{', isolation' if way else ''})"
    asked = question(folder, f"find a in m such that margin(a) >= 0.5 maximize {text}")
    grid, _, _ = typical(question(folder, f"{PAIR}{way}; margin(a) >= 0"))
    (term,) = asked.objective.form.forests if asked.objective is not None else ()
    booster = xgboost.Booster(model_file=folder / "m.json")
    margin = margins_of(booster, grid)
    low, high = (ends[margin >= 0.5].max() for ends in term.forest.judge(grid))
    assert bound(asked, high + 0.001).document["statement"]["rows"][-1]["strict"] is False
    with pytest.raises(NoCertificate):
        bound(asked, low - 0.001)


def test_units_that_differ_by_a_number_of_trees(folder: Path, tmp_path: Path) -> None:
    """The scores of a forest of six trees are sixths, and what is typical is not: no power of two makes both whole."""
    skops, ensemble = pytest.importorskip("skops.io"), pytest.importorskip("sklearn.ensemble")
    rows = np.loadtxt(folder / "d.csv", delimiter=",", skiprows=1)
    forest = ensemble.RandomForestClassifier(6, max_depth=3, random_state=0).fit(rows, rows.sum(axis=1) > 2)
    skops.dump(forest, tmp_path / "m.skops")
    text = head(folder).replace(str(folder / "m.json"), str(tmp_path / "m.skops"))
    asked = query_of(
        f"{text}query q: find a in m such that prob(a) >= 0.6 maximize typicality(a, d, isolation)\n", folder
    )
    grid = np.array(list(itertools.product(VALUES, repeat=3)))
    (term,) = asked.objective.form.forests if asked.objective is not None else ()
    allowed = forest.predict_proba(grid.astype(np.float32))[:, 1] >= 0.6
    low, high = (ends[allowed].max() for ends in term.forest.judge(grid))
    made = bound(asked, high + 0.001)  # which the checker has accepted
    weights = [weight for node in made.document["nodes"] if len(node) == 3 for weight in node[0]]
    assert any(weight and weight % 3 == 0 for weight in weights)
    with pytest.raises(NoCertificate):
        bound(asked, low - 0.001)


def test_a_case_without_learnt_trees_is_a_case_of_the_whole_with_them(folder: Path, tmp_path: Path) -> None:
    """Of the two alternatives one alone asks what is typical; bounds that are logarithms are said in both as in the whole."""
    text = "find a in m such that margin(a) <= -0.5 or (prob(a) <= 0.4 and a typical of d at 20 %); prob(a) >= 0.4"
    (asked,) = bind(parse(f"{head(folder)}query q: {text} maximize margin(a)\n", "<test>"), folder).queries
    result = answer_question(asked, Options(certificates=tmp_path, require_certificate=True))
    assert result.verdict is not Verdict.UNKNOWN, result
    (path,) = tmp_path.glob("*.manifest.json")
    (claim,) = json.loads(path.read_text())["claims"]
    (either,) = claim["whole"]["either"]
    assert (len(either), claim["whole"]["statement"]["learnt"]) == (2, [1])
    parts = [json.loads(lzma.decompress(file.read_bytes())) for file in tmp_path.glob("*.cert.xz")]
    assert {len(part["statement"].get("learnt", [])) for part in parts} == {0, 1}
    done = CliRunner().invoke(commands, ["verify", str(path), "--model", str(folder / "m.json")])
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="module")
def made(folder: Path) -> Certificate:
    for gap in range(1, 80):
        try:
            return refutation(question(folder, f"{PAIR}; margin(a) - margin(b) >= {gap / 10}"))
        except NoCertificate:
            continue
    raise AssertionError("no gap is refuted")


def test_the_command_says_that_learnt_trees_are_trusted(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "q.sens").write_text(
        f"{head(folder)}query q: find a in m such that margin(a) >= 0 maximize typicality(a, d)\n"
    )
    done = CliRunner().invoke(commands, ["check", str(folder / "q.sens"), "--certificate", str(tmp_path / "out")])
    assert done.exit_code in (0, 1), done.output
    told = CliRunner().invoke(commands, ["verify", str(tmp_path / "out"), "--model", str(folder / "m.json")])
    assert told.exit_code == 0, told.output
    said = capfd.readouterr().out
    assert "that they are learnt from rows is trusted, not proved" in said
    assert "trees of model 1(a, output 0)" in said


def renamed(document: Document, at: int, file: Document) -> bytes:
    """The content of a changed trees file, which the statement names from now on."""
    content = json.dumps(file).encode()
    document["statement"]["models"][at]["sha256"] = hashlib.sha256(content).hexdigest()
    return content


def swap(document: Document) -> None:
    document["statement"].update(learnt=[0])
    for point in document["statement"]["points"]:
        point["model"] = 1


LIES: dict[str, tuple[str, Callable[[Document], None]]] = {
    "a model that no point sees": ("no point sees", lambda d: d["statement"].pop("learnt")),
    "nothing is learnt": ("no point sees", lambda d: d["statement"].update(learnt=[])),
    "trees that are there twice": ("named twice", lambda d: d["statement"].update(learnt=[1, 1])),
    "a model beside itself": ("named twice", lambda d: d["statement"].update(learnt=[0, 1])),
    "trees that are not there": ("index", lambda d: d["statement"].update(learnt=[2])),
    "a point that sees learnt trees": ("are no model", swap),
    "an output beyond the last one": ("index", lambda d: d["statement"]["rows"][0]["terms"][0].__setitem__(2, 2)),
    "a truth for an index": ("index", lambda d: d["statement"].update(learnt=[True])),
}


@pytest.mark.parametrize("name", LIES)
def test_a_planted_lie_is_refused(name: str, made: Certificate) -> None:
    words, change = LIES[name]
    document = json.loads(json.dumps(made.document))
    checker.check(document, made.files)
    change(document)
    with pytest.raises(checker.Rejected, match=words):
        checker.check(document, made.files)


def test_other_leaves_are_another_file(made: Certificate) -> None:
    """Leaves that are more typical everywhere: what was refuted is so no longer."""
    document = json.loads(json.dumps(made.document))
    file = json.loads(made.files[1])
    for node in file["trees"][0]["nodes"]:
        if len(node) == 1:
            node[0][0] += 1000
    with pytest.raises(checker.Rejected, match="no model file"):
        checker.check(document, (made.files[0], json.dumps(file).encode()))
    with pytest.raises(checker.Rejected, match="does not refute"):
        checker.check(document, (made.files[0], renamed(document, 1, file)))


def test_a_model_may_not_call_itself_learnt(made: Certificate) -> None:
    """A trees file that says so needs no origin, but then no point sees it; one with an origin may not stand beside a model."""
    document = json.loads(json.dumps(made.document))
    file = json.loads(made.files[1])
    file["made_from"] = {"format": "xgboost-json", "sha256": document["statement"]["models"][0]["sha256"]}
    with pytest.raises(checker.Rejected, match="XGBoost, which is read here itself"):
        checker.check(document, (made.files[0], renamed(document, 1, file)))
    with pytest.raises(checker.Rejected, match="are no model"):
        checker.check(document, (made.files[0], renamed(document, 1, file)), trees_alone=True)


def test_the_checker_from_coq_accepts_it(made: Certificate, program: Path, export: ModuleType, tmp_path: Path) -> None:
    def said(document: Document) -> bool:
        (tmp_path / "integers").write_text(" ".join(map(str, export.integers_of(document, made.files))))
        return subprocess.run([program, tmp_path / "integers"], capture_output=True, check=False).returncode == 0

    document = json.loads(json.dumps(made.document))
    assert said(document)
    document["statement"]["rows"][-1]["bound"] = {"rational": "-9", "logs": []}
    assert not said(document)
