"""The section of a model card: what it says, where it goes, and that nothing of the card is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

import treesens as ts
from tests.extensions.studies.grids import rows_that_flip, two_classes
from treesens.errors import OverwriteError, UsageError
from treesens.extensions.studies.report.model_card import BEGIN, END

CARD = f"# A card\r\n\nBy hand.\n\n{BEGIN}\nold\n{END}\n\nÜber das Ende.\n"


@pytest.fixture(scope="module")
def audit() -> ts.Audit:
    trained = two_classes("xgboost")
    return ts.audit(trained.estimator, trained.frame, vary=["p"], gap=[0.05], time_limit=60.0)


def test_the_section_takes_the_place_between_its_marks(audit: ts.Audit, tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    file.write_bytes(CARD.encode())
    section = audit.card(file, date="2026-01-02")
    before, after = CARD.split(BEGIN, maxsplit=1)[0], CARD.split(END)[1]
    assert file.read_bytes().decode() == before + section.removesuffix("\n") + after
    audit.card(file, date="2026-01-02")
    assert file.read_bytes().decode() == before + section.removesuffix("\n") + after
    assert section.startswith(BEGIN)
    assert section.endswith(END + "\n")
    assert "old" not in section


def test_a_new_file_holds_the_section_alone(audit: ts.Audit, tmp_path: Path) -> None:
    assert audit.card(tmp_path / "card.md", date="2026-01-02") == (tmp_path / "card.md").read_text()


@pytest.mark.parametrize(
    "text", ["# By hand\n", f"{BEGIN}\n", f"{END}\n{BEGIN}\n", f"{BEGIN}{END}{BEGIN}{END}", "\udcff"]
)
def test_a_card_without_a_place_is_left_as_it_is(audit: ts.Audit, tmp_path: Path, text: str) -> None:
    file = tmp_path / "card.md"
    file.write_bytes(content := text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=r"no place for the section|cannot be read"):
        audit.card(file)
    assert file.read_bytes() == content


def test_the_card_is_no_input(tmp_path: Path) -> None:
    trained = two_classes("xgboost")
    trained.estimator.save_model(tmp_path / "m.json")
    content = (tmp_path / "m.json").read_bytes()
    with pytest.raises(OverwriteError):
        ts.audit(tmp_path / "m.json", trained.frame, vary=["p"], gap=[0.05]).card(tmp_path / "m.json")
    assert (tmp_path / "m.json").read_bytes() == content


def test_the_figures_are_those_of_the_library(audit: ts.Audit) -> None:
    """Rows that flip, counted with `predict_proba` over all values of the feature."""
    trained = two_classes("xgboost")
    flipped = rows_that_flip(trained, "p", 0.05)
    assert flipped
    assert f"on rows: {flipped:,} of {len(trained.frame):,}" in audit.card(date="2026-01-02")


def test_names_of_features_are_no_markup(tmp_path: Path) -> None:
    """Neither a mark, nor a cell of the table, nor HTML."""
    hostile = f"p | {END}*<b>_"
    trained = two_classes("xgboost")
    frame = trained.frame.rename(columns={"p": hostile})
    model = pytest.importorskip("sklearn.tree").DecisionTreeClassifier(max_depth=2, random_state=0)
    model.fit(frame, trained.estimator.predict(trained.frame))
    audit = ts.audit(model, frame, vary=[[hostile]], gap=[0.05], time_limit=60.0)
    file = tmp_path / "card.md"
    audit.card(file)
    audit.card(file)
    text = file.read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    assert "p \\| \\<!-- treesens: end --\\>\\*\\<b\\>\\_" in text
