"""The interface of a frontend: converts model files or live objects to an `Ensemble`, and replays in the library.

For a model that predicts several outputs at once (labels of a row, or targets of a regression), `FORMAT:output=K` selects one,
counted from 0 in the library's order, as `FORMAT:VARIANT` selects one of the models in a file. The result is a normal model of
one output: the trees of this output alone, or this column of vector leaves.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from treesens.compiler.model import Ensemble, ModelSource
from treesens.compiler.model.evaluate import LibraryReplay, Predicted
from treesens.errors import ModelError
from treesens.frontends.meaning import Meaning
from treesens.visible import visible

LibraryPredict = Callable[[NDArray[np.float64]], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """An ensemble with its library's functions.

    `margins(X)` is the library's own raw output for float64[rows, features] with NaN for missing, [rows, n_outputs] in the
    library's type; `leaf_ids(X)` its leaf ids [rows, trees] (None if the library has no such function). Both import the library
    on first use. `predicts(X)` are the results of its own predict and predict_proba (None if it only has margins); `inputs(X)`
    are the rows in the form that predict takes (None: unchanged). `notes` are sentences for the user, `meaning` is the user's
    description of its features and classes.
    """

    ensemble: Ensemble
    frontend: str
    margins: LibraryPredict
    leaf_ids: LibraryPredict | None = None
    notes: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    predicts: Callable[[NDArray[np.float64]], Predicted] | None = None
    inputs: Callable[[NDArray[np.float64]], Any] | None = None
    meaning: Meaning = field(default_factory=Meaning)
    printed: bool = False
    """True if the file is a human-readable table, whose numbers may have fewer digits than the library's."""
    monotone: Mapping[str, int] = field(default_factory=dict)
    """Monotone constraints of training, as declared in the model: 1 (increasing) or -1 by feature."""

    @property
    def replay(self) -> LibraryReplay:
        """The library's functions for the second level of replay."""
        return LibraryReplay(self.margins, self.predicts)

    def __repr__(self) -> str:
        e = self.ensemble
        return f"<model {e.name}: {e.source.format}, {e.n_trees} trees, {e.n_features} features, {e.task.value}>"

    def _repr_html_(self) -> str:
        e = self.ensemble
        facts = (
            f"{e.source.format}, {e.task.value}, link {e.link.name}",
            f"{e.n_trees:,} trees, {e.n_leaves:,} leaves",
            f"{e.n_features} features: {_few(e.feature_names)}",
            *([f"classes {_few([str(c) for c in e.classes])}"] if e.classes else []),
            *self.notes,
        )
        lines = "".join(f"<li>{html.escape(visible(line, lines=True))}</li>" for line in facts)
        return f"<p><b>{html.escape(visible(e.name, lines=True))}</b></p><ul>{lines}</ul>"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "")


@runtime_checkable
class Frontend(Protocol):
    """The object of an entry point in group `treesens.frontends`: an instance (or a class without arguments) of this."""

    name: str
    """Short lower-case name of the format, for `--format` and messages."""

    library: str
    """The module imported for replay in the library; also named in messages when it is not installed. Empty if the format has
    no library: answers are then replayed only in the reader's arithmetic.

    A frontend whose reader needs a package names it in `reads_with`, for `treesens doctor`.
    """

    def recognises_bytes(self, head: bytes) -> bool:
        """True if a file that starts with these bytes (up to 64 KiB) may be of this format."""
        ...

    def recognises_object(self, obj: object) -> bool:
        """True if a live object is a model of this library; must not import the library."""
        ...

    def load(self, path: Path, data: bytes) -> LoadedModel:
        """The model of a file whose content is `data`; ModelError with place and remedy for anything else."""
        ...

    def from_object(self, obj: Any) -> LoadedModel:
        """The model of a live object; ModelError for anything it cannot represent."""
        ...


@runtime_checkable
class VariantFrontend(Protocol):
    """A frontend whose files may contain several models, selected by `FORMAT:VARIANT`."""

    variants: tuple[str, ...]

    def load_variant(self, path: Path, data: bytes, variant: str) -> LoadedModel:
        """As `load`; ModelError if this file does not contain that variant."""
        ...


@runtime_checkable
class OutputFrontend(Protocol):
    """A frontend that reads one output of a model with several: `FORMAT:output=K` selects it."""

    def load_output(self, path: Path, data: bytes, output: int) -> LoadedModel:
        """As `load`; ModelError if this file has only one output, or none of that number."""
        ...

    def output_of_object(self, obj: Any, output: int) -> LoadedModel:
        """As `from_object`."""
        ...


@runtime_checkable
class FolderFrontend(Protocol):
    """A frontend whose models are folders of files."""

    def recognises_folder(self, names: Collection[str]) -> bool:
        """True if a folder with these files and subfolders may be such a model."""
        ...

    def load_folder(self, path: Path, files: Mapping[str, bytes]) -> LoadedModel:
        """The model of a folder with these files (`compiler.base.folders`), as `load`."""
        ...


_PREFIX = "output="
_MOST_DIGITS = 6
_OF_NODES = ("node_feature", "threshold", "default_left", "category_set", "zero_missing")


def output_named(variant: str) -> int | None:
    """The number in `output=K`; None for other variants. ModelError if it is not a number."""
    if not variant.startswith(_PREFIX):
        return None
    text = variant[len(_PREFIX) :]
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise ModelError(f"`{text[:20]}` is not an output number", remedy="count from 0: `output=0` is the first one")
    return int(text)


def check_output(output: int, count: int, place: str) -> None:
    """ModelError if a model has only one output, or none of this number."""
    if count < 2:
        raise ModelError("the model has one output", place=place, remedy="leave `output=` out")
    if output >= count:
        raise ModelError(f"the model has no output {output}", place=place, remedy=f"its outputs are 0 to {count - 1}")


def source_of_output(source: ModelSource, output: int) -> ModelSource:
    """Records the output in the model's source, for reports and certificates, so that it is not taken for the whole file."""
    return replace(source, format=f"output {output} of {source.format}")


def note_of_output(output: int, count: int) -> str:
    """A note for the user."""
    return f"this is output {output} of {count} (0 to {count - 1}), and the others are left out"


def choose_output(model: LoadedModel, output: int) -> LoadedModel:
    """One target of a multi-output regression. ModelError if it is not one, or has no such target."""
    e, place = model.ensemble, model.ensemble.source.path
    check_output(output, 1 if e.classes or e.blend is not None else e.n_outputs, place)
    one = of_output(replace(e, source=source_of_output(e.source, output)), output).validate()
    return LoadedModel(
        one,
        model.frontend,
        lambda rows: np.asarray(model.margins(rows))[:, output : output + 1],
        None,
        (note_of_output(output, e.n_outputs), *model.notes),
        options=model.options,
        inputs=model.inputs,
        monotone=model.monotone,
    )


def of_output(e: Ensemble, k: int) -> Ensemble:
    """An ensemble with only score k: its trees, or its column of vector leaves."""
    if e.leaf_value.shape[1] > 1:
        one = replace(e, leaf_value=e.leaf_value[:, k : k + 1])
    else:
        one = _of_trees(e, np.flatnonzero(e.tree_output == k))
    return replace(one, tree_output=np.zeros(one.n_trees, np.int32), base=e.base[k : k + 1])


def _of_trees(e: Ensemble, trees: Any) -> Ensemble:
    """A subset of an ensemble's trees, in order."""
    sizes = np.diff(e.tree_offset)[trees]
    mine = np.zeros(e.n_trees, np.bool_)
    mine[trees] = True
    nodes = np.flatnonzero(mine[e.node_tree])
    moved = np.full(len(e.node_feature), -1, np.int64)
    moved[nodes] = np.arange(len(nodes))
    leaves = e.node_leaf[nodes][e.node_leaf[nodes] >= 0]
    number = np.full(e.n_leaves, -1, np.int64)
    number[leaves] = np.arange(len(leaves))
    position = np.full(e.n_trees, -1, np.int64)
    position[trees] = np.arange(len(trees))

    def among(values: Any, places: Any) -> Any:
        return np.where(values >= 0, places[np.maximum(values, 0)], -1).astype(np.int32)

    return replace(
        e,
        tree_offset=np.concatenate([[0], np.cumsum(sizes)]),
        **{name: getattr(e, name)[nodes] for name in _OF_NODES},
        left=among(e.left[nodes], moved),
        right=among(e.right[nodes], moved),
        node_leaf=among(e.node_leaf[nodes], number),
        leaf_value=e.leaf_value[leaves],
        leaf_node=e.leaf_node[leaves],
        leaf_tree=among(e.leaf_tree[leaves], position),
        tree_weight=e.tree_weight[trees],
        tree_output=e.tree_output[trees],
    )
