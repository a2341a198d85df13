"""The defaults that a study assumes if nothing is stated: labels, possible inputs, cut-off, class, sizes and measures.

Every output lists the defaults on which a result depends: the output lines and the JSON of a command, the notes of a call, and
the page of an audit. The options of a study determine which defaults apply; choices of the caller are not listed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treesens.grammar.tree import ast
from treesens.python.wording import REAL

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from treesens.compiler.model import Ensemble
    from treesens.extensions.studies.study import Asking, Study

_WHOLE = re.compile(r"note\[E403\]: answers have whole numbers in (.*), because ")
_SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class Assumed:
    """One assumed default: its topic, the value in words, and the option that changes it (empty if no option changes it)."""

    what: str
    value: str
    option: str
    remedy: str

    def line(self) -> str:
        """The default as an output line of a command."""
        return f"assumed: {self.value}" + (f" ({self.remedy})" if self.remedy else "")


def assumed_of(study: Study[Any, Any], asked: Asking[Any], warnings: Sequence[str]) -> list[Assumed]:
    """The defaults that the study assumes, in the order of the module's docstring; `warnings` are the study's warnings."""
    return [one for choice in _CHOICES for one in choice(study, asked, warnings)]


def without_assumed(warnings: Iterable[str]) -> tuple[str, ...]:
    """The warnings, except warnings that only repeat an assumption."""
    return tuple(warning for warning in warnings if not _WHOLE.match(warning))


def at_command(note: str) -> str:
    """A note whose remedy is a command-line option instead of a declaration; names are quoted for the shell."""
    return REAL.sub(lambda found: f"add `--real {shlex.quote(found[1] or found[2])}` if fractions can occur", note)


def _label(study: Study[Any, Any], asked: Asking[Any], _: Sequence[str]) -> Iterator[Assumed]:
    table = asked.table
    if table is None or table.label is not None:
        return
    if not study.models:
        yield _stated("label", "no label is stated: rules cover every column", "--label")
        return
    known = {name for model in asked.models for name in model.ensemble.feature_names}
    by = {name for group in getattr(asked.options, "by", ()) for name in group}
    by |= {name for group in getattr(asked.options, "price_by", None) or () for name in group}
    others = [name for name in table.columns if not {name, name.replace(" ", "_")} & known and name not in by]
    if others:
        yield _stated(
            "label", f"no label is stated: {_listed(others)} {'is' if len(others) == 1 else 'are'} left out", "--label"
        )


def _domain(study: Study[Any, Any], asked: Asking[Any], _: Sequence[str]) -> Iterator[Assumed]:
    """The assumptions about features without declared domains: their possible values, and whether values may be missing."""
    if study.table is None or not study.models or getattr(asked.options, "range", None) is not None:
        return
    declared = {name for item in getattr(asked.options, "domain", ()) for name in _named(item)}
    used = dict.fromkeys(name for model in asked.models for name in model.ensemble.used_features)
    free = [name for name in used if name not in declared]
    if not free:
        return
    option = next((f"--{name}" for name in ("domain", "range") if hasattr(asked.options, name)), "")
    of = f" of {_listed(free)}" if declared else ""
    table = asked.table if study.domains_of_table else None
    if table is None:
        value = f"all values{of} that the model can hold are possible"
        yield _stated("domain", value, option or "--data")
    else:
        empty = [name for name in free if _lacks(table.columns, name, every=True)]
        but = f", and {_listed(empty)}, without values there, may have all values" if empty else ""
        yield _stated("domain", f"inputs lie in the ranges of the table's columns{of}{but}", option)
    lacking = [name for name in free if asked.table is not None and _lacks(asked.table.columns, name)]
    value = f"values may be missing in {_listed(lacking)} alone" if lacking else f"no value{of} is missing"
    yield _stated("missing", value, option or ("" if table is not None else "--data"))


def _whole(_: Study[Any, Any], asked: Asking[Any], warnings: Sequence[str]) -> Iterator[Assumed]:
    """The features that are assumed to have only whole numbers, according to the binder's notes."""
    for warning in warnings:
        if found := _WHOLE.match(warning):
            value = f"whole numbers for {found[1]}"
            if hasattr(asked.options, "real"):
                yield Assumed(what="whole numbers", value=value, option="--real", remedy=_help(at_command(warning)))
                continue
            option = next((f"--{name}" for name in ("domain", "range") if hasattr(asked.options, name)), "")
            yield _stated("whole numbers", value, option)


def _threshold(_: Study[Any, Any], asked: Asking[Any], __: Sequence[str]) -> Iterator[Assumed]:
    """The decision rule of a model with two classes."""
    from treesens.binder.terms import predicts_probabilities
    from treesens.extensions.studies.decisions import cut_of

    if not _silent(asked, "threshold") or not _has_one_score(asked.model.ensemble):
        return
    cut = cut_of(asked.model.ensemble)
    probable = asked.model.ensemble.link.is_probability or predicts_probabilities(asked.model.ensemble)
    at = f", at a probability of {0.5 if cut is None else float(cut):g}" if probable else ""
    yield _stated("threshold", f"the model's own cut-off decides{at}", "--threshold")


def _class(_: Study[Any, Any], asked: Asking[Any], __: Sequence[str]) -> Iterator[Assumed]:
    """The class whose score is used if there are two classes."""
    if not _silent(asked, "classes") or not _has_one_score(asked.model.ensemble):
        return
    label = str(asked.model.ensemble.classes[1])
    name = asked.model.meaning.classes.get(label)
    yield _stated("class", f"scores are those of class {label}" + (f" ({name})" if name else ""), "--classes")


def _sizes(study: Study[Any, Any], asked: Asking[Any], _: Sequence[str]) -> Iterator[Assumed]:
    """The default gaps of the model, and the unit of the largest gap."""
    from treesens.extensions.studies.decisions import default_sizes, natural_question

    options = asked.options
    about_scores = hasattr(options, "threshold") and hasattr(options, "classes")
    if not about_scores or getattr(options, "decision", None) is not None:
        return
    ensemble = asked.model.ensemble
    if study.sizes_of_model and not options.gap and not options.margin:
        kind, texts = default_sizes(ensemble, options.threshold, options.classes)
        yield _stated("gap", f"gaps of {', '.join(texts)} in {_UNITS[kind]}", "--gap")
    elif not hasattr(options, "gap") and options.threshold is None and ensemble.classes:
        kind = natural_question(ensemble, None, options.classes).kind
        yield _stated("unit", f"gaps are measured in {_UNITS[kind]}", "--threshold" if kind == "margin" else "")


_UNITS = {"gap": "probability", "margin": "raw score"}


def _ways(_: Study[Any, Any], asked: Asking[Any], __: Sequence[str]) -> Iterator[Assumed]:
    """The measure of shares, and the norm of distances."""
    for name, words in (("measure", "shares are by the measure"), ("norm", "distances are measured by")):
        value = getattr(asked.options, name, None)
        if value is not None and name not in asked.chosen:
            yield _stated(name, f"{words} {value}", f"--{name}")


_Choice = Callable[["Study[Any, Any]", "Asking[Any]", Sequence[str]], Iterator[Assumed]]
_CHOICES: tuple[_Choice, ...] = (_label, _domain, _whole, _threshold, _class, _sizes, _ways)


def _stated(what: str, value: str, option: str) -> Assumed:
    return Assumed(what=what, value=value, option=option, remedy=f"add {option} to say otherwise" if option else "")


def _silent(asked: Asking[Any], name: str) -> bool:
    """True if the study has an option about scores that the caller did not set."""
    options = asked.options
    return hasattr(options, name) and not getattr(options, name) and getattr(options, "decision", None) is None


def _has_one_score(ensemble: Ensemble) -> bool:
    return len(ensemble.classes) == 2 and not ensemble.link.votes


def _named(item: ast.Declaration) -> list[str]:
    if isinstance(item, ast.OneHot):
        return [name.text for name in item.features]
    return [item.name.text] if isinstance(item, ast.Feature) else []


def _lacks(columns: Any, name: str, *, every: bool = False) -> bool:
    """True if a feature's value is missing in at least one row, or in every row."""
    column: NDArray[Any] | None = next((columns[n] for n in columns if name in (n, n.replace(" ", "_"))), None)
    if column is None:
        return False
    if column.dtype == object:
        return (all if every else any)(value is None for value in column.tolist())
    gone = column != column  # noqa: PLR0124 - NaN, without numpy: help imports this module
    return bool(gone.all() if every else gone.any())


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")


def _help(note: str) -> str:
    return note.partition("help: ")[2].strip()
