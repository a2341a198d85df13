"""Asks treesens, through its public interface only."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.oracle.cases import Case
from tests.oracle.judge import HURRIES, TIME_LIMIT, Finding, Judged, judge
from tests.oracle.language import text_of
from tests.oracle.naming import with_names
from tests.oracle.schedules import draw_left_out, draw_schedule, scheduled, without

SOLVERS = ["cpsat", "highs", "cbc", "scip", "z3", "pb"]
BACKENDS = ["native", "auto", "auto", *SOLVERS]
PIPELINES = ["kant", "ensense", "default", "bounded", "independent"]
REFUSALS = ("E216", "E219", "E220", "E306", "E311", "E312")
"""What the reference lets treesens refuse: forms that it does not know, values that can never be taken."""
CONTRADICTIONS = ("E309",)
"""Errors that say `none`."""
UNCERTAIN = "the names of categories in the file may be those of"
"""What a reader says of a file that does not state which columns its names belong to: names are refused and answers are codes,
which the reference does not know."""
HURRIED = 0.04
"""Share of the cases that are asked in a hurry: what an answer says must be true also if time ends it."""
LONG_WAY = 2.0
"""Seconds of a question without the methods that suit it best: it may stay open, and must not be answered wrongly."""
TOLERANCES = (0.0, 0.0, 0.0, 0.0, 1e-6, 1e-6, 1e-6, 0.05)


def draw_options(rng: np.random.Generator, others: float, backend: str | None = None) -> dict[str, Any]:
    """Mostly the native engine; another backend with a pipeline for a share `others`, or the one that is named."""
    options: dict[str, Any] = {"backend": "native", "time_limit": TIME_LIMIT, "seed": int(rng.integers(3))}
    if backend is not None or rng.random() < others:
        options["backend"] = backend or str(rng.choice(BACKENDS[1:]))
        options["pipeline"] = str(rng.choice(PIPELINES))
    elif rng.random() < 0.25:
        options["pipeline"] = str(rng.choice(PIPELINES))
    if options["backend"] in ("native", "auto") and rng.random() < 0.15:
        options["confirm"] = "library"
    options["replay"] = "library" if rng.random() < 0.1 else "emulated"
    if options["backend"] in ("native", "auto"):
        options["schedule"], options["threads"] = draw_schedule(rng)
    # Half of all optima to the last unit, the others as usual or loosely: then they have to say so.
    options["tolerance"] = float(rng.choice(TOLERANCES))
    if rng.random() < HURRIED:
        options["time_limit"] = float(rng.choice(HURRIES))
    if options["backend"] in ("native", "auto"):
        options["left_out"] = draw_left_out(rng)
        if options["left_out"]:
            options["time_limit"] = min(options["time_limit"], LONG_WAY)
    return options


def ask(case: Case, questions: list[dict[str, Any]], options: dict[str, Any]) -> dict[str, Any]:
    """The records by name of the question, or its error; a text that answers nothing is asked question by question."""
    import treesens as ts

    options = replayed_here(case, options)
    models = {name: loaded(case, name) for name in case.models}
    text = case.header() + "\n" + "\n".join(dict.fromkeys(text_of(q) for q in questions))
    try:
        with scheduled(options.get("schedule", "")), without(options.get("left_out", "")):
            told = {name: value for name, value in options.items() if name not in ("schedule", "left_out")}
            text, swept = with_names(text)
            answers = ts.check_text(text, models=models, data=case.sources, **told)
    except Exception as error:  # noqa: BLE001 - whatever comes is a finding
        if len(questions) > 1:
            out: dict[str, Any] = {}
            for question in questions:
                out |= ask(case, [question], options)
            return out
        return {questions[0]["name"]: error}
    out = {swept.get(name, name): answers[name].to_dict() for name in answers}
    errors = {swept.get(name, name): error for name, error in answers.errors.items()}
    wrong = {q["name"]: errors.get(q["name"]) for q in questions}
    # The mistake of one question of a `for each` is listed under the name of them all.
    wrong |= {name: errors.get(name.partition("[")[0]) for name in wrong if name not in out}
    for question in questions:
        error = wrong[question["name"]]
        if error is None:
            continue
        # An error may name the mistakes of other questions, too.
        alone = len(questions) > 1 and str(error).count("error[") > 1
        out |= ask(case, [question], options) if alone else {question["name"]: error}
    return out


def replayed_here(case: Case, options: dict[str, Any]) -> dict[str, Any]:
    """The options without a library that is not there: JPMML needs Java, and a scorecard has none."""
    if all(model.frontend not in ("pmml", "scorecard") for model in case.models.values()):
        return options
    return {name: value for name, value in options.items() if name != "confirm"} | {"replay": "emulated"}


def loaded(case: Case, name: str) -> Any:
    """The model as treesens loads it, once."""
    import treesens as ts

    key = f"loaded {name}"
    if key not in case.models[name].__dict__:
        case.models[name].__dict__[key] = ts.load(case.models[name].source)
    return case.models[name].__dict__[key]


def names_are_known(case: Case) -> bool:
    return not any(UNCERTAIN in note for name in case.models for note in loaded(case, name).notes)


def run_case(case: Case, options: dict[str, Any], questions: list[dict[str, Any]] | None = None) -> list[Judged]:
    """All questions of a case, asked and judged."""
    wanted = case.questions if questions is None else questions
    if not names_are_known(case):
        return [Judged("refused", [], "names") for _ in wanted]
    records = ask(case, wanted, options)
    return [judged(case, q, records.get(q["name"]), options) for q in wanted]


def judged(case: Case, question: dict[str, Any], record: Any, options: dict[str, Any]) -> Judged:
    if record is None:
        return Judged("wrong", [Finding("lost", "no record", question, options)])
    if isinstance(record, dict):
        return judge(case, question, record, options)
    text = f"{type(record).__name__}: {record}"
    codes = [c for c in (*REFUSALS, *CONTRADICTIONS) if f"[{c}]" in text]
    if any(c in CONTRADICTIONS for c in codes):
        none = {"verdict": "none", "reason": text, "objective": None, "as_expected": question.get("expect") != "some"}
        if question.get("count"):
            return Judged("refused", [], codes[0])
        return judge(case, question, none, options)
    if codes:
        return Judged("refused", [], codes[0])
    return Judged("wrong", [Finding("error", text[:1500], question, options)])
