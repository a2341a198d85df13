"""Damaged and hostile files end in an error that says what and where: no traceback, no hang, no gigabytes for a few bytes."""

from __future__ import annotations

import copy
import json
import os
import random
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command import CLI, run_command
from tests.hostile import fuzz
from tests.hostile.mutations import OTHERS, json_text, of_tree
from tests.hostile.samples import MAKERS, write_samples
from tests.trials import trials
from treesens.compiler.base.files import check_writable, write_atomically
from treesens.errors import TreesensError, UsageError

posix = pytest.mark.skipif(os.name != "posix", reason="pipes and devices with names")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    write_samples(made / "samples")
    return made


def run(
    folder: Path, *arguments: str, given: str | None = None, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """A command with 3 GB of address space (most of it for libraries)."""
    done = run_command(folder, *arguments, given=given or "", timeout=timeout, limits={"RLIMIT_AS": 3 << 30})
    assert "Traceback" not in done.stderr, done.stderr
    return done


def changed(folder: Path, name: str, change: Callable[[dict], None]) -> str:  # type: ignore[type-arg]
    document = json.loads((folder / "samples" / "xgboost-categories.json").read_text())
    change(document["learner"]["gradient_booster"]["model"])
    (folder / name).write_text(json.dumps(document))
    return name


def _nodes(model: dict) -> None:  # type: ignore[type-arg]
    model["trees"][0]["tree_param"]["num_nodes"] = str(10**30)


def _category(model: dict) -> None:  # type: ignore[type-arg]
    for tree in model["trees"]:
        if tree["categories"]:
            tree["categories"][-1] = 16777214


def _rounds(model: dict) -> None:  # type: ignore[type-arg]
    model["iteration_indptr"][0] = model["iteration_indptr"][-1]


@pytest.mark.parametrize(
    ("change", "words"),
    [(_nodes, "num_nodes"), (_category, "category code is out of range"), (_rounds, "iteration_indptr")],
)
def test_numbers_of_a_model_file_are_bounded(folder: Path, change: Callable[[dict], None], words: str) -> None:  # type: ignore[type-arg]
    """Faults 14, 16 and 22: a damaged `iteration_indptr` gave other margins than the library's; a category code of 7 KB took
    3 GB; a number of nodes beyond 64 bits was a traceback.
    """
    done = run(folder, "info", changed(folder, "changed.json", change))
    assert done.returncode == 2
    assert words in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("variables ", "variables 5000000000 #", "line"),
        ("feature ", 'feature "x" 99999999999999999999\nfeature ', "line"),
        ("variables=", "variables=2147483648,", "line"),
        ("variables=", "variables=0..9999999999,", "line"),
        ("coefficients=", "coefficients=1,", "R8"),
    ],
)
def test_numbers_of_a_module_are_bounded(folder: Path, old: str, new: str, words: str) -> None:
    """Fault 22: tracebacks and gigabytes for a few bytes of `.sir`."""
    text = (folder / "samples" / "module.sir").read_text()
    assert old in text
    (folder / "m.sir").write_text(text.replace(old, new))
    done = run(folder, "opt", "m.sir")
    assert done.returncode == 2
    assert words in done.stderr


def test_an_objective_of_unequal_lengths_breaks_a_rule(folder: Path) -> None:
    """Fault 22: an IndexError of the engine's adapter."""
    text = (folder / "samples" / "module.sir").read_text()
    (folder / "m.sir").write_text(
        text + 'maximize variables=0,1 coefficients=1 constant=0 shift=0 surrogate=0 kind="x"\n'
    )
    done = run(folder, "opt", "m.sir")
    assert done.returncode == 2
    assert "I001" in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "time_limit = " + "9" * 400,
        "seed = -1",
        "threads = 1e999",
        "time_limit = nan",
        "gaps = [1e99999999]",
        "random = {size = 2, count = 99999999999}",
    ],
)
def test_numbers_of_a_sweep_are_bounded(folder: Path, line: str) -> None:
    """Fault 22: a long number in a SPEC was a traceback."""
    (folder / "samples" / "s.toml").write_text(f'models = ["xgboost.json"]\nmargins = [0.5]\n{line}\n')
    done = run(folder / "samples", "sweep", "s.toml")
    assert done.returncode == 2
    assert "s.toml:3" in done.stderr


def test_integers_beyond_the_floats_do_not_matter_where_nobody_reads_them(folder: Path) -> None:
    """Fault 20: an int64 column beyond 2**53 of a Parquet file was a traceback."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {name: [0.1, 0.2] for name in "acd"} | {
        "b": [0, 1],
        "id": [2**62 + 1, 2**53 + 1],
        "u": pyarrow.array([2**64 - 1, 0], pyarrow.uint64()),
    }
    parquet.write_table(pyarrow.table(columns), folder / "samples" / "big.parquet")
    (folder / "samples" / "big.sens").write_text(
        'model m from "xgboost.json"\ndata d from "big.parquet"\nquery q: find p such that p = row 1 of d; margin(p) >= -9\n'
    )
    done = run(folder / "samples", "check", "big.sens")
    assert done.returncode == 0, done.stderr


def test_true_and_false_are_one_and_zero(tmp_path: Path) -> None:
    """Columns that pandas makes of categories (`get_dummies`) were text where the model reads a number."""
    from treesens.data.tables import read_table

    (tmp_path / "t.csv").write_text("a,b,c\nTrue,yes,\nFalse,True,true\n")
    table = read_table(tmp_path / "t.csv")
    assert table.numbers("a").tolist() == [1.0, 0.0]
    assert table.columns["b"].tolist() == ["yes", "True"]
    assert table.numbers("c").tolist()[1] == 1.0


@posix
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("info", "X"),
        ("check", "X.sens"),
        ("opt", "X.sir"),
        ("sweep", "X.toml"),
        ("audit", "samples/xgboost.json", "--data", "X"),
    ],
)
def test_only_regular_files_are_read(tmp_path: Path, folder: Path, kind: str, arguments: tuple[str, ...]) -> None:
    """Fault 18: a pipe given as a file blocked for ever."""
    (tmp_path / "samples").symlink_to(folder / "samples")
    name = next(a for a in arguments if a.startswith("X"))
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    elif kind == "device":
        (tmp_path / name).symlink_to("/dev/zero")
    else:
        (tmp_path / name).mkdir()
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert "not a regular file" in done.stderr


@posix
def test_a_pipe_named_in_a_question_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.json")
    (tmp_path / "q.sens").write_text('model m from "m.json"\nquery q: sensitive m to a margin 1\n')
    done = run(tmp_path, "check", "q.sens")
    assert done.returncode == 2
    assert "not a regular file" in done.stderr


def test_a_damaged_page_of_a_journal_is_an_error(folder: Path) -> None:
    """Fault 22: pages that SQLite finds damaged in the middle of a sweep were a traceback."""
    from treesens.errors import DataError
    from treesens.records.journal import Journal

    data = bytearray((folder / "samples" / "journal.sqlite").read_bytes())
    size = int.from_bytes(data[16:18], "big")
    rng = random.Random(3)
    data[size * 2 :] = rng.randbytes(len(data) - size * 2)
    (folder / "damaged.sqlite").write_bytes(bytes(data))
    with pytest.raises(DataError, match="journal"), Journal(folder / "damaged.sqlite") as journal:
        list(journal.entries())


@posix
def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """Fault 24: `fmt` cut the user's file off where the disk was full."""
    text = "query  q:\n  find   a such that a.x >= 1\n" * 400
    (tmp_path / "q.sens").write_text(text)
    done = subprocess.run(
        [*CLI, "fmt", "q.sens"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 1, done.stderr
    assert "cannot be written" in done.stderr
    assert (tmp_path / "q.sens").read_text() == text
    assert [p.name for p in tmp_path.iterdir()] == ["q.sens"]


def test_files_are_replaced_whole_and_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640
    check_writable(tmp_path / "real")
    with pytest.raises(UsageError, match="cannot be written"):
        check_writable(tmp_path / "absent" / "x")
    with pytest.raises(UsageError, match="cannot be written"):
        check_writable(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "real"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", "xgboost.json", "--data", "table.csv", "--label", "y", "--report", "/nope/r.html"),
        ("sweep", "sweep.toml", "--report", "/nope/r.csv"),
        ("bench", "list.jsonl", "--models", ".", "--plot", "/nope/p.svg"),
    ],
)
def test_a_report_that_cannot_be_written_is_said_before_the_work(folder: Path, arguments: tuple[str, ...]) -> None:
    """A report path in a folder that is not there: a traceback after all the work, and no table."""
    done = run(folder / "samples", *arguments)
    assert done.returncode == 1
    assert "cannot be written" in done.stderr
    assert done.stdout == ""


QUESTIONS = """model m from "xgboost.json"
query good: find p such that margin(p) >= -9
query bad: find p such that p.nope >= 1
query other: find p such that margin(p) <= 9
query some: for each f in {a, nope}: sensitive m to f margin 0.1
"""


def test_a_mistake_in_one_query_costs_the_others_nothing(folder: Path) -> None:
    """Fault 19: an error of binding in one query stopped all others of the file, also those asked by name."""
    place = folder / "samples"
    (place / "mixed.sens").write_text(QUESTIONS)
    for jobs in ("1", "2"):
        done = run(place, "check", "mixed.sens", "--json", "-j", jobs)
        assert done.returncode == 2
        assert [r["query"] for r in json.loads(done.stdout)["results"]] == ["good", "other", "some[a]"]
        assert "mixed.sens:3:31: error[E103]" in done.stderr
    by_name = run(place, "check", "mixed.sens", "good")
    assert (by_name.returncode, by_name.stderr) == (0, "")
    assert run(place, "check", "mixed.sens", "bad").returncode == 2
    assert run(place, "check", "mixed.sens", "gode").returncode == 1
    for command in (("explain",), ("emit", "--to", "smt2", "-o", "out"), ("compare", "-b", "native,z3")):
        done = run(place, command[0], "mixed.sens", *command[1:])
        assert done.returncode == 2, done.stderr
        assert done.stdout or (place / "out" / "good.smt2").is_file()


def test_in_python_a_mistake_in_one_query_costs_the_others_nothing(folder: Path) -> None:
    """Fault 19, for `treesens.check`."""
    import treesens

    path = folder / "samples" / "python.sens"
    path.write_text(QUESTIONS)
    answers = treesens.check(path)
    assert list(answers) == ["good", "other", "some[a]"]
    assert set(answers.errors) == {"bad", "some"}
    with pytest.raises(TreesensError, match="no feature `nope`"):
        answers["bad"]
    assert list(treesens.check(path, "good")) == ["good"]
    with pytest.raises(TreesensError, match="no feature `nope`"):
        treesens.check(path, "bad")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"time_limit": "a"}, "`time_limit` is 'a'"),
        ({"time_limit": -5}, "`time_limit` is -5"),
        ({"time_limit": float("nan")}, "`time_limit` is nan"),
        ({"threads": 0}, "`threads` is 0"),
        ({"memory_limit": -1}, "`memory_limit` is -1"),
        ({"replay": "foo"}, "`replay` is 'foo'"),
        ({"pipeline": 5}, "`pipeline` is 5"),
        ({"backend": None}, "`backend` is None"),
        ({"seed": "x"}, "`seed` is 'x'"),
        ({"seed": 10**20}, "`seed` is 1000"),
        ({"timelimit": 3}, "did you mean `time_limit`"),
    ],
)
def test_options_are_checked_before_anything_is_asked(folder: Path, options: dict, words: str) -> None:  # type: ignore[type-arg]
    """Raw TypeErrors, or no error at all where a row answered first."""
    import treesens

    with pytest.raises(UsageError, match=words):
        treesens.check(folder / "absent.sens", **options)
    with pytest.raises(UsageError, match=words):
        treesens.sensitivity(str(folder / "samples" / "xgboost.json"), vary=["a"], margin=0.1, **options)


@pytest.mark.parametrize(
    "arguments",
    [("--seed", "-1"), ("--seed", "99999999999999999999"), ("-t", "nan"), ("-t", "inf"), ("--threads", "0")],
)
def test_numbers_of_the_command_line_are_checked(folder: Path, arguments: tuple[str, ...]) -> None:
    """Fault 22: `--seed -1` and a seed beyond 64 bits were tracebacks."""
    done = run(folder / "samples", "check", "question.sens", *arguments)
    assert done.returncode == 1
    assert arguments[0] in done.stderr


def test_questions_come_from_standard_input(folder: Path) -> None:
    """`fmt -` was documented, and read a file called `-`."""
    text = 'model m from "xgboost.json"\nquery   q: find p such that margin(p) >= -9\n'
    formatted = run(folder / "samples", "fmt", "-", given=text)
    assert formatted.returncode == 0
    assert "query q: find p such that margin(p) >= -9" in formatted.stdout
    done = run(folder / "samples", "check", "-", "--json", given=text)
    assert json.loads(done.stdout)["results"][0]["verdict"] == "found"


@pytest.mark.slow
def test_a_slice_of_the_mutated_files_stays_within_the_limits(folder: Path) -> None:
    """Some files of every format; `make fuzz-files` takes many more."""
    formats = [name for name in MAKERS if (folder / "samples" / name).is_file() and name != "treelite.tl"]
    totals = fuzz.run(folder, formats, 7, seconds=30, cases=len(trials(1500)))
    assert [text for total in totals.values() for text in total.bad] == []
    assert sum(total.outcomes["read"] for total in totals.values()) > 0
    assert sum(total.outcomes["refused"] for total in totals.values()) > 0


def test_a_mutated_file_does_not_depend_on_those_before(folder: Path) -> None:
    """Files shared the lists that were put into them, so that a list could come to hold itself: two readers of a long run
    ended because the mutation itself had failed, and the same case alone was fine.
    """
    data = (folder / "samples" / "lightgbm.json").read_bytes()
    alone = [fuzz.mutated(data, "lightgbm.json", 14, number) for number in (0, 1, 2)]
    for number in range(3, 400):
        fuzz.mutated(data, "lightgbm.json", 14, number)
    assert [fuzz.mutated(data, "lightgbm.json", 14, number) for number in (0, 1, 2)] == alone
    values = copy.deepcopy(OTHERS)
    document = {"a": [1.0] * 30, "b": {"c": [2.0] * 30, "d": "x"}}
    for seed in range(3000):
        json_text(of_tree(copy.deepcopy(document), random.Random(seed)), random.Random(seed))
    assert values == OTHERS
