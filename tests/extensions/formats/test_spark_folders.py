"""Models of Spark as the folders that Spark writes: read as their zip files are, and known by the SHA-256 of `sha256sum`."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.command import run_command
from tests.extensions.formats.java import in_java
from tests.frontends.damage import damaged
from treesens.compiler.base import folders
from treesens.compiler.base.files import one_run, will_write, write_atomically
from treesens.compiler.base.folders import folder_digest, folder_stamp, read_folder
from treesens.errors import ModelError, OverwriteError, TreesensError
from treesens.extensions.editor.reading import Library
from treesens.frontends.registry import load

pytest.importorskip("pyarrow")
ZIPS = Path(__file__).parents[2] / "data" / "spark"
SUMS = "find . -type f -not -path '*/[._]*' -printf '%P\\0' | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum"
"""As docs/frontends.md has it."""


def unpacked(name: str, place: Path) -> Path:
    """The folder of a model."""
    with zipfile.ZipFile(ZIPS / f"{name}.zip") as archive:
        archive.extractall(place)
    (folder,) = place.iterdir()
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return unpacked("pipeline_keep", tmp_path / "models")


@pytest.mark.parametrize("name", ["tree_two", "forest_three", "boosting_two", "pipeline_scaled", "pipeline_search"])
def test_a_folder_is_the_model_of_its_zip_file(name: str, tmp_path: Path) -> None:
    place = unpacked(name, tmp_path / "models")
    one, other = load(ZIPS / f"{name}.zip"), load(place)
    rows = np.random.default_rng(1).normal(size=(50, one.ensemble.n_features))
    assert other.ensemble.features == one.ensemble.features
    assert other.ensemble.margins_emulated(rows).tolist() == one.ensemble.margins_emulated(rows).tolist()
    assert (other.notes, other.frontend, other.ensemble.name) == (one.notes, "spark", place.name)
    assert other.ensemble.source.path == str(place)


def test_the_digest_of_a_folder_is_that_of_sha256sum(folder: Path, tmp_path: Path) -> None:
    if shutil.which("sha256sum") is None or shutil.which("xargs") is None:
        pytest.skip("coreutils and findutils are not here")
    (folder / "metadata" / "a name of two words ä").write_text("x")
    done = subprocess.run(["sh", "-c", SUMS], cwd=folder, capture_output=True, text=True, check=True)
    told = done.stdout.split()[0]
    assert folder_digest(read_folder(folder)) == told
    # Notes of file systems do not count, and neither does where the folder lies.
    for name in ("_SUCCESS", ".DS_Store", "metadata/.part-00000.crc", "metadata/_committed_1"):
        (folder / name).write_text("noted")
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / "0.json").write_text("{}")
    again = tmp_path / "elsewhere" / "another name"
    shutil.copytree(folder, again)
    for place in (folder, again):
        done = subprocess.run(["sh", "-c", SUMS], cwd=place, capture_output=True, text=True, check=True)
        assert folder_digest(read_folder(place)) == done.stdout.split()[0] == told


def test_the_model_has_that_digest_and_another_one_if_a_file_changes(folder: Path) -> None:
    before = load(folder).ensemble.source.sha256
    assert before == folder_digest(read_folder(folder))
    part = next(folder.glob("metadata/part-*"))
    part.write_text(part.read_text() + "\n")
    assert load(folder).ensemble.source.sha256 not in ("", before)


def test_commands_and_questions_take_a_folder(folder: Path) -> None:
    base = folder.parent
    shown = run_command(base, "info", f"{folder.name}/")
    assert shown.returncode == 0, shown.stderr
    assert load(folder).ensemble.source.sha256 in shown.stdout
    here = run_command(folder, "info", ".")
    assert here.returncode == 0, here.stderr
    column = load(folder).ensemble.features[0].name
    (base / "q.sens").write_text(f'model m from "{folder.name}"\nquery q: find a in m such that a.`{column}` > 30\n')
    asked = run_command(base, "check", "q.sens", "--replay", "emulated", "--journal", "kept.db")
    assert "found" in asked.stdout, asked.stdout + asked.stderr
    folder.rename(base / "moved")
    (base / "q.sens").write_text((base / "q.sens").read_text().replace(f'"{folder.name}"', '"moved"'))
    again = run_command(base, "check", "q.sens", "--replay", "emulated", "--journal", "kept.db")
    assert "from the journal" in again.stdout, again.stdout + again.stderr


def test_a_certificate_names_the_folder_and_the_checker_reads_it(tmp_path: Path) -> None:
    folder = unpacked("forest_two", tmp_path / "models")
    (tmp_path / "q.sens").write_text(
        f'model m from "models/{folder.name}"\nquery q: find a in m such that prob(a) >= 1.01\n'
    )
    asked = run_command(tmp_path, "check", "q.sens", "--certificate", "proofs")
    assert asked.returncode == 0, asked.stdout + asked.stderr
    assert load(folder).ensemble.source.sha256 in next((tmp_path / "proofs").glob("*.trees.json")).read_text()
    place = f"models/{folder.name}"
    accepted = run_command(tmp_path, "verify", "proofs", "--model", place)
    assert accepted.returncode == 0, accepted.stdout + accepted.stderr
    (folder / "_SUCCESS").write_text("noted")
    assert run_command(tmp_path, "verify", "proofs", "--model", place).returncode == 0
    part = next(folder.glob("metadata/part-*"))
    part.write_text(part.read_text() + " ")
    rejected = run_command(tmp_path, "verify", "proofs", "--model", place)
    assert rejected.returncode == 10
    assert "not among the model files" in rejected.stdout


def test_a_name_that_stands_for_other_files_is_no_model(tmp_path: Path) -> None:
    """One file whose name holds the line of another one: the same list, and so the same SHA-256, without that file."""
    from treesens.extensions.treesens_verify.command import listed

    honest, forged = tmp_path / "honest", tmp_path / "forged"
    honest.mkdir()
    (honest / "a").write_text("one")
    (honest / "b").write_text("two")
    expected = listed(str(honest))
    second = expected.splitlines()[1].decode()
    forged.mkdir()
    (forged / f"a\n{second}").write_text("one")
    with pytest.raises(OSError, match="no plain text"):
        listed(str(forged))


@pytest.mark.parametrize(
    "output",
    [
        ("--certificate", "models/{}"),
        ("--certificate", "models/{}/proofs"),
        ("--markdown", "models/{}/report.md"),
        ("--markdown", "models/{}/metadata/part-00000"),
        ("--markdown", "link/new.md"),
    ],
)
def test_nothing_is_written_into_a_folder_that_is_the_model(output: tuple[str, str], tmp_path: Path) -> None:
    """With a file more in it the folder is another model than the one that the report names."""
    folder = unpacked("forest_two", tmp_path / "models")
    (tmp_path / "link").symlink_to(folder)
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (tmp_path / "q.sens").write_text(
        f'model m from "models/{folder.name}"\nquery q: find a in m such that prob(a) >= 1.01\n'
    )
    option, path = output
    asked = run_command(tmp_path, "check", "q.sens", option, path.format(folder.name))
    assert asked.returncode in (1, 2), asked.stdout + asked.stderr
    assert (
        "writing the file would change the model" in " ".join(asked.stderr.split()) or "another model" in asked.stderr
    )
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == files
    outside = run_command(tmp_path, "check", "q.sens", option, "models/beside")
    assert outside.returncode == 0, outside.stdout + outside.stderr


def test_an_audit_in_python_writes_nothing_into_its_model(folder: Path) -> None:
    with one_run(folder), pytest.raises(OverwriteError):
        write_atomically(folder / "report.html", "x")
    with one_run():
        will_write(folder / "report.html")
        with pytest.raises(OverwriteError):
            load(folder)


def test_workers_of_a_cluster_get_the_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They see none of our paths: the model that they read has the same digest."""
    from treesens.extensions.sweeps import worker
    from treesens.records.questions import document_of

    base = folder.parent
    document, session = document_of(
        "q.sens", f'model m from "{folder.name}"\nquery q: find a in m such that margin(a) >= 0', base
    )
    (digest,) = {sha for _, sha in document.files}
    assert digest == session.models["m"].ensemble.source.sha256
    shipment = worker.ship(document, remote=True)
    here = worker._session(worker.ship(document, remote=False))
    shutil.rmtree(folder)
    there = worker._session(shipment)
    assert there.models["m"].ensemble.source.sha256 == here.models["m"].ensemble.source.sha256 == digest


def test_an_editor_reads_a_folder_again_if_a_file_in_it_changes(folder: Path) -> None:
    library = Library()
    model = library.model(folder, None)
    assert library.model(folder, None) is model
    part = next(folder.glob("metadata/part-*"))
    told = folder_stamp(folder)
    part.write_text(part.read_text() + "\n")
    os.utime(part, ns=(told[0] + 10, told[0] + 10))
    again = library.model(folder, None)
    assert again is not model
    assert again.ensemble.source.sha256 != model.ensemble.source.sha256


# --- hostile folders ---------------------------------------------------------------------------------------------------------


def refused(folder: Path, reason: str) -> ModelError:
    with pytest.raises(ModelError, match=reason) as error:
        load(folder)
    assert str(folder) in error.value.place
    assert error.value.remedy
    return error.value


def test_links_are_refused(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    link = folder / "metadata" / "part-00001"
    link.symlink_to(secret)
    assert "cp -rL" in refused(folder, "`metadata/part-00001` is a link").remedy
    link.unlink()
    (folder / "stages" / "more").symlink_to(folder, target_is_directory=True)
    refused(folder, "`stages/more` is a link")
    (folder / "stages" / "more").unlink()
    # The folder itself may be given by a link.
    (tmp_path / "link").symlink_to(folder, target_is_directory=True)
    assert load(tmp_path / "link").ensemble.source.sha256 == load(folder).ensemble.source.sha256


def test_what_is_no_file_is_refused(folder: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("there are no pipes here")
    os.mkfifo(folder / "metadata" / "part-00001")
    refused(folder, "this is a pipe")


@pytest.mark.parametrize("name", ["line\nbreak", "back\\slash", "\x1b[31mred", "no\udcfftext"])
def test_names_that_are_no_plain_text_are_refused(name: str, folder: Path) -> None:
    try:
        (folder / name).write_text("x")
    except OSError:
        pytest.skip("the file system does not take the name")
    error = refused(folder, "not plain text")
    assert "\x1b" not in str(error)
    assert "\n" not in error.message


def test_folders_of_any_size_are_refused_in_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = folder.joinpath(*["d"] * 30)
    deep.mkdir(parents=True)
    refused(folder, "nested more than")
    shutil.rmtree(folder / "d")
    monkeypatch.setattr(folders, "MOST_FILES", 12)
    refused(folder, "more than 12 files")
    monkeypatch.setattr(folders, "MOST_FILES", 10_000)
    monkeypatch.setattr(folders, "MOST_BYTES", 2_000)
    refused(folder, "more than 2,000 bytes")


def test_folders_that_are_no_models_say_what_to_give(folder: Path, tmp_path: Path) -> None:
    assert "metadata" in refused(folder.parent, r"a folder \(not a regular file\) and not a model").remedy
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", r"a folder \(not a regular file\) and not a model")
    for name in ("xgboost", "h2o"):
        with pytest.raises(ModelError, match=f"and not a model of the format `{name}`"):
            load(folder, name)
    assert load(folder, "spark").frontend == "spark"
    with pytest.raises(ModelError, match="has no variant `best`"):
        load(folder, "spark:best")
    for part in folder.glob("metadata/part-*"):
        part.unlink()
    refused(folder, "found 0 lines of metadata")
    # A part of a pipeline has metadata of its own.
    (stage,) = (folder / "stages").glob("*_RandomForestClassifier_*")
    assert load(stage).ensemble.features[0].name == "f0"


def test_damaged_files_of_a_folder_are_refused(tmp_path: Path) -> None:
    folder = unpacked("forest_two", tmp_path / "models")
    files = read_folder(folder)
    rng = random.Random(3)
    refusals = 0
    for _ in range(25):
        name = rng.choice(sorted(files))
        (folder / name).write_bytes(damaged(files[name], rng))
        try:
            load(folder).ensemble.validate()
        except TreesensError:
            refusals += 1
        (folder / name).write_bytes(files[name])
    assert refusals > 12
    for name in files:
        (folder / name).unlink()
        with pytest.raises(ModelError):
            load(folder)
        (folder / name).write_bytes(files[name])
    assert load(folder).ensemble.n_trees > 0


def test_spark_itself_reads_the_folder(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pip install pyspark, and Java")
    if shutil.which("java") is None:
        pytest.skip("Java is not here")
    from treesens.extensions.conformance import formats as conformance

    conformance.check(in_java(load(unpacked("pipeline_keep", tmp_path))), rows=20).raise_if_wrong()
