"""Draws studies of a case (audit, gap, count, sets, range, shape, why, robust, diff, groups, reasons, learn), asks them, and
judges every record.
"""

from __future__ import annotations

import io
import json
import tempfile
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np

from tests.oracle.cases import WIDEST, Case, save_case
from tests.oracle.decisions import declaration, draw_decision, outcomes
from tests.oracle.judge import HURRIES
from tests.oracle.language import Node, constraint
from tests.oracle.models_sklearn import WITHOUT_SCORES
from tests.oracle.questions import Draw, case_of_decision
from tests.oracle.spaces import Feature, number, quoted
from tests.oracle.study import Asked, Study
from tests.oracle.study_pairs import judge_audit, judge_count, judge_gap, judge_outcomes, judge_range, judge_sets
from tests.oracle.study_rows import (
    draw_rules_table,
    judge_changed_outcomes,
    judge_diff,
    judge_learn,
    judge_robust,
    judge_why,
    tabled,
)
from tests.oracle.study_scores import favourable_node, judge_groups, judge_reasons, judge_shape

MARGINS = ["0", "0.125", "0.25", "0.5", "1"]
GAPS = ["0", "0.05", "0.1", "0.2", "0.3"]
THRESHOLDS = {"0.2": GAPS[:3], "0.35": GAPS[:4], "0.5": GAPS, "0.75": GAPS[:4]}
DIFFERENCES = ["0.125", "0.25", "0.5", "1", "2"]
MEASURES = ["uniform", "cells", "marginals", "rows", "chow-liu"]
NORMS = ["linf", "l2", "l1", "l0"]
PRINTED = 0.3
"""Share of the studies that are asked on the command line."""
TIME_LIMIT = 20.0
HURRIED = 0.15
"""Share of the studies that are asked in a hurry."""
EXIT_CODES = (0, 5)


@dataclass
class StudyFinding:
    """Something wrong about one study."""

    study: Study
    kind: str
    detail: str
    case: Case


@dataclass
class Studied:
    """What the studies of a case came to: records by study, and what is wrong."""

    records: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    findings: list[StudyFinding] = field(default_factory=list)


class Refused(Exception):
    """The reference lets treesens refuse this question."""


def run_studies(case: Case) -> Studied:
    """All studies of a case."""
    rng = np.random.default_rng([13, case.seed])
    out = Studied()
    with tempfile.TemporaryDirectory(prefix="oracle-studies-") as folder:
        asking = Asking(case, rng, Path(folder), out)
        if case.models["m"].link != "counted":  # which has no score to be changed
            for study in (
                asking.audit,
                asking.outcomes,
                asking.gap,
                asking.count,
                asking.sets,
                asking.range,
                asking.shape,
            ):
                study()
        asking.learn()
        table = tabled(case, rng)
        if table is not None:
            asking = Asking(table, rng, Path(folder) / "table", out)
            for study in (asking.why, asking.robust, asking.diff, asking.groups, asking.reasons):
                study()
    return out


class Asking:
    """Asks the studies of one case, and judges them."""

    def __init__(self, case: Case, rng: np.random.Generator, folder: Path, out: Studied) -> None:
        self.case, self.rng, self.folder, self.out = case, rng, folder, out
        self.model, self.source, self.label = case.models["m"], case.sources["D"], case.labels["D"]
        folder.mkdir(exist_ok=True)
        lines = [declared(f) for f in case.features]
        text = "\n".join(x for x in lines if x) + "\n" + "\n".join(
            x for x in case.world.space.declarations().splitlines() if x.startswith("onehot")
        )  # fmt: skip
        self.domain = folder / "domain.sens"
        self.domain.write_text(text + "\n")
        # A table of other rows than those that are judged, or a domain that the table makes, is another question.
        self.plain = case.domain is None and "D" not in case.limits and self.model.link != "votes"
        self.plain &= len(lines) == len([x for x in lines if x]) and case.world.tables["D"].inside.any()

    @property
    def raw(self) -> bool:
        """Whether the oracle knows the raw scores: of a calibrated model, and of a vote, it has probabilities alone."""
        return self.case.trainer not in WITHOUT_SCORES

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def limit(self) -> float:
        """Seconds of a study: at times so few that much has to stay open, and nothing may be false."""
        return float(self.pick(HURRIES)) if self.chance(HURRIED) else TIME_LIMIT

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    # What is asked -------------------------------------------------------------------------------------------------------

    def asked(self, *, single: bool = False) -> Asked:
        """Sizes, a cut-off and classes that suit the model (docs/cli.md, audit)."""
        model = self.model
        count = 1 if single else int(self.rng.integers(1, 4))
        if model.kind == "regression":
            return Asked("margin" if model.link == "exp" else "gap", self.some(DIFFERENCES, count))
        if len(model.classes) == 2:
            if self.chance(0.3):
                threshold = self.pick(list(THRESHOLDS))
                classes = [self.pick(model.classes)] if self.chance(0.3) else []
                return Asked("gap", self.some(THRESHOLDS[threshold], count), threshold, classes)
            # A mean of several models has no raw score: a margin is refused.
            if model.linear or self.chance(0.9 if self.case.trainer == "vote" else 0.4):
                return Asked("gap", self.some(GAPS, count))
            return Asked("margin", self.some(MARGINS, count))
        if self.chance(0.35):
            chosen = [self.pick(model.classes)]
            if model.linear and self.chance(0.5):
                threshold = self.pick(list(THRESHOLDS))
                return Asked("gap", self.some(THRESHOLDS[threshold], count), threshold, chosen)
            return Asked("gap" if model.linear else "margin", self.some(DIFFERENCES[:3], count), None, chosen)
        two = sorted(self.rng.permutation(len(model.classes))[:2]) if self.chance(0.2) else []
        return Asked(
            "margin", self.some(GAPS if model.linear else MARGINS, count), None, [model.classes[i] for i in two]
        )

    def some(self, options: list[str], count: int) -> list[str]:
        kept = self.rng.permutation(len(options))[:count]
        return [options[i] for i in sorted(kept)]

    def varied(self) -> list[tuple[str, ...]]:
        """Features, several at once, and one-hot groups as one."""
        units = [(f.name,) for f in self.case.features if f.group is None]
        groups = sorted({f.group for f in self.case.features if f.group is not None})
        units.extend(tuple(f.name for f in self.case.features if f.group == group) for group in groups)
        sets = list(units)
        if len(units) > 1:
            for _ in range(int(self.rng.integers(1, 3))):
                one, two = self.rng.permutation(len(units))[:2]
                sets.append((*units[one], *units[two]))
        return list(dict.fromkeys(sets))

    # Asking --------------------------------------------------------------------------------------------------------------

    def run(self, study: Study, judge: Callable[[Any, Callable[[str, str], None]], int | None]) -> None:
        """Asks and judges; `judge` may return how many records there are, if it is not the length of the answer."""

        def wrong(kind: str, detail: str) -> None:
            if kind in ("open", "lost") and study.arguments.get("time_limit", TIME_LIMIT) < TIME_LIMIT:
                return
            self.out.findings.append(StudyFinding(study, kind, detail, self.case))

        try:
            answer = self.answer(study)
        except Refused as refusal:
            self.out.refused[study.name] = self.out.refused.get(study.name, 0) + 1
            if not allowed(str(refusal)):
                wrong("error", str(refusal))
            return
        except Exception:  # noqa: BLE001 - whatever comes is a finding
            wrong("error", traceback.format_exc()[-1200:])
            return
        count = judge(answer, wrong)
        told = len(answer) if count is None else count
        self.out.records[study.name] = self.out.records.get(study.name, 0) + told

    def answer(self, study: Study) -> Any:
        """The records, by the Python interface or on the command line."""
        import treesens as ts
        from treesens import errors

        if study.printed:
            return self.command(study)
        arguments = {k: v for k, v in study.arguments.items() if v is not None}
        try:
            if study.name == "learn":
                return ts.learn_rules(study.frame, **arguments)
            if study.name == "diff":
                old, new = arguments.pop("models")
                return ts.diff(
                    self.case.models[old].source, self.case.models[new].source, self.source, **arguments
                ).record
            data = [] if arguments.pop("no_data", False) else [self.source]
            found = getattr(ts, study.name)(self.model.source, *data, **arguments).records
        except errors.TreesensError as error:
            raise Refused(str(error)) from error
        return json.loads(json.dumps(found, default=float))

    def command(self, study: Study) -> Any:
        """The same by the command that the package installs."""
        words = [study.name] if study.name != "learn" else ["learn", "rules"]
        arguments = dict(study.arguments)
        frame = self.case.frames["D"] if study.frame is None else study.frame
        table = self.folder / "table.parquet"
        frame.to_parquet(table)
        words.extend(self.file(name) for name in arguments.pop("models", ["m"] if study.name != "learn" else []))
        if study.name == "learn":
            words.append(str(table))
        elif not arguments.pop("no_data", False):
            words += ["--data", str(table)]
        words += flags(study.name, arguments)
        if study.name != "learn":
            words.append("--trust-pickle")
            words += ["--format", self.model.form] if self.model.form else []
        (main,) = (e.load() for e in entry_points(group="console_scripts") if e.name == "treesens")
        out, said = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
        code: Any = 0
        with redirect_stdout(out), redirect_stderr(said):
            try:
                main([*words, "--json"])
            except SystemExit as end:
                code = end.code
        for stream in (out, said):
            stream.flush()
        if code not in EXIT_CODES:
            raise Refused(f"exit code {code}: {said.buffer.getvalue().decode()[-1000:]} of {' '.join(words)}")  # type: ignore[attr-defined]
        told = json.loads(out.buffer.getvalue().decode())  # type: ignore[attr-defined]
        return (
            told.get("results", told.get("records", told.get("rows", told)))
            if study.name not in {"diff", "learn"}
            else told
        )

    def file(self, name: str) -> str:
        model = self.case.models[name]
        if isinstance(model.source, str) and not model.form:
            return model.source
        assert model.save is not None
        place = self.folder / name
        place.mkdir(exist_ok=True)
        return str(place / model.save(place))

    @property
    def one_form(self) -> bool:
        """Whether one format names both models, as commands take it."""
        return len({model.form for model in self.case.models.values()}) == 1

    def study(self, name: str, **arguments: Any) -> Study:
        if self.label is not None and name != "learn":
            arguments["label"] = self.label
        return Study(name, arguments, self.chance(PRINTED) and self.one_form)

    # Studies of pairs ----------------------------------------------------------------------------------------------------

    def audit(self) -> None:
        if not self.plain:
            return
        asked, sets = self.asked(), self.varied()
        measure = self.measure() if self.chance(0.2) else None
        study = self.study(
            "audit", vary=[list(s) for s in sets], domain=str(self.domain), time_limit=self.limit(), jobs=1,
            **({"measure": measure} if measure else {}), **asked.arguments(),
        )  # fmt: skip
        self.run(study, lambda r, wrong: judge_audit(self.case, r, asked, sets, wrong))

    def policy(self) -> tuple[Node, Path] | None:
        """A decision and the file that holds it; None if it has one outcome alone."""
        world = self.case.world
        d = Draw(self.rng, world.space, self.case.models, world.points, world.tables, WIDEST)
        policy = draw_decision(d, ["a", "m"], case_of_decision)
        if len(outcomes(policy)) < 2:
            return None
        place = self.folder / f"{policy[0]}.sens"
        place.write_text(declaration(policy, constraint).replace(" of a in m:", " of a:"))
        return policy, place

    def outcomes(self) -> None:
        """An audit by the outcomes of a decision. Its cases name features by the labels that the domain file declares."""
        if not self.plain:
            return
        sets, drawn = self.varied(), self.policy()
        if drawn is None:
            return
        policy, place = drawn
        study = self.study(
            "audit", vary=[list(s) for s in sets], domain=str(self.domain), time_limit=self.limit(), jobs=1,
            decision=str(place),
        )  # fmt: skip
        self.run(study, lambda r, wrong: judge_outcomes(self.case, r, policy, sets, wrong))

    def gap(self) -> None:
        if not self.plain or not self.raw:
            return
        asked, sets = self.asked(single=True), self.varied()
        if self.model.kind != "regression":  # a gap has no unit of its own: that of the model
            natural = "gap" if asked.threshold is not None or self.model.linear else "margin"
            several = len(self.model.classes) > 2 and len(asked.classes) != 1
            asked = replace(asked, kind="margin" if several else natural)
        close = float(self.pick([0.02, 0.02, 1e-6]))
        study = self.study(
            "gap", vary=[list(s) for s in sets], domain=str(self.domain), time_limit=self.limit(), threads=1,
            close=close, **asked.arguments(sizes=False),
        )  # fmt: skip
        self.run(study, lambda r, wrong: judge_gap(self.case, r, asked, sets, close, wrong))

    def measure(self) -> str:
        known = [m for m in MEASURES if m != "cells" or self.model.celled]
        if not all(f.discrete for f in self.case.features) or all(
            f.missing and len(f.typed) == 1 for f in self.case.features
        ):
            known.remove("uniform")
        if not self.model.celled:
            known.remove("chow-liu")
        return str(self.pick(known))

    def count(self) -> None:
        if not self.plain:
            return
        asked, sets, measure = self.asked(), self.varied(), self.measure()
        study = self.study(
            "count", vary=[list(s) for s in sets], domain=str(self.domain), time_limit=self.limit(), measure=measure,
            seed=int(self.rng.integers(3)), **asked.arguments(),
        )  # fmt: skip
        self.run(study, lambda r, wrong: judge_count(self.case, r, asked, sets, measure, wrong))

    def sets(self) -> None:
        if not self.plain or len(self.case.features) > 6:
            return
        asked = self.asked(single=True)
        features = [f.name for f in self.case.features]
        arguments = asked.arguments()
        arguments[asked.kind] = arguments[asked.kind][0]
        study = self.study("sets", features=features, domain=str(self.domain), time_limit=self.limit(), **arguments)
        self.run(study, lambda r, wrong: judge_sets(self.case, r, asked, features, wrong))

    def range(self) -> None:
        if not self.plain or not self.raw or self.model.link == "exp":
            return
        study = replace(self.study("range", domain=str(self.domain), time_limit=self.limit(), threads=1), printed=True)
        self.run(study, lambda r, wrong: judge_range(self.case, r, [], wrong))

    def shape(self) -> None:
        if not self.plain or not self.raw:
            return
        names = [f.name for f in self.case.features]
        ordered = [f.name for f in self.case.features if f.kind != "category" and f.codes == "number"]
        claimed = [str(n) for n in self.rng.permutation(ordered)[:2]] if self.chance(0.4) else []
        study = self.study(
            "shape", features=names, domain=str(self.domain), time_limit=self.limit(), increasing=claimed[:1],
            decreasing=claimed[1:],
        )  # fmt: skip
        self.run(study, lambda r, wrong: judge_shape(self.case, r, names, wrong))

    # Studies of rows -----------------------------------------------------------------------------------------------------

    def rows(self) -> list[int]:
        count = len(self.case.frames["D"])
        return sorted(int(r) for r in self.rng.permutation(count)[: int(self.rng.integers(4, 13))])

    def why(self) -> None:
        rows, names = self.rows(), [f.name for f in self.case.features]
        arguments: dict[str, Any] = {"rows": rows, "time_limit": self.limit()}
        if self.chance(0.4):
            arguments["most"] = int(self.rng.integers(2, 5))
        elif self.chance(0.5):
            arguments["smallest"] = True
        if self.chance(0.3):
            arguments["without"] = [str(n) for n in self.rng.permutation(names)[: int(self.rng.integers(1, 3))]]
        drawn = self.policy() if self.chance(0.3) else None
        if drawn is not None:
            arguments["decision"] = str(drawn[1])
        elif self.model.kind == "regression":
            return
        elif self.chance(0.4):
            arguments["also"] = ["radius", "recourse"]
        study = self.study("why", **arguments)
        policy = None if drawn is None else drawn[0]
        self.run(study, lambda r, wrong: judge_why(self.case, r, rows, arguments, wrong, policy))

    def robust(self) -> None:
        if self.model.kind == "regression":
            return
        for norm in self.rng.permutation(NORMS)[:2]:
            rows, targeted = self.rows(), self.chance(0.3)
            study = self.study("robust", rows=rows, norm=str(norm), targeted=targeted, time_limit=self.limit())
            self.run(study, lambda r, w, n=str(norm), t=targeted, k=rows: judge_robust(self.case, r, k, n, t, w))

    def favourable(self) -> tuple[str, str | None, dict[str, Any]]:
        """The favourable class, a cut-off if there is one, and the arguments that say so."""
        two = len(self.model.classes) == 2
        chosen = str(self.model.classes[1]) if two and self.chance(0.5) else str(self.pick(self.model.classes))
        scored = two and self.model.link != "counted"
        threshold = str(self.pick(list(THRESHOLDS))) if scored and self.chance(0.3) else None
        return (
            chosen,
            threshold,
            {"favourable": chosen, **({} if threshold is None else {"threshold": float(threshold)})},
        )

    def groups(self) -> None:
        if self.model.kind == "regression":
            return
        names, (chosen, threshold, arguments) = [f.name for f in self.case.features], self.favourable()
        by = [[str(n) for n in self.rng.permutation(names)[:size]] for size in ((1, 2) if len(names) > 1 else (1,))]
        limits = {"ratio": float(self.pick([0.8, 0.5, 1.0])), "smallest": float(self.pick([0.02, 0.2, 0.0]))}
        study = self.study("groups", by=by, time_limit=self.limit(), **limits, **arguments)
        node = favourable_node(self.case, chosen, threshold)
        self.run(study, lambda r, wrong: judge_groups(self.case, r, by, node, limits, wrong))

    def reasons(self) -> None:
        if len(self.model.classes) != 2:
            return
        names, (chosen, threshold, arguments) = [f.name for f in self.case.features], self.favourable()
        rows = self.rows() if self.chance(0.7) else None
        how: dict[str, Any] = {
            "most": int(self.rng.integers(1, 5)),
            "way": str(self.pick(["change", "change", "values"])),
        }
        if self.chance(0.4):
            how["protected"] = [str(n) for n in self.rng.permutation(names)[: int(self.rng.integers(1, 3))]]
        study = self.study("reasons", rows=rows, time_limit=self.limit(), **how, **arguments)
        node = favourable_node(self.case, chosen, threshold)
        self.run(study, lambda r, wrong: judge_reasons(self.case, r, rows, node, {**how, "favourable": chosen}, wrong))

    def diff(self) -> None:
        if self.model.link == "votes" or not self.raw:
            return
        new = "n" if "n" in self.case.models else "m"
        if new == "m" and self.model.shorten is not None and self.model.trees > 1 and self.chance(0.8):
            self.shortened()
            new = "short"
        pair = ["m", new] if self.chance(0.5) else [new, "m"]
        drawn = self.policy() if self.chance(0.4) else None
        decided = {} if drawn is None else {"decision": str(drawn[1])}
        study = self.study("diff", models=pair, time_limit=self.limit(), **decided)

        def judge(record: Any, wrong: Any) -> int:
            judge_diff(self.case, record, pair[0], pair[1], wrong)
            if drawn is not None:
                judge_changed_outcomes(self.case, record["outcomes"], drawn[0], pair[0], pair[1], wrong)
            return len(record["scores"]) + record["data"]["rows"]

        self.run(study, judge)

    def shortened(self) -> None:
        """The model with its first trees, as a second one."""
        from tests.oracle.models import evaluate

        assert self.model.shorten is not None
        model = self.model.shorten(max(1, self.model.trees // 2))
        model.name, model.coded, model.celled = "short", self.model.coded, self.model.celled
        self.case.models["short"] = model
        self.case.world.points = {**self.case.world.points, "short": evaluate(model, self.case.world.space)}

    def learn(self) -> None:
        frame, share = draw_rules_table(self.rng), float(self.pick([0.0, 0.0, 0.05, 0.2]))
        study = Study("learn", {"exceptions": share}, self.chance(PRINTED), frame)
        self.run(study, lambda r, wrong: judge_learn(frame, r, share, wrong))


def allowed(text: str) -> bool:
    """What the reference says that a study refuses."""
    return any(
        words in text
        for words in (
            "and the model never gives both",  # a gap that probabilities have no room for
            "a gap of 0 needs a cut-off",
            "is wider than the largest number",  # no distance has a unit there
            "the model predicts a raw margin, not a probability",
            "averages the probabilities of several",  # a study about scores has no word for means of probabilities
            "a mean of several models has no raw score",
            "takes whole numbers only",  # a decision compares a number that is whole with another one
            "shares need constraints on scores",  # the decision of a calibrated model has alternatives
        )
    )


def declared(f: Feature) -> str | None:
    """The declaration of a feature; one is made for those that have none."""
    if f.declaration is not None:
        return f"feature {quoted(f.name)}: {f.declaration}"
    values = [v for v in f.user if not np.isnan(v)]
    if f.kind == "real":
        return f"feature {quoted(f.name)}: real in [{number(min(values))}, {number(max(values))}]"
    if f.codes == "label":
        return f"feature {quoted(f.name)}: category {{{', '.join(f.text_of(v) for v in f.typed)}}}"
    return None


def flags(study: str, arguments: dict[str, Any]) -> list[str]:
    """Arguments of a function as options of its command."""
    names = {"rows": "--row", "most": "--all"} if study == "why" else {}
    out: list[str] = []
    for name, value in arguments.items():
        option = names.get(name, f"--{name.replace('_', '-')}")
        if value is None or value is False:
            continue
        if value is True:
            out.append(option)
        elif name in ("vary", "by"):
            for one in value:
                out += [option, ",".join(one)]
        elif isinstance(value, list):
            out += [option, ",".join(str(v) for v in value)]
        else:
            out += [option, str(value)]
    return out


def record_of(found: StudyFinding, seed: int, folder: Path | None) -> dict[str, Any]:
    """A failure as the parent adds it up; with a folder, its files are written for a reproduction."""
    case = found.case
    name = f"{found.kind.replace(' ', '-')}-{seed}-{found.study.name}"
    record = {
        "kind": found.kind, "seed": seed, "query": found.study.name, "detail": found.detail, "frontend": case.trainer,
        "options": {"study": str(found.study)}, "text": str(found.study),
    }  # fmt: skip
    if folder is None:
        return record
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    case.models.pop("short", None)
    save_case(case, place)
    if found.study.frame is not None:
        found.study.frame.to_parquet(place / "rules.parquet")
    (place / "EXPECTED.txt").write_text(
        f"{found.kind}: {found.detail}\n\nseed {seed}, {case.trainer}\n{found.study}\n\n"
        + "\n".join(declared(f) or "" for f in case.features)
        + f"\n{case.world.space.declarations()}\n"
    )
    return record | {"folder": str(place)}
