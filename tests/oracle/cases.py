"""One case: a domain, one or two models over it, tables, and questions; drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.oracle import models_additive, models_boosted, models_files, models_linear, models_outputs, models_sklearn
from tests.oracle.brute import World
from tests.oracle.draw_spaces import draw_features, draw_wide
from tests.oracle.language import measure_name, text_of
from tests.oracle.meaning import Rows
from tests.oracle.models import Model, evaluate
from tests.oracle.questions import Draw, draw_mixed, draw_questions
from tests.oracle.spaces import Feature, column, combinations, complete, with_reals

NUMBERS = ["integer", "integer", "integer", "category", "onehot", "stored", "real"]
TRAINERS: dict[str, tuple[Callable[..., Model], list[str], bool, float]] = {
    "xgboost": (models_boosted.train_xgboost, [*NUMBERS, "code", "code"], False, 4),
    "xgboost labels": (models_boosted.train_xgboost, ["integer", "integer", "label", "label", "category"], False, 1.5),
    "lightgbm": (models_boosted.train_lightgbm, [*NUMBERS, "code", "code"], False, 3),
    "lightgbm labels": (models_boosted.train_lightgbm, ["integer", "integer", "label", "label", "category"], False, 1),
    "sklearn": (models_sklearn.train_sklearn, NUMBERS, False, 4),
    "sklearn hist": (models_sklearn.train_histogram, [*NUMBERS, "code", "code"], False, 1),
    "sklearn hist labels": (models_sklearn.train_histogram, ["integer", "label", "integer"], False, 0.5),
    "sklearn pipeline": (
        models_sklearn.train_pipeline,
        ["integer", "integer", "label", "category", "stored", "real"],
        False,
        1.5,
    ),
    "linear": (models_linear.train_linear, ["integer", "integer", "label", "category", "stored"], False, 1),
    "output": (models_outputs.train_output, ["integer", "integer", "category", "onehot"], False, 1),
    "calibrated": (models_sklearn.train_calibrated, NUMBERS, False, 1),
    "vote": (models_sklearn.train_vote, NUMBERS, False, 1),
    "counted vote": (models_sklearn.train_count, NUMBERS, False, 1),
    "stack": (models_sklearn.train_stack, NUMBERS, False, 1),
    "catboost": (models_boosted.train_catboost, NUMBERS, False, 1.5),
    "catboost labels": (models_boosted.train_catboost, ["integer", "integer", "label", "label", "real"], False, 1),
    "onnx": (models_sklearn.train_onnx, NUMBERS, True, 1),
    "treelite": (models_sklearn.train_treelite, NUMBERS, True, 1.5),
    "scorecard": (models_files.train_scorecard, [*NUMBERS, "label"], False, 1),
    "pmml": (models_files.train_pmml, [*NUMBERS, "label"], False, 1),
    "interpret": (models_additive.train_interpret, [*NUMBERS, "label"], False, 1.5),
}
"""By name: the trainer, its kinds of features, whether features have no names, and its share."""


def reader(trainer: str) -> str:
    """The frontend that reads the models of a trainer: those of labels are of the library's own, with columns of labels."""
    return trainer.removesuffix(" labels")


DOMAINS_FROM_DATA = 0.15
"""Share of cases with `domain from`."""
WIDE = 0.06
"""Share of cases with 18 to 200 features."""
CLUSTERED = 0.06
"""Share of tables with some hundred rows in a few tight clusters."""
CALIBRATED_TWICE = 0.6
"""Share of cases of a calibrated model with a second one, which has a calibration of its own."""
SECOND_TRIES = 4
"""Models that are trained for one with the classes and scores of the first."""
LARGEST = 20_000
WIDEST = 1_200


@dataclass(frozen=True)
class Shares:
    """How often a case has what some constructs need. A seed is the same case with the same shares only."""

    second: float = 0.25
    """Cases with two models."""
    second_tries: int = SECOND_TRIES
    kinds: tuple[str, ...] = ("binary", "binary", "multi", "regression")
    whole: float = 0.0
    """Cases without real features: distances, likelihoods and relations are judged for values that can be counted."""
    longest: int = 3
    """Constraints of a question that is not a short form."""
    pairs: float = 0.03
    """Questions about every pair of classes, of those that may be."""


USUAL = Shares()
RICH = Shares(0.6, 12, ("binary", "multi", "multi", "multi", "regression"), whole=0.7, longest=5, pairs=0.12)
"""For runs that fill the table: more of what few cases have, and more constructs in a question."""
CLASSES = Shares(0.3, 12, ("multi",), whole=0.7, longest=4, pairs=0.6)
"""For runs that fill what only several classes have."""
SHARES = {"usual": USUAL, "rich": RICH, "classes": CLASSES}


@dataclass
class Case:
    """What is drawn from one seed."""

    seed: int
    features: list[Feature]
    models: dict[str, Model]
    world: World
    questions: list[dict[str, Any]]
    trainer: str
    frames: dict[str, Any] = field(default_factory=dict)
    """The tables as pandas frames."""
    forms: dict[str, str] = field(default_factory=dict)
    """How each table is given: frame, csv or parquet."""
    sources: dict[str, Any] = field(default_factory=dict)
    """What treesens is given: a frame or the path of a file."""
    labels: dict[str, str | None] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    """Tables of which the text takes the first rows only (`rows N`)."""
    domain: str | None = None
    """The table of `domain from`."""

    def header(self) -> str:
        """All declarations of the text."""
        lines = [f'model {name} from "{name}"' for name in self.models]
        for name in self.world.tables:
            label = f' label "{self.labels[name]}"' if self.labels.get(name) else ""
            rows = f" rows {self.limits[name]}" if name in self.limits else ""
            lines.append(f'data {name} from "{name}"{label}{rows}')
        if self.domain is not None:
            lines.append(f"domain from {self.domain}")
        measures = dict.fromkeys(q["share"] for q in self.questions if q.get("share"))
        lines += [f"measure {measure_name(measure)}: {measure}" for measure in measures]
        return "\n".join([*lines, self.world.space.declarations()]) + "\n"


def draw_case(seed: int, questions: int = 12, trainer: str | None = None, shares: Shares = USUAL) -> Case:
    """The case of a seed; a trainer that does not take what is drawn is asked again with another draw.

    The trainer is drawn if none is named.
    """
    rng = np.random.default_rng([20261122, seed])
    names = list(TRAINERS)
    often = np.array([TRAINERS[n][3] for n in names])
    drawn = str(rng.choice(names, p=often / often.sum()))
    trainer = trainer or drawn
    for _ in range(200):
        try:
            features, models = _models(rng, trainer, shares)
            source = None
            if rng.random() < DOMAINS_FROM_DATA:
                features, source = domain_from_table(rng, features)
            if combinations(features) > LARGEST:
                continue
            space = complete(features)
            points = {name: evaluate(model, space) for name, model in models.items()}
        except ValueError:  # the library does not take what was drawn, e.g. missing values
            continue
        break
    else:
        raise RuntimeError(f"seed {seed}: nothing that {trainer} takes")
    tables = {"D": draw_table(rng, space.features, models, "D", source)}
    if rng.random() < 0.3:
        tables["E"] = draw_table(rng, space.features, models, "E")
    world = World(space, points, tables)
    draw = Draw(rng, space, models, points, tables, WIDEST, shares.longest, shares.pairs)
    asked = [question for k in range(questions) for question in draw_questions(draw, f"q{k}")]
    if questions:
        asked = [*draw_mixed(replace(draw, rng=np.random.default_rng([20261130, seed]))), *asked]
    case = Case(seed, list(features), models, world, asked, trainer, domain=None if source is None else "D")
    for name, rows in tables.items():
        case.frames[name], case.labels[name] = table_frame(rng, rows.stored, features)
        if rng.random() < 0.15:
            case.limits[name] = len(case.frames[name])
            case.frames[name] = longer(rng, case.frames[name])
        case.forms[name] = str(rng.choice(["frame", "frame", "frame", "csv", "parquet"]))
        case.sources[name] = given(case.frames[name], case.forms[name], name)
    return case


def _models(rng: np.random.Generator, trainer: str, shares: Shares) -> tuple[list[Feature], dict[str, Model]]:
    train, kinds, plain, _ = TRAINERS[trainer]
    if shares.whole and rng.random() < shares.whole:
        kinds = [kind for kind in kinds if kind != "real"]
        kinds += ["category"] * 2 * ("category" in kinds)
    most = 400 if rng.random() < 0.85 else 6000
    wide = rng.random() < WIDE and set(NUMBERS) <= {*kinds, "real"}
    features = draw_wide(rng, plain=plain) if wide else draw_features(rng, plain=plain, kinds=kinds, most=most)
    if plain:
        features = [replace(f, name=f"f{i}") for i, f in enumerate(features)]
    kind = str(rng.choice(shares.kinds))
    models = {"m": train(rng, features, "m", kind)}
    if rng.random() < (max(shares.second, CALIBRATED_TWICE) if models["m"].link == "calibrated" else shares.second):
        reals = any(f.kind == "real" for f in features)
        for _ in range(max(shares.second_tries, 12) if models["m"].link == "calibrated" else shares.second_tries):
            try:
                one, two = models["m"], (second_trainer(rng, features) or train)(rng, features, "n", kind)
            except ValueError:  # as in `draw_case`
                continue
            if (one.link, one.classes) == (two.link, two.classes) and not (reals and one.real is not two.real):
                models["n"] = two
                break
    for model in models.values():
        model.coded = {f.name: f.labels for f in features if f.codes != "number"}
        model.celled &= not model.coded  # the reference does not say which categories share a cell
    thresholds: dict[str, list[float]] = {}
    for model in models.values():
        for f, values in model.thresholds.items():
            thresholds.setdefault(f, []).extend(values)
    return with_reals(features, thresholds, models["m"].real), models


def second_trainer(rng: np.random.Generator, features: Sequence[Feature]) -> Callable[..., Model] | None:
    """The trainer of another library, if the features are such that both libraries read them alike."""
    if any(f.codes != "number" or f.kind == "real" for f in features) or rng.random() < 0.5:
        return None
    if all(f.name == f"f{i}" for i, f in enumerate(features)):
        return None  # converted models name features by themselves
    return TRAINERS[str(rng.choice(["xgboost", "lightgbm", "sklearn", "catboost"]))][0]


def draw_table(
    rng: np.random.Generator, features: Sequence[Feature], models: Mapping[str, Model], name: str,
    given_places: np.ndarray | None = None,
) -> Rows:  # fmt: skip
    """Rows of the domain, and a few with values outside it or missing; `given_places` are those of the table of domains."""
    places = draw_places(rng, features) if given_places is None else given_places
    user = np.stack([np.array(f.user)[places[:, i]] for i, f in enumerate(features)], axis=1)
    stored = [column(f.stored)[places[:, i]] for i, f in enumerate(features)]
    if given_places is None and rng.random() < 0.3:
        _outside(rng, features, places, user, stored)
    return rows_of(name, features, models, places, user, stored)


def draw_places(rng: np.random.Generator, features: Sequence[Feature]) -> np.ndarray:
    """Places of the values of 3 to 29 rows, int[rows, features]."""
    clustered = rng.random() < CLUSTERED
    count = int(rng.integers(100, 501)) if clustered else int(rng.integers(3, 30))
    places = np.stack([rng.integers(0, len(f.typed), count) for f in features], axis=1)
    if clustered:
        centres = places[rng.integers(0, int(rng.integers(1, 5)), count)]
        places = np.where(rng.random(places.shape) < 0.1, places, centres)
    for group in {f.group for f in features if f.group is not None}:
        members = [i for i, f in enumerate(features) if f.group == group]
        places[:, members] = 0
        places[np.arange(count), rng.choice(members, count)] = 1
    return places


def rows_of(
    name: str, features: Sequence[Feature], models: Mapping[str, Model], places: np.ndarray, user: np.ndarray,
    stored: list[np.ndarray],
) -> Rows:  # fmt: skip
    inside = (places >= 0).all(axis=1)
    for group in {f.group for f in features if f.group is not None}:
        inside &= np.sum([user[:, i] == 1 for i, f in enumerate(features) if f.group == group], axis=0) == 1
    rows = Rows(name, user, places, {}, inside)
    rows.cells = {m.name: table_cells(m, stored, features, user) for m in models.values()}
    rows.stored = stored
    rows.gaps = not inside.all()
    return rows


def domain_from_table(rng: np.random.Generator, features: Sequence[Feature]) -> tuple[list[Feature], np.ndarray | None]:
    """Features some of which range over what the first table holds, and the places of its rows; None if none does."""
    places = draw_places(rng, features)
    made = list(features)
    for i, f in enumerate(features):
        undeclared = f.declaration is None
        if f.group is not None or f.unit is not None or f.codes == "label" or (not undeclared and rng.random() < 0.3):
            if undeclared and f.codes == "label":
                return list(features), None  # which labels a table leaves is a matter of the model, too
            continue
        found = ranged(f, places[:, i], str(rng.choice(["undeclared", "undeclared", "interval"])))
        if found is None:
            if undeclared:
                return list(features), None
            continue
        made[i], places[:, i] = found
    return (made, places) if any(x is not y for x, y in zip(made, features, strict=True)) else (list(features), None)


def ranged(f: Feature, places: np.ndarray, how: str) -> tuple[Feature, np.ndarray] | None:
    """The feature over its column (docs/language.md, `domain from`), and the new places of the rows.

    Few values of a column are all there are (12 whole ones at most, or 12 of any kind with four rows for each); of others, and
    of features declared without an interval, it is the range.
    """
    user = np.array(f.user)
    present = np.unique(user[places])
    present = present[~np.isnan(present)]
    gaps = bool(np.isnan(user[places]).any())
    if len(present) < 2 or f.kind == "category":
        return None
    whole = bool((present == np.round(present)).all())
    few = len(present) <= 12 and (whole or len(places) >= 4 * len(present))
    declared = how == "interval" and (f.kind == "real" or f.codes == "number")
    if declared or not few:
        kept = (user >= present[0]) & (user <= present[-1])
        if f.kind == "real" and whole and not declared:
            return None
    else:
        kept = np.isin(user, present)
    text = None
    if declared:
        text = f.kind + (" or missing" if f.missing else "")
    if f.missing and (gaps or declared):
        kept |= np.isnan(user)
    elif gaps:
        return None
    chosen = np.flatnonzero(kept)
    small = replace(
        f, typed=tuple(f.typed[k] for k in chosen), user=tuple(f.user[k] for k in chosen),
        stored=tuple(f.stored[k] for k in chosen), declaration=text, width=float(present[-1] - present[0]),
        missing_text=f.missing_text and bool(np.isnan(user[chosen]).any()),
    )  # fmt: skip
    back = np.full(len(user), -1)
    back[chosen] = np.arange(len(chosen))
    return small, back[places]


def table_cells(model: Model, stored: list[np.ndarray], features: Sequence[Feature], user: np.ndarray) -> np.ndarray:
    """The cells of rows; -1 for a missing value where the domain has none, which takes no part."""
    cells = model.cells(stored)
    for i, f in enumerate(features):
        if not f.missing:
            cells[np.isnan(user[:, i]), i] = -1
    return cells


def _outside(
    rng: np.random.Generator,
    features: Sequence[Feature],
    places: np.ndarray,
    user: np.ndarray,
    stored: list[np.ndarray],
) -> None:
    for i, f in enumerate(features):
        endless = f.kind == "real" and (f.declaration is None or "inf" in f.declaration)
        endless |= f.kind == "real" and float(np.nanmax(f.user)) + 1.0 == float(np.nanmax(f.user))
        if f.group is not None or f.codes == "label" or endless or rng.random() < 0.5:
            continue
        row = int(rng.integers(len(places)))
        places[row, i] = -1
        if not f.missing and rng.random() < 0.4:
            user[row, i], stored[i][row] = np.nan, np.nan
        elif f.kind == "integer":
            beyond = float(np.nanmax(f.user)) + float(rng.integers(1, 3))
            user[row, i] = beyond
            slope = 1.0 if f.unit is None else (f.unit[3] - f.unit[2]) / (f.unit[1] - f.unit[0])
            start = 0.0 if f.unit is None else f.unit[2] - slope * f.unit[0]
            stored[i][row] = beyond * slope + start
        elif f.kind == "real":
            user[row, i] = stored[i][row] = float(np.nanmax(f.user)) + 1.0
        else:
            places[row, i] = 0
            user[row, i], stored[i][row] = f.user[0], f.stored[0]


def table_frame(
    rng: np.random.Generator, stored: list[np.ndarray], features: Sequence[Feature]
) -> tuple[Any, str | None]:
    """The table as a frame: columns in any order, whole numbers as integers half of the time, codes by name at times."""
    import pandas as pd

    made: dict[str, Any] = {}
    for f, values in zip(features, stored, strict=True):
        shown: Any = values
        known = {s: t for s, t in zip(f.stored, f.typed, strict=True) if t is not None}
        if f.kind == "category" and f.codes != "label" and isinstance(f.typed[0], str) and rng.random() < 0.5:
            shown = np.array([*(known.get(v) for v in values), None], dtype=object)[:-1]
        elif (
            values.dtype != object
            and not np.isnan(values).any()
            and (values == np.round(values)).all()
            and rng.random() < 0.6
        ):
            shown = values.astype(np.int64)
        made[f.name] = shown
    label = "target" if rng.random() < 0.3 else None
    if label:
        made[label] = rng.integers(0, 2, len(stored[0]))
    order = [str(c) for c in rng.permutation(list(made))]
    return pd.DataFrame({c: made[c] for c in order}), label


def longer(rng: np.random.Generator, frame: Any) -> Any:
    """The frame with more rows behind its own, which a text with `rows N` does not see."""
    import pandas as pd

    more = frame.iloc[rng.integers(0, len(frame), 3)]
    return pd.concat([frame, more], ignore_index=True)


def given(frame: Any, form: str, name: str) -> Any:
    """A frame as treesens is given it: itself, or a file."""
    if form == "frame":
        return frame
    path = models_boosted.folder() / f"{name}.{np.random.default_rng().integers(1 << 40)}.{form}"
    if form == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return str(path)


def save_case(case: Case, folder: Path) -> None:
    """Model files, tables and text for a reproduction: `case.sens` beside them."""
    import shutil

    text = case.header()
    for name, model in case.models.items():
        if isinstance(model.source, str):
            file = name + Path(model.source).suffix
            shutil.copy(model.source, folder / file)
        else:
            file = model.save(folder) if model.save else name
        form = f" as `{model.form}`" if model.form else ""
        text = text.replace(f'model {name} from "{name}"', f'model {name} from "{file}"{form}')
    for name, frame in case.frames.items():
        form = "parquet" if case.forms[name] == "parquet" else "csv"
        frame.to_parquet(folder / f"{name}.parquet") if form == "parquet" else frame.to_csv(
            folder / f"{name}.csv", index=False
        )
        text = text.replace(f'data {name} from "{name}"', f'data {name} from "{name}.{form}"')
    (folder / "case.sens").write_text(text + "\n" + "\n".join(dict.fromkeys(text_of(q) for q in case.questions)))
