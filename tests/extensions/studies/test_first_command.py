"""`treesens audit MODEL TABLE` with nothing else: the places of its files, and everything that it recognises and states."""

from __future__ import annotations

import bz2
import json
import shutil
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest

import treesens as ts
from tests.command import run_command
from treesens.builtin import has_extensions
from treesens.cli import BUILTIN, HELP_GROUPS
from treesens.data.tables import read_table
from treesens.extensions.studies.recognised import label_column, looks_protected, named_classes
from treesens.extensions.studies.report.audit_words import grouped, headline
from treesens.report.changes import Names

pd = pytest.importorskip("pandas")
xgb = pytest.importorskip("xgboost")

PROTECTED = ["Age", "age_years", "AgeYears", "sex", "SEX", "Personal status and sex", "gender_male", "race", "ethnicGroup",
             "ethnicity", "Foreign worker", "maritalStatus", "religion", "is_pregnant", "disability", "Loan age",
             "is_female", "Male", "Married", "Pregnancies"]  # fmt: skip
OTHERS = ["mileage", "usage", "passage", "average", "wage", "language", "sexton", "trace", "grace_period", "engagement",
          "worker", "foreign_currency", "image", "agent", "percentage"]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of two classes, a regressor and a table, whose label column holds the names of classes."""
    place = tmp_path_factory.mktemp("first")
    random = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "Age": random.integers(18, 80, 300),
            "income": random.normal(50, 10, 300).round(1),
            "sex": random.integers(0, 2, 300),
            "mileage": random.integers(0, 9, 300),
        }
    )
    good = (rows.income + 5 * rows.sex - 0.1 * rows.Age + random.normal(0, 3, 300) > 48).astype(int)
    xgb.XGBClassifier(n_estimators=20, max_depth=3, random_state=0).fit(rows, good).save_model(place / "m.json")
    xgb.XGBRegressor(n_estimators=20, max_depth=3, random_state=0).fit(rows, 3 * rows.income + rows.Age).save_model(
        place / "r.json"
    )
    rows.assign(Decision=np.where(good, "granted", "refused")).to_csv(place / "t.csv", index=False)
    return place


def rows_of(folder: Path):  # type: ignore[no-untyped-def] # a frame
    return pd.read_csv(folder / "t.csv")[["Age", "income", "sex", "mileage"]]


def test_either_order_gives_the_same_records(folder: Path) -> None:
    ways = [("m.json", "t.csv"), ("t.csv", "m.json"), ("m.json", "--data", "t.csv")]
    documents = []
    for words in ways:
        done = run_command(folder, "audit", *words, "--json")
        assert done.returncode == 0, done.stderr
        documents.append(json.loads(done.stdout))
    first = documents[0]
    assert [one["gap"] for one in first["results"]] == [0.1, 0.2] * 4
    assert (first["model"]["file"], first["data"]["file"], first["data"]["label"]) == ("m.json", "t.csv", "Decision")
    for other in documents[1:]:
        assert [(r["varied"], r["rows_flipped"]) for r in other["results"]] == [
            (r["varied"], r["rows_flipped"]) for r in first["results"]
        ]
    model = xgb.XGBClassifier()
    model.load_model(folder / "m.json")
    rows = rows_of(folder)
    tried = np.array([model.predict_proba(rows.assign(sex=value))[:, 1] for value in (0, 1)])
    for record in first["results"]:
        if record["varied"] == ["sex"]:
            gap = record["gap"]
            assert record["rows_flipped"] == ((tried.max(0) >= 0.5 + gap) & (tried.min(0) <= 0.5 - gap)).sum()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("audit", "m.json", "r.json"), "both files are models"),
        (("audit", "t.csv", "t.csv"), "neither file is a model of a known format"),
        (("audit", "m.json"), "no table is given"),
        (("audit", "m.json", "t.csv", "--data", "t.csv"), "the table is given twice"),
        (("audit", "m.json", "nowhere.csv"), "nowhere.csv: the data file"),
        (("audit", "t.csv", "nowhere.json"), "nowhere.json: the model file"),
        (("m.json", "t.csv"), "treesens audit MODEL TABLE"),
    ],
)
def test_a_wrong_pair_of_files_is_an_error_with_a_remedy(folder: Path, words: tuple[str, ...], said: str) -> None:
    done = run_command(folder, *words)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_other_studies_take_the_table_by_position(folder: Path) -> None:
    named, placed = (
        json.loads(run_command(folder, "range", *words, "--json").stdout)["results"]
        for words in (("m.json", "--data", "t.csv"), ("t.csv", "m.json"))
    )
    assert [(one["low"], one["high"]) if "low" in one else one for one in map(_timeless, named)] == [
        (one["low"], one["high"]) if "low" in one else one for one in map(_timeless, placed)
    ]


def _timeless(record: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in record.items() if "seconds" not in name}


@pytest.mark.parametrize(
    ("columns", "expected", "why"),
    [
        ({"label": ["0", "1"]}, "label", "values name"),
        ({"Target": [0, 1]}, "Target", "values name"),
        ({" Y_ ": [5, 6]}, " Y_ ", "name is typical"),
        ({"result_x": [0, 1]}, "result_x", "values name"),
        ({"group": ["good", "bad"]}, "group", "two values"),
        ({"group": ["a", "b", "c"]}, None, ""),
        ({"outcome": ["a", "b"], "note": ["x", "y"]}, "outcome", "name is typical"),
        ({"one": [0, 1], "two": [1, 0]}, None, "`one`, `two` may be"),
        ({"id": [7, 8], "note": ["x", "y"]}, None, ""),
        ({}, None, ""),
    ],
)
def test_label_columns(folder: Path, columns: dict[str, list[object]], expected: str | None, why: str) -> None:
    rows = rows_of(folder).iloc[:30]
    table = rows.assign(**{name: np.resize(np.array(values), 30) for name, values in columns.items()})
    found = label_column(ts.load(folder / "m.json"), read_table(table))
    assert found.name == expected
    assert why in found.why


def test_a_guessed_label_changes_no_answer(folder: Path) -> None:
    rows = rows_of(folder)
    guessed = ts.audit(folder / "m.json", rows.assign(target=np.arange(300) % 2), vary=["sex"])
    without = ts.audit(folder / "m.json", rows, vary=["sex"])
    assert guessed.run.table.label == "target"
    assert without.run.table.label is None
    for one, other in zip(guessed.records, without.records, strict=True):
        for name in ("verdict", "rows_flipped", "max_swing", "max_swing_bound"):
            assert one[name] == other[name]


@pytest.mark.parametrize("name", PROTECTED)
def test_names_of_protected_features(name: str) -> None:
    assert looks_protected(name)


@pytest.mark.parametrize("name", OTHERS)
def test_names_of_other_features(name: str) -> None:
    assert not looks_protected(name)


def test_a_suggestion_is_no_statement(folder: Path, tmp_path: Path) -> None:
    document = json.loads(run_command(folder, "audit", "m.json", "t.csv", "--json").stdout)
    assert document["meaning"]["protected"] == ["Age", "sex"]
    assert document["meaning"]["suggested"] is True
    assert document["meaning"]["toml"] == ""
    assert {r["varied"][0] for r in document["results"] if r.get("suggested")} == {"Age", "sex"}
    refused = run_command(folder, "audit", "m.json", "t.csv", "--fail-on", "protected")
    assert refused.returncode == 1
    assert "no protected feature is stated" in refused.stderr
    stated = run_command(folder, "audit", "m.json", "t.csv", "--protected", "sex", "--fail-on", "protected")
    assert stated.returncode == 10
    assert "sex (protected)" in stated.stdout
    for name in ("m.json", "t.csv"):
        shutil.copy(folder / name, tmp_path / name)
    (tmp_path / "treesens.toml").write_text('protected = ["sex"]\nclasses = {0 = "refused", 1 = "granted"}\n')
    cited = run_command(tmp_path, "audit", "m.json", "t.csv", "-v", "sex", COLUMNS="2000")
    assert "treesens.toml (SHA-256 " in cited.stdout
    assert "P(granted) >= 0.6" in cited.stdout
    assert "suggested" not in cited.stdout + cited.stderr
    (tmp_path / "treesens.toml").write_text("protected = []\n")
    none = json.loads(run_command(tmp_path, "audit", "m.json", "t.csv", "--json").stdout)["meaning"]
    assert (none["protected"], none["suggested"], none["toml"]) == ([], False, "protected = []")
    assert ts.load(tmp_path / "m.json", favourable=1).meaning.stated == ()
    assert ts.load(folder / "m.json", favourable=1).meaning.stated is None


def test_a_regressor_has_a_stated_default_gap(folder: Path) -> None:
    done = run_command(folder, "audit", "r.json", "t.csv", "--json")
    assert done.returncode == 0, done.stderr
    model = xgb.XGBRegressor()
    model.load_model(folder / "r.json")
    size = float(f"{np.ptp(model.predict(rows_of(folder))) / 10:.2g}")
    document = json.loads(done.stdout)
    assert {r["gap"] for r in document["results"]} == {size}
    assert any(one["what"] == "gap" and f"a gap of {size:g}," in one["value"] for one in document["assumed"])


def test_many_sets_have_less_time_and_protected_sets_more() -> None:
    from dataclasses import replace

    from treesens.extensions.studies.audit import AuditOptions
    from treesens.extensions.studies.recognised import complete
    from treesens.extensions.studies.study import Asking

    random = np.random.default_rng(1)
    rows = pd.DataFrame(random.random((80, 40)), columns=["sex", *(f"f{i}" for i in range(39))])
    fitted = xgb.XGBClassifier(n_estimators=60, max_depth=4).fit(rows, (rows.sum(axis=1) > 20).astype(int))
    asked = Asking((ts.load(fitted),), read_table(rows), AuditOptions())
    limit = complete(asked).options.time_limit
    sets = len(asked.model.ensemble.used_features)
    assert (sets + 2) * 2.5 * limit / 2 == pytest.approx(50, rel=0.05)
    assert complete(replace(asked, chosen=frozenset(["time_limit"]))).options.time_limit == 5


def test_the_terminal_begins_with_the_headline_of_the_report(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    outputs = ("--report", str(tmp_path / "a.html"), "--card", str(tmp_path / "a.md"))
    done = run_command(folder, "audit", "m.json", "t.csv", *outputs, COLUMNS="2000")
    assert "| **sex** (protected? suggested) |" in (tmp_path / "a.md").read_text("utf-8")
    facts = json.loads((tmp_path / "a.audit.json").read_text("utf-8"))
    sentence = headline(grouped(facts["results"], Names.of_facts(facts)), facts)
    assert done.stdout.splitlines()[0] == sentence
    assert sentence in (tmp_path / "a.html").read_text("utf-8")
    assert "2 of 2 protected features (suggested by name)" in sentence


def test_the_headline_proposes_more_time_for_undecided_questions() -> None:
    record = {"varied": ["Age"], "protected": True, "gap": 0.1, "verdict": "unknown", "rows_flipped": 0, "rows": 9,
              "max_swing": None}  # fmt: skip
    facts = {"model": {"classes": [0, 1]}, "settings": {"seconds per set": 2.0}}
    said = headline(grouped([record, {**record, "gap": 0.2}]), facts)
    assert (
        said
        == "At gap 0.1, 1 of 1 protected feature is undecided. Undecided: 2 of 2 questions; run again with -v Age -t 20."
    )


def test_the_headline_counts_a_feature_once_for_all_pairs_of_classes(folder: Path, tmp_path: Path) -> None:
    rows = rows_of(folder)
    classes = np.digitize(rows.income, [45, 55])
    xgb.XGBClassifier(n_estimators=5, max_depth=2).fit(rows, classes).save_model(tmp_path / "k.json")
    rows.to_csv(tmp_path / "k.csv", index=False)
    done = run_command(tmp_path, "audit", "k.json", "k.csv", "--protected", "income", COLUMNS="2000")
    assert done.stdout.startswith("At margin 0, 1 of 1 protected feature can change a decision: income ("), done.stdout
    moved = ("audit", "k.json", "k.csv", "-v", "mileage", "--classes", "1", "--margin", "9")
    said = run_command(tmp_path, *moved, COLUMNS="2000").stdout
    assert said.startswith("At margin 9, 1 of 1 audited feature is proved not to move the score of class 1 so far."), (
        said
    )


def test_the_audit_in_python_yields_its_records(folder: Path) -> None:
    found = ts.audit(folder / "m.json", rows_of(folder), vary=["sex"])
    assert [one["gap"] for one in found] == found["gap"] == [0.1, 0.2]
    assert len(list(found)) == len(found)
    with pytest.raises(KeyError, match="no column `sex`"):
        found["sex"]


def test_every_command_is_in_a_group_of_the_help() -> None:
    listed = [name for names in HELP_GROUPS.values() for name in names]
    assert len(listed) == len(set(listed))
    assert listed[0] == "audit"
    assert not has_extensions() or set(listed) == set(BUILTIN)


def test_init_writes_what_the_audit_recognises(folder: Path, tmp_path: Path) -> None:
    for name in ("m.json", "r.json", "t.csv"):
        shutil.copy(folder / name, tmp_path / name)
    for model in ("m.json", "r.json"):
        done = run_command(tmp_path, "init", model, "t.csv", "--force")
        assert done.returncode == 0, done.stderr
        assert ("label: `Decision`" in done.stdout) == (model == "m.json")  # a regressor predicts no texts
        checked = run_command(tmp_path, "check", model.replace(".json", ".sens"))
        assert checked.returncode == 0, checked.stdout + checked.stderr
        if model == "m.json":
            assert "sensitive m to {Age} gap 0.1\n" in (tmp_path / "m.sens").read_text()
            told = tomllib.loads((tmp_path / "treesens.toml").read_text())
            assert told == {"protected": ["Age", "sex"], "classes": {"0": "refused", "1": "granted"}}
            (tmp_path / "treesens.toml").unlink()


def test_init_of_three_classes_fails_no_question(folder: Path, tmp_path: Path) -> None:
    rows = rows_of(folder)
    classes = np.digitize(rows.income, [45, 55])
    xgb.XGBClassifier(n_estimators=5, max_depth=2).fit(rows, classes).save_model(tmp_path / "k.json")
    rows.assign(y=classes).to_csv(tmp_path / "k.csv", index=False)
    assert run_command(tmp_path, "init", "k.csv", "k.json").returncode == 0  # in either order
    assert run_command(tmp_path, "fmt", "--check", "k.sens").returncode == 0
    assert run_command(tmp_path, "check", "k.sens").returncode == 0


def test_names_of_classes_need_agreement(folder: Path) -> None:
    model, rows = ts.load(folder / "m.json"), rows_of(folder)
    fitted = xgb.XGBClassifier()
    fitted.load_model(folder / "m.json")
    words = np.array(["no", "yes"])[fitted.predict(rows)]
    assert named_classes(model, read_table(rows.assign(d=words)), "d") == ({"0": "no", "1": "yes"}, True)
    words[:60] = np.where(words[:60] == "no", "yes", "no")
    assert named_classes(model, read_table(rows.assign(d=words)), "d") == ({"0": "no", "1": "yes"}, False)
    words[0] = "perhaps"
    assert named_classes(model, read_table(rows.assign(d=words)), "d") == ({}, False)


def test_names_that_are_not_sure_are_a_comment(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "m.json", tmp_path / "m.json")
    rows = rows_of(folder)
    fitted = xgb.XGBClassifier()
    fitted.load_model(folder / "m.json")
    words = np.array(["no", "yes"])[fitted.predict(rows)]
    words[:60] = np.where(words[:60] == "no", "yes", "no")
    rows.assign(Decision=words).to_csv(tmp_path / "t.csv", index=False)
    assert run_command(tmp_path, "init", "m.json", "t.csv").returncode == 0
    text = (tmp_path / "treesens.toml").read_text()
    assert '# classes = {0 = "no", 1 = "yes"}' in text or '# classes = {"0" = "no", "1" = "yes"}' in text
    assert "classes" not in tomllib.loads(text)


def test_the_demo_ends_with_the_place_of_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jinja2")
    from examples import demo

    monkeypatch.setattr(demo, "FOLDER", tmp_path)
    assert demo.main() == 0
    said = capfd.readouterr().out.splitlines()
    assert said[0].startswith("$ treesens audit ")
    assert said[-1] == f"the report: {tmp_path / 'tumours.html'}"
    assert "At gap 0.1" in (tmp_path / "tumours.html").read_text("utf-8")


def test_a_workbook_is_no_model(folder: Path, tmp_path: Path) -> None:
    """Models of some formats and workbooks are both ZIP archives."""
    shutil.copy(folder / "m.json", tmp_path / "m.json")
    with zipfile.ZipFile(tmp_path / "rows.xlsx", "w") as file:
        file.writestr("[Content_Types].xml", "<Types/>")
        file.writestr("xl/workbook.xml", "<workbook/>")
    for words in (("m.json", "rows.xlsx"), ("rows.xlsx", "m.json")):
        done = run_command(tmp_path, "audit", *words)
        assert done.returncode == 2
        assert "Excel" in done.stderr
    (tmp_path / "rows.csv.bz2").write_bytes(bz2.compress((folder / "t.csv").read_bytes()))
    assert "bunzip2" in run_command(tmp_path, "audit", "rows.csv.bz2", "m.json").stderr
