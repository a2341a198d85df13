"""What an audit says about the cost of repairing: the same as a repair of every second row, and it costs no answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import treesens as ts
from tests.extensions.repair.models import train, write_table
from treesens.cli import group, main
from treesens.errors import InternalError, UsageError
from treesens.extensions.studies.report.audit_table import show_mending

pytest.importorskip("clarabel")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A model `m.json` with its rows `d.csv`; the even ones are in `even.csv`, the odd ones in `odd.csv`."""
    _, x, y = train("xgboost", tmp_path, 1)
    write_table(tmp_path / "d.csv", x, y)
    write_table(tmp_path / "even.csv", x[::2], y[::2])
    write_table(tmp_path / "odd.csv", x[1::2], y[1::2])
    return tmp_path


def audit(place: Path, *more: str) -> Any:
    """What the command prints with --json."""
    words = ["audit", str(place / "m.json"), "--data", str(place / "d.csv"), "--label", "y", "--gap", "0.1", "-t", "20"]
    return CliRunner().invoke(group, [*words, "-v", "f", "-v", "c", *more], standalone_mode=False)


def test_the_price_is_that_of_a_repair_on_rows_that_were_held_out(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = audit(place, "--repair-gap", "0.1", "--json", "--report", str(place / "r.html"))
    told = json.loads(found.stdout)["mending"]
    (one,) = told["sets"]
    assert (told["gap"], one["varied"], one["proved"]) == (0.1, ["f"], True)
    alone = ts.repair(
        place / "m.json", place / "even.csv", test=place / "odd.csv", vary=["f"], gap=0.1, label="y",
        method=one["method"], time_limit=10.0, output=place / "o.json",
    )  # fmt: skip
    price = alone.records[0]["prices"]["test"]
    assert one["rows"] == price["rows"]
    assert one["loss_before"] == price["loss_before"]
    if one["method"] != "leaves":  # those depend on how much time there was
        assert one["loss_after"] == price["loss_after"]
    page = (place / "r.html").read_text()
    assert "Cost of repairing the model" in page
    show_mending(told)
    for shown in (page, " ".join(capsys.readouterr().out.split())):
        # The rows were held out from the repair, and not from the training of the model.
        assert "if the model was trained on these rows, its loss and AUC on new rows may differ" in shown
    assert f"{one['loss_before']:.4f} → {one['loss_after']:.4f}" in page
    assert json.loads((place / "r.audit.json").read_text())["mending"] == told


def test_a_failure_of_the_repair_costs_no_answer(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from treesens.extensions.repair.repair import Repair

    def fails(*_: Any) -> Any:
        raise InternalError("as if it had failed")

    plain = json.loads(audit(place, "--json").stdout)
    assert "mending" not in plain
    monkeypatch.setattr(Repair, "reach", fails)
    found = audit(place, "--repair-gap", "0.1", "--json")
    document = json.loads(found.stdout)
    (one,) = document["mending"]["sets"]
    assert not one["proved"]
    assert "as if it had failed" in one["reason"]
    assert [r["verdict"] for r in document["results"]] == [r["verdict"] for r in plain["results"]]
    assert "is not known" in audit(place, "--repair-gap", "0.1").stdout


def test_labels_that_cannot_be_used_leave_the_price_open(place: Path) -> None:
    rows = [line.removesuffix(".0") for line in (place / "d.csv").read_text().splitlines()]
    rows[2] = rows[2].rpartition(",")[0] + ",no"
    (place / "d.csv").write_text("\n".join(rows) + "\n")
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "audit",
                str(place / "m.json"),
                str(place / "d.csv"),
                "--label",
                "y",
                "-v",
                "f",
                "-t",
                "2",
                "--repair-gap",
                "0.1",
            ]
        )
    assert ended.value.code == 5
    done = audit(place, "--repair-gap", "0.1", "--json")
    (one,) = json.loads(done.stdout)["mending"]["sets"]
    assert "d.csv, row 1, column `y`: `no` is not a label of the model" in one["reason"]
    assert 'name another label column, or write classes = {0 = "NAME", ..} in treesens.toml' in one["reason"]


def test_prices_need_labels_and_a_gap_that_has_a_meaning(place: Path) -> None:
    rows = [line.rpartition(",")[0] for line in (place / "odd.csv").read_text().splitlines()]
    (place / "bare.csv").write_text("\n".join(rows) + "\n")
    with pytest.raises(UsageError, match="labelled rows"):
        ts.audit(place / "m.json", place / "bare.csv", vary=["f"], repair_gap=0.1, time_limit=1.0)
    found = ts.audit(place / "m.json", place / "d.csv", vary=["f"], gap=0.1, label="y", repair_gap=0.7, time_limit=1.0)
    assert found.run.mending is not None
    assert "never gives both" in found.run.mending[0]["reason"]
