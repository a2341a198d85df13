"""Errors planted in the C++ engine: which, and how the engine is built with one of them.

One copy of the engine serves all errors, so that only what an error touches is compiled anew. It has a build folder for its own
tests, and one for the extension, which is built if these tests do not find the error.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.oracle.mutation import Mutation

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "mutations"
TREE = BUILD / "tree"

ENGINE_MUTATIONS = (
    Mutation(
        "a proof at larger bounds answers smaller ones", "engine/search.cpp",
        r"goal_\.bound\.begin\(\), std::less_equal<>\(\)\)\) \{", "goal_.bound.begin(), std::greater_equal<>())) {",
        test="tests/engine/test_brute.py",
    ),
    Mutation(
        "a search that begins in parts forgets half of its bound", "engine/prove/parts.cpp",
        r"root_\.upper = std::min\(root_\.upper, proved_upper\(\)\);",
        "root_.upper = level_ + (std::min(root_.upper, proved_upper()) - level_) / 2;",
    ),
    Mutation(
        "the bound of a part is half as far from the level", "engine/prove/parts.cpp",
        r"std::max\(part_->proved_upper\(\), level_ - 1\)",
        "std::max(level_ + (part_->proved_upper() - level_) / 2, level_ - 1)",
    ),
    Mutation(
        "nodes of a crew that wait have no bound", "engine/prove/work_sharing.cpp",
        r"    for \(const OpenNode& s : waiting_\) bound = std::max\(bound, s\.upper\);\n", "",
    ),
    Mutation(
        "a crew is finished with its first member", "engine/prove/work_sharing.cpp",
        r"first_\.finished\(\) &&\n.*;", "first_.finished();",
    ),
    Mutation(
        "cells of a part are off by one", "engine/prove/parts.cpp",
        r"allowed\[problem_\.cell_offset\[v\] \+ k\] = node_\.has\(v, k\);",
        "allowed[problem_.cell_offset[v] + k] = node_.has(v, k) && !(k > 0 && k + 1 < problem_.size[v] && "
        "!node_.has(v, k + 1));",
    ),
    Mutation(
        "rows are rounded down", "engine/problem/rounding.hpp",
        r"return quotient \+ \(value % unit > 0\);", "return quotient;",
    ),
    Mutation(
        "messages of a literal leave out its last segments", "engine/bound/factors.cpp",
        r"literal_second\.push_back\(line \+ high - \(1 << level\) \+ 1\)", "literal_second.push_back(line + low)",
    ),
    Mutation(
        "entries change places without their ranges", "engine/bound/messages.cpp",
        r"std::swap\(column_\[set_\.slot_column\[s\] \+ i\], column_\[set_\.slot_column\[s\] \+ other\]\);", "(void)s;",
    ),
    Mutation(
        "messages are rounded down", "engine/problem/rounding.hpp",
        r"return nearest \+ 1\.0;", "return nearest - 1.0;",
    ),
    Mutation(
        "the slack of rounded leaves is forgotten near rows", "engine/nearest/pair_search.cpp",
        r"goal\.top - w\.low \* goal\.bottom - w\.high \* goal\.slack", "goal.top - w.low * goal.bottom + w.high * goal.slack",
    ),
    Mutation(
        "pairs near rows need a little more than is asked", "engine/nearest/pair_search.cpp",
        r"upper < goal_\.top \|\|", "upper <= goal_.top ||",
    ),
    Mutation(
        "least values of trees outside of a choice are too high", "engine/measure/box_ranges.cpp",
        r"for \(Wide& v : result_\.apart_lower\) v \+= least;",
        "for (Wide& v : result_.apart_lower) v += least + (most - least) / 2;",
    ),
    Mutation(
        "trees that no choice changes reach too little", "engine/measure/box_ranges.cpp",
        r"result_\.upper\[at\(t\)\] \+= cuts_\.high\(root, t\);",
        "result_.upper[at(t)] += cuts_.low(root, t) + (cuts_.high(root, t) - cuts_.low(root, t)) / 2;",
    ),
    Mutation(
        "open nodes are no better than the dive at work", "engine/prove/open_nodes.cpp",
        r"rest_\.empty\(\) \? INT64_MIN : rest_\.front\(\)\.upper", "INT64_MIN",
    ),
    Mutation(
        "a node that is decided exactly counts nowhere", "engine/prove/tree_search.cpp",
        r"count_in\(std::max\(level_ - 1, s\.hard >= 0 \? s\.soft : INT64_MIN\)\);", "",
    ),
    Mutation(
        "the last value of a variable is not split off", "engine/prove/overlap_prover.cpp",
        r"frame\.other\.keep\(variable, low_first \? cut \+ 1 : 0, low_first \? last : cut\);",
        "frame.other.keep(variable, low_first ? cut + 1 : 0, low_first ? std::max(last - 1, cut + 1) : cut);",
    ),
    Mutation(
        "a bundle of trees loses the bound that was proved", "engine/provers.cpp",
        r"retired_upper_ = std::min\(retired_upper_, known\);",
        "retired_upper_ = std::min(retired_upper_, incumbent.present() ? incumbent.score.soft : known);",
    ),
    Mutation(
        "the largest value of a row is taken of one tree less", "engine/provers.cpp",
        r"for \(std::int32_t g = 0; g < problem_\.groups\(\); \+\+g\) \{\n(\s+)const auto rows",
        r"for (std::int32_t g = 1; g < problem_.groups(); ++g) {\n\1const auto rows",
    ),
    Mutation(
        "flips of rows leave out the last cell", "engine/ensemble/flip_profiles.cpp",
        r"k < feature_cells; \+\+k",
        "k < std::max(feature_cells - 1, 1); ++k",
    ),
    Mutation(
        "a relation refutes a box that just meets it", "engine/bound/join.cpp",
        r"high_\[rays\.other\] < best", "high_[rays.other] <= best",
    ),
    Mutation(
        "a region grows over a leaf that it must not meet", "engine/regions/region_grower.cpp",
        r"if \(least < row\.bound\) return false;", "if (least < row.bound - 1) return false;",
    ),
    Mutation(
        "an end that is cut off from a proof of boxes is a cell too long", "engine/prove/overlap_prover.cpp",
        r"tree_->cut_off\(v, low\[v\] - 1, true, refuting_\);", "tree_->cut_off(v, low[v], true, refuting_);",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "a proof of boxes goes on in the end that is cut off", "engine/prove/overlap_prover.hpp",
        r"this->cut\(variable, cut, !low\)", "this->cut(variable, cut, low)",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "both sides of a cut in a proof of boxes are the other one", "engine/certify/certifier.cpp",
        r"waiting\.push_back\(node\.high\);\n(\s+)waiting\.push_back\(node\.low\);",
        r"waiting.push_back(node.low);\n\1waiting.push_back(node.high);",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "a leaf of a proof of boxes names the first row alone", "engine/certify/certifier.cpp",
        r"for \(const std::int32_t r : layer\.rows\) proof\.multiplier\[first \+ r\] = 1;",
        "proof.multiplier[first + layer.rows[0]] = 1;",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "trees of rows that cancel are apart in a proof of boxes", "engine/certify/certifier.cpp",
        r"if \(layer\.rows\.size\(\) > 1\) return;", "if (layer.rows.size() > 2) return;",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "the end that a layer refutes is said to be refuted by another one", "engine/prove/overlap_prover.cpp",
        r"refuting_ = losses_\.high_by\(v\);", "refuting_ = losses_.low_by(v);",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "a proof of boxes goes on where it was and not at the side that waits", "engine/prove/overlap_prover.cpp",
        r"if \(tree_ != nullptr\) tree_->go_to\(frame\.place\);", "",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "a proof of boxes goes on after a point that it cannot refute", "engine/prove/tree_search.cpp",
        r'if \(met\.present\(\)\) return "a point was met that cannot be refuted";', "",
    ),
    Mutation(
        "points share trees that ask for what varies", "engine/levels/cell_problem.cpp",
        r"one\.variable\[f\] == other\.variable\[f\] && ", "",
    ),
    Mutation(
        "a tree that points share counts for the first one alone", "engine/levels/cell_problem.cpp",
        r"for \(const std::int32_t point : group\.points\)", "for (const std::int32_t point : {group.points[0]})",
    ),
    Mutation(
        "a search within a region looks anywhere", "engine/local/block_moves.cpp",
        r"mine\[k\] = region->has\(v, k\);", "mine[k] = mine[k] != 0 || region->has(v, k);",
    ),
    Mutation(
        "places of a move are not told apart at the end of a leaf", "engine/local/block_moves.cpp",
        r"if \(range\.high\[2\] \+ 1 < c\.width\) .*;", "",
        test="tests/engine/test_brute.py",
    ),
    Mutation(
        "what a row has to spare makes up for what others miss", "engine/local/block_moves.cpp",
        r"std::clamp<std::int64_t>\(slack, -most_missed_, 0\)", "std::max(slack, -most_missed_)",
    ),
    Mutation(
        "a leaf that holds for the first cells of a block only is left out", "engine/local/block_moves.cpp",
        r"range\.high\[0\] == size_\[0\] - 1 && range\.low\[1\]", "range.low[1]",
    ),
)  # fmt: skip


def sources_of_engine() -> set[Path]:
    """What the engine and its own tests are built of. Their folders hold Python, too, and what Python compiles of it."""
    folders = (ROOT / "src" / "treesens" / "engine", ROOT / "tests" / "cpp")
    return {
        ROOT / "CMakeLists.txt",
        *(p for folder in folders for ends in ("?pp", "h") for p in folder.rglob(f"*.{ends}")),
    }


def plant(mutation: Mutation, text: str) -> None:
    """Puts an error into the copy of the engine; `text` is the changed file."""
    source = ROOT / "src" / "treesens" / "engine"
    sources = sources_of_engine()
    for path in sources:
        planted = path.is_relative_to(source) and str(path.relative_to(source.parent)) == mutation.file
        _bring(path, TREE / path.relative_to(ROOT), text if planted else None)
    for path in [old for old in TREE.rglob("*.*") if old.is_file() and ROOT / old.relative_to(TREE) not in sources]:
        path.unlink()  # of a tree that has moved since


def extension() -> Path:
    """The extension with the error that was planted last. The module lies in the build folder of all errors."""
    nanobind = subprocess.run(
        [sys.executable, "-m", "nanobind", "--cmake_dir"], capture_output=True, text=True, check=True
    ).stdout.strip()
    options = [
        "-DSKBUILD=ON",
        "-DSKBUILD_SABI_COMPONENT=",
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-Dnanobind_DIR={nanobind}",
    ]
    return next(_build("build", options, ["_engine"]).glob("_engine*.so"))


def fails_by_itself(problems: Path) -> str:
    """The test of the engine alone that fails with the error that was planted last; empty if none does.

    Compiling it takes most of the time: a dozen files at once, little optimised, and no extension.
    """
    options = ["-DTREESENS_CPP_TESTS=ON", "-DCMAKE_CXX_FLAGS_RELEASE=-O1"]
    folder = _build("tests", options, ["engine_tests", "run_modules"])
    if subprocess.run([folder / "engine_tests"], capture_output=True, check=False).returncode:
        return "unit tests of the engine (make cpp-test)"
    if subprocess.run([folder / "run_modules", problems], capture_output=True, check=False).returncode:
        return "brute force over random problems of the engine (make cpp-test)"
    return ""


def _build(name: str, options: Sequence[str], targets: Sequence[str]) -> Path:
    """A build folder of the copy, in which the targets are made."""
    folder = BUILD / name
    if not (folder / "build.ninja").exists():
        _run("cmake", "-S", str(TREE), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *options)
    _run("cmake", "--build", str(folder), "--target", *targets)
    return folder


def _bring(source: Path, target: Path, text: str | None) -> None:
    """Copies a file, or a changed text of it, only if it is not there already: what is untouched is not compiled again."""
    wanted = source.read_text() if text is None else text
    if target.exists() and target.read_text() == wanted:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(wanted)
    shutil.copymode(source, target)


def _run(*command: str) -> None:
    tools = Path(sys.executable).parent
    done = subprocess.run([str(tools / command[0]), *command[1:]], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-1000:]}")
