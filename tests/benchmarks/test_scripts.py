"""Each script of `benchmarks` explains itself, and runs on a folder of models of three trees."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from benchmarks.published import MANIFEST, fetch, is_whole

from tests.benchmarks import small_bench
from tests.trials import at_night

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
SCRIPTS = sorted(p.stem for p in BENCHMARKS.glob("*.py") if '__name__ == "__main__"' in p.read_text())
SMALLEST = {
    "certificate_coverage": ("--bench", "{bench}", "--only", "published", "--seconds", "1"),
    "certificates": ("--bench", "{bench}", "--only", "published none", "--limit", "5"),
    "conquest": ("extra:1:f22:0.1", "--workers", "2", "--limit", "5", "--slice", "1", "--kill", "0"),
    "curves": ("{bench}/models/diabetes_robust.json", "--at", "0.1"),
    "data_aware": (
        "--bench",
        "{bench}",
        "--every",
        "5",
        "--limit",
        "1",
        "--nearest-limit",
        "1",
        "--workers",
        "1",
        "--output",
        "{out}/d.jsonl",
    ),
    "fewest_changes": ("{bench}/models/diabetes_robust.json", "--margins", "0.5", "--limit", "0.5"),
    "formats_on_data": ("{out}", "--rows", "10", "--most", "1"),
    "large_models": (
        "{bench}/data/diabetes/train.csv",
        "--part",
        "0.0005",
        "--time-limit",
        "0.3",
        "--features",
        "f0",
        "--output",
        "{out}/large",
        "--only",
        "xgboost",
    ),
    "shapes": (
        "{bench}/data/diabetes/train.csv",
        "--increasing",
        "f2",
        "--models",
        "1",
        "--trees",
        "3",
        "--rows",
        "50",
    ),
    "solver_starts": ("--times", "1"),
    "forests": ("{bench}/data/diabetes/train.csv", "--depths", "1", "--limit", "1"),
    "likelihood": ("--bench", "{bench}", "--every", "5", "--limit", "1", "--solver", "", "--output", "{out}/l.jsonl"),
    "linf_distances": (
        "--bench",
        "{bench}",
        "--rows",
        "1",
        "--seeds",
        "0",
        "--models",
        "diabetes_robust",
        "--time",
        "5",
    ),
    "load_speed": ("--trees", "3", "--depth", "2", "--repeat", "1"),
    "local_norms": (
        "--bench",
        "{bench}",
        "--rows",
        "1",
        "--norms",
        "l1",
        "--models",
        "diabetes_robust",
        "--output",
        "{out}",
    ),
    "make_instances": ("--output", "{out}"),
    "make_none": ("--bench", "{bench}", "--output", "{out}/sets_none.jsonl"),
    "models_read": ("--every", "23"),
    "multiclass": (
        "--train",
        "digits",
        "--rounds",
        "1",
        "--questions",
        "2",
        "--limit",
        "1",
        "--folder",
        "{out}",
        "--output",
        "{out}/m.jsonl",
    ),
    "reasons": ("--bench", "{bench}", "--rows", "1"),
    "recourse": ("--bench", "{bench}", "--rows", "1", "--output", "{out}"),
    "repair": (
        "--bench",
        "{bench}",
        "--case",
        "diabetes_robust",
        "diabetes",
        "f1",
        "--gaps",
        "0.1",
        "--seconds",
        "1",
    ),
    "repair_beside": ("--rounds", "3", "--depth", "2", "--seconds", "1"),
    "session_memory": ("--questions", "20"),
    "sessions": ("--bench", "{bench}", "--rows", "2"),
    "shares": ("--tiny", "2"),
    "swings": ("{bench}/models/diabetes_robust.json", "--features", "f1", "--limit", "2", "--solvers", "native"),
    "tabular_examples": ("--bench", "{bench}", "--example", "diabetes_robust", "diabetes", "f1", "--limit", "1"),
    "typical": ("--bench", "{bench}", "--models", "diabetes_robust", "--every", "9", "--seconds", "1"),
}
"""Arguments of the smallest run."""
LIBRARIES = {
    "local": "veritas",
    "two_copies": "veritas",
    "recourse_treecf": "treecf",
    "exact_program": "exact",
}
"""Scripts that compare with a library that the tests do not install: started by hand."""
LONG = {"scale", "published", "fetch_data"}
"""The first trains at least a hundred trees of depth 8, the others need the network."""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_bench.make(tmp_path_factory.mktemp("bench"))


SECONDS = {"conquest", "data_aware", "formats_on_data", "large_models", "models_read", "shares", "solver_starts"}
"""Scripts whose smallest run takes several seconds."""


def run(monkeypatch: pytest.MonkeyPatch, name: str, *arguments: str) -> int:
    """Runs a script in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", [f"benchmarks/{name}.py", *arguments])
    try:
        return importlib.import_module(f"benchmarks.{name}").main() or 0
    except SystemExit as end:
        return 0 if end.code is None else 1 if isinstance(end.code, str) else end.code


def test_every_script_has_a_smallest_run_or_a_reason() -> None:
    assert set(SCRIPTS) == {*SMALLEST, *LIBRARIES, *LONG}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_explains_itself(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, name, "--help") == 0
    assert "usage: " in capsys.readouterr().out.lower()


@pytest.mark.slow
@pytest.mark.parametrize("name", [at_night(name) if name in SECONDS else name for name in SMALLEST])
def test_a_smallest_run(
    name: str, bench: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [part.format(bench=bench, out=tmp_path) for part in SMALLEST[name]]
    assert run(monkeypatch, name, *arguments) == 0
    if name == "make_instances":
        for path in tmp_path.glob("*.jsonl"):
            assert path.read_text() == (BENCHMARKS / "instances" / path.name).read_text()
    written = capsys.readouterr().out + "".join(p.read_text() for p in tmp_path.glob("*.jsonl"))
    assert len(written.splitlines()) >= 2 or name == "shares", written


def test_files_that_were_measured_come_and_others_are_refused(tmp_path: Path) -> None:
    digest, place, source = MANIFEST.read_text().splitlines()[0].split()
    served = tmp_path / "served" / source
    served.parent.mkdir(parents=True)
    served.write_bytes(b"hello")
    manifest = tmp_path / "manifest"
    hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    manifest.write_text(f"{hello}  {place}  {source}\n")
    address = (tmp_path / "served").as_uri()
    assert fetch(tmp_path / "bench", address, manifest) == 1
    assert is_whole(tmp_path / "bench" / place, hello)
    assert fetch(tmp_path / "bench", address, manifest) == 0
    manifest.write_text(f"{digest}  {place}  {source}\n")
    with pytest.raises(SystemExit, match="SHA-256"):
        fetch(tmp_path / "other", address, manifest)
    assert not (tmp_path / "other" / place).exists()
    served.unlink()
    with pytest.raises(SystemExit, match="cannot be fetched"):
        fetch(tmp_path / "other", address, manifest)
