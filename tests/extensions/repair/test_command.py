"""`treesens repair`: what it writes, what it says, and what it refuses."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import treesens as ts
from tests.corpus import boosted
from tests.extensions.repair.models import GRID, predict, train, write_table
from treesens.cli import group
from treesens.errors import DataError, ModelError, TreesensError, UsageError

pytest.importorskip("clarabel")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a model `m.json` and its rows `d.csv`."""
    _, x, y = train("xgboost", tmp_path, 1)
    write_table(tmp_path / "d.csv", x, y)
    return tmp_path


def run(place: Path, words: str) -> Result:
    """Runs the command on the model and its rows; the names of files are those of the folder."""
    line = words.split()
    named = [str(place / word) if word.endswith((".json", ".csv")) or word == "proofs" else word for word in line]
    return CliRunner().invoke(group, ["repair", str(place / "m.json"), *named], standalone_mode=False)


def verified(certificate: str, model: Path) -> bool:
    """Whether the checker accepts a certificate for a model file."""
    words = ["verify", certificate, "--model", str(model)]
    return CliRunner().invoke(group, words, standalone_mode=False).return_value == 0


COMMON = "--data d.csv --label y --vary f -t 1"


def test_the_file_is_proved_and_says_its_price(place: Path) -> None:
    before = hashlib.sha256((place / "m.json").read_bytes()).hexdigest()
    found = run(place, f"{COMMON} --gap 0.1 --test d.csv -o out.json --certificate proofs --json")
    assert found.return_value == 0, found.output
    record: dict[str, Any] = json.loads(found.stdout)
    (result,) = record["results"]
    assert result["proved"]
    content = (place / "out.json").read_bytes()
    assert result["sha256"] == hashlib.sha256(content).hexdigest()
    assert hashlib.sha256((place / "m.json").read_bytes()).hexdigest() == before
    price = result["prices"]["test"]
    model, repaired = predict(place / "m.json", GRID), predict(place / "out.json", GRID)
    rows = np.loadtxt(place / "d.csv", delimiter=",", skiprows=1)
    changed = (predict(place / "m.json", rows[:, :4]) > 0.5) != (predict(place / "out.json", rows[:, :4]) > 0.5)
    assert price["decisions_changed"] == int(changed.sum())
    assert not np.array_equal(model, repaired)
    ((claim,),) = (proof["certificates"] for proof in result["proofs"])
    assert verified(claim["file"], place / "out.json")


def test_a_certificate_of_the_repaired_file_is_none_of_the_model(place: Path) -> None:
    found = run(place, f"{COMMON} --gap 0.1 -o out.json --certificate proofs --json")
    ((claim,),) = (proof["certificates"] for proof in json.loads(found.stdout)["results"][0]["proofs"])
    assert verified(claim["file"], place / "out.json")
    assert not verified(claim["file"], place / "m.json")


def test_several_gaps_make_a_file_each(place: Path) -> None:
    found = run(place, f"{COMMON} --gap 0.05,0.1,0.2 --method blend -o out.json --json")
    results = json.loads(found.stdout)["results"]
    assert [r["size"] for r in results] == [0.2, 0.1, 0.05]
    assert {p.name for p in place.glob("out*")} == {"out-0.05.json", "out-0.1.json", "out-0.2.json"}
    losses = [r["prices"]["train"]["largest_change_of_a_score"] for r in results]
    assert losses == sorted(losses)


def test_what_holds_already_is_the_file_as_it_is(place: Path) -> None:
    run(place, f"{COMMON} --gap 0.1 -o out.json")
    found = ts.repair(
        place / "out.json", place / "d.csv", vary=["f"], label="y", gap=0.1, output=place / "again.json", time_limit=1.0
    )
    assert found.records[0]["changes"]["leaves_changed"] == 0
    assert np.array_equal(predict(place / "again.json", GRID), predict(place / "out.json", GRID))


def test_the_largest_swing_is_bounded(place: Path) -> None:
    found = run(place, f"{COMMON} --swing 0.5 --method leaves -o out.json --json")
    (swing,) = (proof["largest_swing"] for proof in json.loads(found.stdout)["results"][0]["proofs"])
    assert swing["before"] > 0.5 >= swing["after"]
    loaded = ts.load(place / "out.json")
    scores = loaded.margins(GRID)[:, 0].astype(np.float64).reshape(3, -1)
    assert (scores.max(axis=0) - scores.min(axis=0)).max() <= 0.5


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"label": "z"}, DataError, "no column `z`"),
        ({"data": "empty.csv"}, DataError, "no rows"),
        ({"data": "odd.csv"}, DataError, "row 1, column `y`"),
        ({"keep": ["a"]}, UsageError, "with a kept"),
        ({"keep": ["f"]}, UsageError, "both varied and kept"),
        ({"keep": ["x"]}, UsageError, "no feature `x`"),
        ({"vary": ["x"]}, UsageError, "no feature `x`"),
        ({"gap": None}, UsageError, "needs one of"),
        ({"margin": 1.0}, UsageError, "two units"),
        ({"gap": -0.1}, UsageError, "below 0"),
        ({"gap": 0.5}, UsageError, "never gives both"),
        ({"method": "magic"}, UsageError, "one of: auto, average"),
        ({"output": "m.json"}, UsageError, "input of this run"),
        ({"output": "d.csv"}, UsageError, "input of this run"),
    ],
)
def test_what_makes_no_sense_is_refused_and_writes_nothing(
    place: Path, change: dict[str, Any], error: type[TreesensError], words: str
) -> None:
    (place / "empty.csv").write_text("f,a,b,c,y\n")
    (place / "odd.csv").write_text("f,a,b,c,y\n0,0,0,0,1\n0,1,0,0,2\n")
    names = {path.name: path.read_bytes() for path in place.iterdir()}
    given: dict[str, Any] = {
        "data": "d.csv",
        "vary": ["f"],
        "label": "y",
        "gap": 0.1,
        "output": "o.json",
        "time_limit": 1.0,
    }
    given |= change
    given |= {"data": place / given["data"], "output": place / given["output"]}
    with pytest.raises(error) as raised:
        ts.repair(place / "m.json", given.pop("data"), **given)
    assert words in str(raised.value)
    assert {path.name: path.read_bytes() for path in place.iterdir()} == names


def test_a_live_model_has_no_file_to_write(place: Path) -> None:
    import xgboost

    booster = xgboost.Booster(model_file=place / "m.json")
    with pytest.raises(ModelError, match="save the model"):
        ts.repair(booster, place / "d.csv", vary=["f"], label="y", gap=0.1)


def test_a_promise_without_a_proof_writes_no_file(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that rounding would break: as if the last proof had found a pair each time."""
    from treesens.extensions.repair import file_proof as room

    monkeypatch.setattr(room.FileProof, "prove", lambda *_: ("gap: found", {}))
    found = run(place, f"{COMMON} --gap 0.1 -o out.json --json")
    assert found.return_value == 5
    assert not json.loads(found.stdout)["results"][0]["proved"]
    assert not (place / "out.json").exists()


def test_missing_values_of_the_rows_belong_to_the_promise(tmp_path: Path) -> None:
    """A column with a missing value: no pair with missing values breaks the promise, by the library's own predictions."""
    _, x, y = train("xgboost", tmp_path, 1)
    x[::7, 0] = np.nan
    x[3::11, 1] = np.nan
    write_table(tmp_path / "d.csv", x, y)
    text = (tmp_path / "d.csv").read_text().replace("nan", "")
    (tmp_path / "d.csv").write_text(text)

    names = ["f", "a", "b", "c"]
    boosted(x, y, 6, names=names, path=tmp_path / "m.json")
    ts.repair(
        tmp_path / "m.json",
        tmp_path / "d.csv",
        vary=["f"],
        label="y",
        gap=0.05,
        output=tmp_path / "o.json",
        time_limit=1.0,
    )
    grid = np.unique(np.concatenate([GRID, np.where(GRID == 0, np.nan, GRID)]), axis=0)
    for missing in ([0], [1], [0, 1]):
        more = GRID.copy()
        more[:, missing] = np.nan
        grid = np.concatenate([grid, more])
    grid[:, 2:] = np.nan_to_num(grid[:, 2:])
    grid = np.unique(np.nan_to_num(grid, nan=-1.0), axis=0)
    grid[grid == -1] = np.nan
    values = predict(tmp_path / "o.json", grid)
    _, group_of = np.unique(np.nan_to_num(grid[:, 1:], nan=-1.0), axis=0, return_inverse=True)
    for number in range(group_of.max() + 1):
        here = values[group_of == number]
        assert not (here.max() >= 0.55 and here.min() <= 0.45)


def test_the_curve_of_prices_is_drawn_and_a_journal_goes_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run answers from the journal; a file that is gone or changed is made again, the same one."""
    pytest.importorskip("matplotlib")
    from treesens.extensions.repair.repair import Repair

    line = f"{COMMON} --gap 0.05,0.2 --method blend -o out.json --journal {place / 'j.sqlite'} --json"
    first = json.loads(run(place, f"{line} --plot {place / 'curve.svg'}").stdout)["results"]
    assert "log loss" in (place / "curve.svg").read_text()
    content = (place / "out-0.05.json").read_bytes()
    reached: list[float] = []
    reach = Repair.reach

    def counted(self: Repair, size: Any, say: Any) -> Any:
        reached.append(float(size))
        return reach(self, size, say)

    monkeypatch.setattr(Repair, "reach", counted)
    assert json.loads(run(place, line).stdout)["results"] == first
    assert reached == []
    (place / "out-0.05.json").write_bytes(b"{}")
    run(place, line)
    assert reached == [0.05]
    assert (place / "out-0.05.json").read_bytes() == content
    run(place, line.replace("blend", "average"))
    assert reached == [0.05, 0.2, 0.05]
    assert run(place, f"{line} --certificate proofs").exit_code != 0


def test_a_size_that_cannot_be_reached_costs_none_of_the_larger_ones(place: Path) -> None:
    """The feature that is kept swings by less than the larger size allows, and by more than the smaller one."""
    found = run(place, f"{COMMON} --swing 100,0.001 --keep a -o out.json --json")
    large, small = json.loads(found.stdout)["results"]
    assert found.return_value == 5
    assert large["proved"]
    assert (place / "out-100.json").is_file()
    assert not small["proved"]
    assert "with a kept" in small["reason"]
    assert not (place / "out-0.001.json").exists()


def test_an_interruption_keeps_what_is_proved(place: Path) -> None:
    """The search is stopped where the blend is proved, long before its time is over."""
    from treesens.data.tables import align_table, read_table
    from treesens.extensions.repair.repair import Repair
    from treesens.extensions.repair.study import RepairOptions
    from treesens.extensions.studies.losses import labelled

    model = ts.load(place / "m.json")
    rows = labelled(model, align_table(model, read_table(place / "d.csv", label="y")), "y")
    stop = threading.Event()
    options = RepairOptions(vary=[["f"]], gap=["0.1"], method="leaves", time_limit=600.0)
    repair = Repair(model, rows, None, options, stop)
    found = repair.reach(options.sizes[0], lambda _words: stop.set())
    assert found.content is not None
    assert found.facts["seconds"] < 300
    (place / "o.json").write_bytes(found.content)
    values = predict(place / "o.json", GRID).reshape(3, -1)
    assert not ((values.max(axis=0) >= 0.6) & (values.min(axis=0) <= 0.4)).any()
