"""`treesens.sensitivity`: one question about a model, without writing a text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Unpack

from treesens.errors import UsageError
from treesens.extensions import builder as query
from treesens.extensions.builder.arguments import names_of, word_of
from treesens.frontends.meaning import feature_named
from treesens.grammar.tree.words import NEARNESS
from treesens.python.answer import Answer
from treesens.python.arguments import Data, Model, public, with_options
from treesens.python.questions import answer_declared, model_with_rows
from treesens.solve.options import CallOptions


@public
@with_options
def sensitivity(
    model: Model,
    *,
    vary: str | Sequence[str],
    gap: float | None = None,
    margin: float | None = None,
    data: Data | None = None,
    label: str | None = None,
    near: Literal["likelihood", "cavities", "both", "distance"] | None = None,
    real: str | Sequence[str] = (),
    **options: Unpack[CallOptions],
) -> Answer:
    """Can a change of only the features `vary` move the decision across the gap (probability) or the margin (raw score)?

    With `data` (a path or a frame), features range over the data's values, and `near` steers the search towards the data's
    rows. Integer columns range over integers, except for features named in `real`. This call is equivalent to the `sensitive`
    shorthand of the language, which defines the question; options are as for `check`.
    """
    if (gap is None) == (margin is None):
        raise UsageError("pass either gap or margin", remedy="gap is in probability (0 to 0.5), margin in raw score")
    if near is not None and data is None:
        raise UsageError(
            "`near` steers towards data, and `data` is not passed", remedy="pass a path or a frame as `data`"
        )
    if near is not None:
        word_of(near, NEARNESS, "near")
    varied = names_of(vary, "vary")
    loaded = model_with_rows(model, data)
    if len(loaded.ensemble.classes) > 2:
        raise UsageError(
            f"the model has {len(loaded.ensemble.classes)} classes, and no single decision that could flip",
            remedy="use ts.audit or ts.gap for every change between classes, and "
            "ts.query.sensitive(.., flip=(one, other)) for one",
        )
    if gap is not None and not loaded.ensemble.link.is_known:
        raise UsageError(
            "the model has raw scores but no probabilities", remedy="pass margin= in raw score in place of gap="
        )
    changed = [feature_named(name.text, loaded.ensemble) for name in varied]
    question = query.sensitive(
        "m", changed, gap=gap, margin=margin, near=None if near is None else "d", using=near
    ).named("sensitivity")
    fractions = (real,) if isinstance(real, str) or not isinstance(real, Iterable) else real
    real_names = (name for one in fractions for name in names_of(one, "real"))
    declared = [query.real(feature_named(name.text, loaded.ensemble)) for name in real_names]
    declared += [] if data is None else [query.data("d", "d", label=label), query.domain_from("d")]
    asked = query.file(*declared, question).with_sources({"m": loaded}, {} if data is None else {"d": data})
    return next(iter(answer_declared(*asked, options, declared=False).values()))
