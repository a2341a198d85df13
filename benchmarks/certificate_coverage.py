"""Which share of what is claimed has an accepted certificate: published instances, the oracle's questions, examples, studies.

    python -m benchmarks.certificate_coverage [--bench DIR] [--seeds N] [--models N] [--only GROUP] [--seconds S]

DIR is the folder of published models (`benchmarks/published.py`). The oracle draws its questions by seed, about models of all
libraries (`tests/oracle`). Studies are asked on their command, about small models of XGBoost and tables drawn by seed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.certificate_groups import EXAMPLES, train_examples
from benchmarks.certificate_rows import Models
from benchmarks.published import FOLDER, VERDICTS
from click.testing import CliRunner
from tests.extensions.certify.models import train
from tests.oracle.cases import draw_case
from tests.oracle.language import text_of

from treesens.binder.file import ResolvedFile, ResolvedQuestion, bind
from treesens.cli import group as commands
from treesens.compiler.base.diagnostics import Diagnostics
from treesens.compiler.result import Result, Verdict
from treesens.errors import TreesensError
from treesens.extensions.sweeps.instances import read_instances
from treesens.grammar.parsing.parser import parse
from treesens.python.questions import bound_tree
from treesens.solve.options import Options
from treesens.solve.question import answer_question

STUDIES = {
    "sets": "sets m.json --data d.csv --margin 0.1",
    "why": "why m.json --data d.csv",
    "diff": "diff m.json n.json --data d.csv",
    "diff equal": "diff m.json turned.json --data d.csv",
}


@dataclass(frozen=True)
class Told:
    """One claim: the kind of what is claimed, and why it has no certificate; empty if it has."""

    group: str
    kind: str
    name: str
    reason: str


def of_result(group: str, name: str, result: Result) -> Iterator[Told]:
    """The claims of an answer, each once."""

    def reason(*claims: str) -> str:
        mine = [one for one in result.certificates if not claims or one.claim in claims]
        return next((one.reason for one in mine if not one.path), "" if mine else "nothing was made")

    if result.count is not None or result.ranked is not None or result.explanation is not None:
        yield Told(group, "counts, lists, reasons", name, reason())
    elif result.verdict is Verdict.NONE:
        yield Told(group, "none", name, reason("none"))
    elif result.verdict is Verdict.FOUND:
        yield Told(group, "found", name, reason("found"))
    if result.ranked is None and result.objective is not None and result.objective.bound is not None:
        yield Told(group, "bound", name, reason("bound"))


def answers(group: str, questions: list[ResolvedQuestion], asked: argparse.Namespace, prefix: str) -> Iterator[Told]:
    for question in questions:
        with tempfile.TemporaryDirectory() as folder:
            options = Options(time_limit=asked.seconds, certificates=Path(folder), regions=False)
            try:
                result = answer_question(question, options)
            except TreesensError as error:
                print(f"{prefix}{question.name}: no answer: {error}", flush=True)
                continue
            yield from of_result(group, f"{prefix}{question.name}", result)


def published(asked: argparse.Namespace) -> Iterator[Told]:
    """The `none` of the 582 instances."""
    models = Models(asked.bench / "models")
    for instance in read_instances(VERDICTS):
        if instance.known == "none":
            yield from answers("published", [models.question(instance)], asked, f"{instance.key} ")


def oracle(asked: argparse.Namespace) -> Iterator[Told]:
    for seed in range(1, asked.seeds + 1):
        case = draw_case(seed, 24)
        sources = {name: model.source for name, model in case.models.items()}
        for question in case.questions:
            try:
                tree = parse(case.header() + "\n" + text_of(question), "<oracle>")
                bound: ResolvedFile = bound_tree(tree, sources, case.sources, Diagnostics())
            except TreesensError:
                continue  # what the language refuses claims nothing
            yield from answers("oracle", list(bound.queries), asked, f"seed {seed} {case.trainer} ")


def examples(asked: argparse.Namespace) -> Iterator[Told]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in EXAMPLES.glob("*.*"):
            shutil.copy(path, folder)
        train_examples(folder / "out")
        for path in sorted(folder.glob("[!d]*.sens")):  # demo.sens has a model of its own
            yield from answers(
                "examples", bind(parse(path.read_text(), str(path)), folder).queries, asked, f"{path.name} "
            )


def studies(asked: argparse.Namespace) -> Iterator[Told]:
    """By command; every claim of a manifest, and every one that it names as having none."""
    for seed in range(1, asked.models + 1):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_models(folder, seed)
            for study, text in STUDIES.items():
                words = [str(folder / w) if w.endswith((".json", ".csv")) else w for w in text.split()]
                done = CliRunner().invoke(commands, [*words, "-q", "--certificate", str(folder / study)])
                for path in (folder / study).glob("*.manifest.json"):
                    manifest = json.loads(path.read_text())
                    yield from (Told("studies", study, f"model {seed}", "") for _ in manifest["claims"])
                    for one in manifest["about"]["without"]:
                        yield Told("studies", study, f"model {seed} {one['claim']}", one["reason"])
                if not (folder / study).exists():
                    yield Told("studies", study, f"model {seed}", done.stderr.strip() or "no manifest")


def write_models(folder: Path, seed: int) -> None:
    """Two models, one of them once more with its trees in another order, and a table of ten rows."""
    train(seed, folder / "m.json", trees=10, depth=3)
    train(seed + 1000, folder / "n.json", trees=10, depth=3)
    document = json.loads((folder / "m.json").read_text())
    booster = document["learner"]["gradient_booster"]["model"]
    for name in ("trees", "tree_info"):
        booster[name] = booster[name][::-1]
    for number, tree in enumerate(booster["trees"]):
        tree["id"] = number
    (folder / "turned.json").write_text(json.dumps(document))
    rows = np.random.default_rng(seed).integers(0, 4, (10, 3)) / 2
    (folder / "d.csv").write_text("f0,f1,f2\n" + "".join(",".join(map(str, row)) + "\n" for row in rows.tolist()))


GROUPS: dict[str, Callable[[argparse.Namespace], Iterator[Told]]] = {
    "published": published, "oracle": oracle, "examples": examples, "studies": studies,
}  # fmt: skip


def table(told: list[Told]) -> str:
    """Shares by group and kind, and the reasons of what has none."""
    lines = ["| claims | kind | how many | with an accepted certificate |", "| --- | --- | ---: | ---: |"]
    for group, kind in dict.fromkeys((one.group, one.kind) for one in told):
        mine = [one for one in told if (one.group, one.kind) == (group, kind)]
        share = sum(not one.reason for one in mine) / len(mine)
        lines.append(f"| {group} | {kind} | {len(mine)} | {share:.1%} |")
    reasons = Counter((one.group, one.kind, one.reason) for one in told if one.reason)
    lines += ["", *(f"- {g}, {kind}: {count} of {reason}" for (g, kind, reason), count in reasons.most_common())]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bench", type=Path, default=FOLDER)
    parser.add_argument("--seeds", type=int, default=40, help="Cases of the oracle.")
    parser.add_argument("--models", type=int, default=20, help="Models of studies.")
    parser.add_argument("--only", choices=GROUPS, help="One group alone.")
    parser.add_argument("--seconds", type=float, default=10.0, help="Seconds per answer, and at least 10 per proof.")
    asked = parser.parse_args()
    told = []
    for name, group in GROUPS.items():
        for one in group(asked) if asked.only in (None, name) else ():
            told.append(one)
            if one.reason:
                print(f"{one.group} {one.name}, {one.kind}: {one.reason}", flush=True)
    print(table(told))


if __name__ == "__main__":
    main()
