"""Changes that must keep an answer, or move it in one direction only: one table of relations over random questions.

Models are those of XGBoost, and where scores are added in another way those with leaves on a grid, whose sums are exact in any
order. Questions are those of the oracle, which judges the answers themselves. A relation compares two answers and needs no
truth.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.oracle.cases import Case, draw_case
from tests.oracle.language import text_of
from tests.oracle.models_boosted import folder

Question = dict[str, Any]
Document = dict[str, Any]
QUESTIONS, SECONDS = 8, 10.0
"""Questions of a case, and the time of each; questions that need more stay open."""
LEARNT = re.compile(r" of D| of E|distance|likel|typical|cavit|near |share|changes|count rows|explain")
"""Questions whose meaning rests on the domain as a whole, or on rows."""


@dataclass(frozen=True)
class Asked:
    """Questions by name (several, if together they are equivalent to one), and the other changes to the case."""

    questions: dict[str, list[Question]]
    files: dict[str, Path] = field(default_factory=dict)
    header: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


Change = Callable[[Case, list[Question], np.random.Generator], Asked]


@dataclass(frozen=True)
class Relation:
    """`kind`: the answer is the `same`, the question is `easier` or `harder`, or has `none`."""

    name: str
    kind: str
    change: Change
    other_sums: bool = False
    """True if scores are added in another way, or exact sums are distinguished from float32 sums: the same only for leaves on a
    grid.
    """


def _questions(change: Callable[[Question, np.random.Generator], list[Question] | None]) -> Change:
    """A change that is applied to each question in turn; None where it does not fit."""

    def changed(_case: Case, questions: list[Question], rng: np.random.Generator) -> Asked:
        made = {q["name"]: change(q, rng) for q in questions}
        return Asked({name: new for name, new in made.items() if new is not None})

    return changed


def _constraints(change: Callable[[list[Any]], list[Any]]) -> Change:
    def changed(question: Question, _rng: np.random.Generator) -> list[Question] | None:
        return [question | {"constraints": change(question["constraints"])}] if question.get("constraints") else None

    return _questions(changed)


def _split(case: Case, questions: list[Question], rng: np.random.Generator) -> Asked:
    """Two questions: with a constraint of another question, and with its contrary."""
    del case
    made = {}
    for q in questions:
        others = [o for o in questions if o.get("points") == q.get("points") and o.get("constraints") and o is not q]
        if not others or not q.get("constraints") or q.get("count") or q.get("top") or q.get("share"):
            continue
        pool = others[int(rng.integers(len(others)))]["constraints"]
        extra = pool[int(rng.integers(len(pool)))]
        made[q["name"]] = [q | {"constraints": [*q["constraints"], one]} for one in (extra, ["not", extra])]
    return Asked(made)


def _other_sense(question: Question, _rng: np.random.Generator) -> list[Question] | None:
    if not question.get("objective") or question.get("top"):
        return None
    sense, terms = question["objective"]
    if sense not in ("minimize", "maximize") or not all(re.fullmatch(r"-?[\d.]+", str(t[0])) for t in terms):
        return None
    turned = [[str(t[0])[1:] if str(t[0]).startswith("-") else f"-{t[0]}", *t[1:]] for t in terms]
    return [question | {"objective": ["maximize" if sense == "minimize" else "minimize", turned], "negated": True}]


def _larger_gap(question: Question, _rng: np.random.Generator) -> list[Question] | None:
    wording = str(question.get("wording") or "")
    changed = re.sub(r"\b(gap|margin) (\d+\.\d{1,4})\d*", lambda m: f"{m[1]} {float(m[2]) + 0.0625}", wording)
    return [question | {"wording": changed}] if changed != wording else None


def _options(**options: Any) -> Change:
    def changed(_case: Case, questions: list[Question], _rng: np.random.Generator) -> Asked:
        return Asked({q["name"]: [q] for q in questions}, options=options)

    return changed


def _file(change: Callable[[Document, np.random.Generator], None], ending: str = "json") -> Change:
    """A change of every model's file."""

    def changed(case: Case, questions: list[Question], rng: np.random.Generator) -> Asked:
        import xgboost

        files = {}
        for name, model in case.models.items():
            one, other = folder() / f"changed-{name}.json", folder() / f"changed-again-{name}.{ending}"
            booster = xgboost.Booster(model_file=model.source)
            booster.save_model(one)
            document = json.loads(one.read_text())
            if document["learner"]["gradient_booster"]["name"] != "gbtree":
                return Asked({})  # DART: each tree has a weight of its own
            change(document, rng)
            one.write_text(json.dumps(document))
            # The library reads and rewrites the file: a file that it does not accept is not a model.
            xgboost.Booster(model_file=one).save_model(other)
            files[name] = other
        return Asked({q["name"]: [q] for q in questions}, files)

    return changed


def _keep(_document: Document, _rng: np.random.Generator) -> None:
    """The same in another format."""


def _put(document: Document, trees: list[Document], classes: list[int]) -> None:
    model = document["learner"]["gradient_booster"]["model"]
    model["trees"] = [tree | {"id": i} for i, tree in enumerate(trees)]
    model["tree_info"] = classes
    model["gbtree_model_param"]["num_trees"] = str(len(trees))
    outputs = max(classes) + 1
    model["iteration_indptr"] = (
        list(range(0, len(trees) + 1, outputs)) if len(trees) % outputs == 0 else [0, len(trees)]
    )


def _trees(document: Document) -> list[tuple[Document, int]]:
    model = document["learner"]["gradient_booster"]["model"]
    return list(zip(model["trees"], model["tree_info"], strict=True))


def _reversed(document: Document, _rng: np.random.Generator) -> None:
    found = _trees(document)[::-1]
    _put(document, [t for t, _ in found], [c for _, c in found])


def _shuffled(document: Document, rng: np.random.Generator) -> None:
    found = _trees(document)
    found = [found[i] for i in rng.permutation(len(found))]
    _put(document, [t for t, _ in found], [c for _, c in found])


def _with_leaves(tree: Document, change: Callable[[float], float]) -> Document:
    """A tree with other leaves; their values are stored where inner nodes have their thresholds."""
    leaves = [left == -1 for left in tree["left_children"]]
    values = [change(v) if leaf else v for v, leaf in zip(tree["split_conditions"], leaves, strict=True)]
    return tree | {"split_conditions": values}


def _halved(document: Document, _rng: np.random.Generator) -> None:
    found = [(_with_leaves(t, lambda v: v / 2), c) for t, c in _trees(document)]
    _put(document, [t for t, _ in found + found], [c for _, c in found + found])


def _with_nothing(document: Document, _rng: np.random.Generator) -> None:
    found = _trees(document)
    nothing = [(_with_leaves(t, lambda _v: 0.0), c) for t, c in found]
    _put(document, [t for t, _ in nothing + found], [c for _, c in nothing + found])


def _there_and_back(document: Document, _rng: np.random.Generator) -> None:
    """Every tree once more, and once with its leaves negated."""
    found = _trees(document)
    back = [(_with_leaves(t, lambda v: -v), c) for t, c in found]
    _put(document, [t for t, _ in found + found + back], [c for _, c in found + found + back])


def _constants(document: Document, _rng: np.random.Generator) -> None:
    """A half more in every leaf of the first tree of each class, a half less in those of a copy that has nothing else."""
    found, seen, made = _trees(document), set[int](), []
    for tree, c in found:
        if c not in seen:
            seen.add(c)
            made += [(_with_leaves(tree, lambda v: v + 0.5), c), (_with_leaves(tree, lambda _v: -0.5), c)]
        else:
            made.append((tree, c))
    _put(document, [t for t, _ in made], [c for _, c in made])


def _features_turned(document: Document, _rng: np.random.Generator) -> None:
    learner = document["learner"]
    last = len(learner["feature_names"]) - 1
    learner["feature_names"] = learner["feature_names"][::-1]
    learner["feature_types"] = learner["feature_types"][::-1]
    for tree, _ in _trees(document):
        leaves = [left == -1 for left in tree["left_children"]]
        tree["split_indices"] = [i if leaf else last - i for i, leaf in zip(tree["split_indices"], leaves, strict=True)]


def _wider(case: Case, questions: list[Question], _rng: np.random.Generator) -> Asked:
    header = re.sub(r"(integer in \[-?\d+, )(-?\d+)\](?! stored)", lambda m: f"{m[1]}{int(m[2]) + 1}]", case.header())
    kept = [q for q in questions if not LEARNT.search(text_of(q))]
    return Asked({q["name"]: [q] for q in kept} if header != case.header() else {}, header=header)


def _swapped(question: Question, _rng: np.random.Generator) -> list[Question] | None:
    if len(question.get("points") or ()) != 2 or question.get("wording") or question.get("explain"):
        return None
    return [question | {"points": question["points"][::-1]}]


def _itself(case: Case, questions: list[Question], _rng: np.random.Generator) -> Asked:
    """No input has two scores: a question about a model and a copy of its file."""
    del questions
    same = {"name": "itself", "wording": "find a in m, b in copy such that\n    a = b\n    margin(a) - margin(b) > 0"}
    if case.models["m"].kind == "multi":
        return Asked({})
    header = 'model copy from "copy"\n' + case.header()
    return Asked({"itself": [same]}, {"copy": Path(case.models["m"].source)}, header)


RELATIONS = (
    Relation("clauses in another order", "same", _constraints(lambda c: c[::-1])),
    Relation("a clause once more", "same", _constraints(lambda c: [*c, c[0]])),
    Relation("a clause that is always true", "same", _constraints(lambda c: [["or", [c[-1], ["not", c[-1]]]], *c])),
    Relation("a clause negated twice", "same", _constraints(lambda c: [["not", ["not", c[0]]], *c[1:]])),
    Relation("all clauses as one", "same", _constraints(lambda c: [["not", ["or", [["not", x] for x in [c[0], *c]]]]])),
    Relation("a clause fewer", "easier", _constraints(lambda c: c[1:] or [["or", [c[0], ["not", c[0]]]]])),
    Relation("a clause or its contrary", "same", _split, other_sums=True),
    Relation("points the other way round", "same", _questions(_swapped)),
    Relation("the other sense of the negated objective", "same", _questions(_other_sense)),
    Relation("a larger gap", "harder", _questions(_larger_gap)),
    Relation("a wider domain", "easier", _wider),
    Relation("a model and itself", "none", _itself),
    Relation("another seed", "same", _options(seed=17)),
    Relation("two threads", "same", _options(threads=2)),
    Relation("the pipeline `kant`", "same", _options(pipeline="kant")),
    Relation("the pipeline `independent`", "same", _options(pipeline="independent")),
    Relation("the file as JSON", "same", _file(_keep)),
    Relation("the file as UBJSON", "same", _file(_keep, "ubj")),
    Relation("trees from the last to the first", "same", _file(_reversed), other_sums=True),
    Relation("trees in any order", "same", _file(_shuffled), other_sums=True),
    Relation("trees twice with half of their leaves", "same", _file(_halved), other_sums=True),
    Relation("trees that add nothing", "same", _file(_with_nothing), other_sums=True),
    Relation("trees added and taken away", "same", _file(_there_and_back), other_sums=True),
    Relation("a constant in one tree and out of another", "same", _file(_constants), other_sums=True),
    Relation("features from the last to the first", "same", _file(_features_turned)),
)  # fmt: skip


def plain(case: Case) -> Asked:
    """The questions as they were drawn."""
    return Asked({q["name"]: [q] for q in asked_of(case)})


def asked_of(case: Case) -> list[Question]:
    """Questions that keep their meaning when they are written a little differently; loops are several in one text."""
    return [q | {"expect": None} for q in case.questions if not q.get("loop") and not q.get("explain")]


def ask(case: Case, asked: Asked, options: dict[str, Any]) -> dict[str, list[Any]]:
    """The records by name of the question; an error is a text."""
    import treesens as ts
    from treesens.errors import TreesensError

    sources = {name: model.source for name, model in case.models.items()} | asked.files
    models = {name: ts.load(source) for name, source in sources.items()}
    header = asked.header if asked.header is not None else case.header()
    named = {
        name: [q | {"name": f"{name} {i}"} for i, q in enumerate(questions)]
        for name, questions in asked.questions.items()
    }
    out: dict[str, list[Any]] = {}
    for name, questions in named.items():
        out[name] = []
        for one in questions:
            try:
                answers = ts.check_text(
                    header + "\n" + text_of(one), models=models, data=case.sources, **(options | asked.options)
                )
                error = answers.errors.get(one["name"])
                out[name].append(str(error) if error is not None else answers[one["name"]].to_dict())
            except TreesensError as error:
                out[name].append(str(error))
    return out


def violation(relation: Relation, question: Question, before: list[Any], after: list[Any]) -> str | None:
    """A description of the violation; None if the relation holds, `open` if the answers leave it undecided."""
    if any(isinstance(one, str) for one in (*before, *after)):
        return "open"
    verdicts = [one["verdict"] for one in (*before, *after)]
    if "unknown" in verdicts:
        return "open"
    was, now = before[0]["verdict"] if before else "none", "found" if "found" in verdicts[len(before) :] else "none"
    if relation.kind == "easier":
        return f"{was}, and {now} of the easier" if (was, now) == ("found", "none") else None
    if relation.kind == "harder":
        return f"{was}, and {now} of the harder" if (was, now) == ("none", "found") else None
    if was != now:
        return f"{was} became {now}"
    if question.get("count") and before[0].get("count") != after[0].get("count"):
        return f"{before[0].get('count')} became {after[0].get('count')}"
    ends = [_ends(one) for one in (*before, *after)]
    if was == "none" or any(e is None for e, v in zip(ends, verdicts, strict=True) if v == "found"):
        return None
    low, high = ends[0]  # type: ignore[misc]
    found = [
        e for e, v in zip(ends[len(before) :], verdicts[len(before) :], strict=True) if v == "found" and e is not None
    ]
    if question.get("objective", [""])[0] == "minimize":
        other = min(e[0] for e in found), min(e[1] for e in found)
    else:
        other = max(e[0] for e in found), max(e[1] for e in found)
    if relation.name.startswith("the other sense"):
        other = -other[1], -other[0]
    slack = 1e-5 * max(1.0, abs(low), abs(high))
    if low > other[1] + slack or other[0] > high + slack:
        return f"the best lay in [{low}, {high}], and lies in {other}"
    return None


def _ends(record: dict[str, Any]) -> tuple[float, float] | None:
    """Where the best value lies."""
    objective = record.get("objective") or {}
    value, bound = objective.get("value"), objective.get("bound")
    return None if value is None or bound is None else (min(value, bound), max(value, bound))


def run(seeds: Sequence[int], chosen: Sequence[Relation] = RELATIONS) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Every relation over the cases of the seeds: how often each held, was broken or stayed open, and all violations."""
    counts, broken = Counter[tuple[str, str]](), []
    for seed in seeds:
        case = draw_case(seed, QUESTIONS, "xgboost")
        questions, rng = asked_of(case), np.random.default_rng([5, seed])
        options = {"backend": "native", "time_limit": SECONDS, "seed": 1, "replay": "emulated"}
        before = ask(case, plain(case), options)
        exact = all(model.dyadic for model in case.models.values())
        for relation in chosen:
            if relation.other_sums and not exact:
                continue  # float32 sums depend on their order
            asked = relation.change(case, questions, rng)
            by_name = {q["name"]: q for q in questions}
            for name, after in ask(case, asked, options).items():
                said = violation(relation, by_name.get(name, {}), before.get(name, []), after)
                counts[relation.name, "held" if said is None else "open" if said == "open" else "broken"] += 1
                if said not in (None, "open"):
                    text = "\n".join(text_of(q) for q in asked.questions[name])
                    broken.append(f"seed {seed}, {relation.name}: {said}\n{case.header()}\n{text}")
    return counts, broken
