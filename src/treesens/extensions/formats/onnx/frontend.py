"""ONNX models with one TreeEnsembleClassifier or TreeEnsembleRegressor, read with onnx and evaluated in onnxruntime for replay.

How onnxruntime evaluates (tree_ensemble_common.h, tree_ensemble_aggregator.h): float32 inputs are compared with float32 values
as the mode of each node specifies; NaN goes to the false branch unless missing_value_tracks_true is set. Scores are added to 0
in float32, in the order of the trees, and optionally averaged; then base_values are added, and the transform is applied.
"""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from treesens.compiler.base.floats import NumberType
from treesens.compiler.model import Accumulation, ModelSource
from treesens.errors import ModelError
from treesens.extensions.formats.onnx.graph import parsed_model, tree_node
from treesens.extensions.formats.onnx.library import NativeONNX
from treesens.frontends.base import LoadedModel


class ONNXFrontend:
    """Reads graphs whose trees use the input unchanged, or scaled and imputed."""

    name = "onnx"
    library = "onnxruntime"
    reads_with = "onnx"

    def recognises_bytes(self, head: bytes) -> bool:
        # A ModelProto begins with field 1 (ir_version); the name of the operator, or of the library, identifies it.
        return head[:1] == b"\x08" and (b"TreeEnsemble" in head or b"ai.onnx" in head or b"onnx" in head[:200])

    def recognises_object(self, obj: object) -> bool:
        return type(obj).__name__ == "ModelProto" and type(obj).__module__.startswith("onnx")

    def load(self, path: Path, data: bytes) -> LoadedModel:
        return self._read(parsed_model(data, str(path)), data, str(path), path.stem)

    def from_object(self, obj: Any) -> LoadedModel:
        return self._read(obj, obj.SerializeToString(), "<ModelProto>", "model")

    def _read(self, model: Any, data: bytes, place: str, name: str) -> LoadedModel:
        # Imported late: other formats are recognised without this reader's packages.
        from treesens.extensions.formats.onnx.steps import before_steps, longest, steps_of
        from treesens.extensions.formats.onnx.trees import Attributes, read_trees
        from treesens.frontends.columns import MAX_FEATURES, ensemble_of, feature_tuple

        node, width, before, _ = tree_node(model, place)
        read = read_trees(node.op_type, Attributes(node, place))
        largest = max(int(read.nodes.feature.max(initial=0)), 0 if width else longest(model.graph, before) - 1)
        if max(largest + 1, width or 0) > MAX_FEATURES:
            raise ModelError(f"{max(largest + 1, width or 0):,} features are not plausible", place=place)
        if width is None:
            width = largest + 1
        elif largest >= width:
            raise ModelError(
                f"a split uses feature {largest}, but the input has only {width} features (numbered from 0)",
                place=place,
                remedy="the file is damaged",
            )
        steps = steps_of(model.graph, before, width, place)
        ensemble = ensemble_of(
            before_steps(read.nodes, steps, place) if steps else read.nodes,
            feature_tuple([f"f{i}" for i in range(width)], place),
            place,
            name=name,
            number_type=NumberType.FLOAT32,
            comparison="<=",
            tree_output=read.tree_output,
            tree_weight=np.ones(len(read.nodes.tree_offset) - 1),
            base=read.base,
            link=read.link,
            task=read.task,
            accumulation=Accumulation.FLOAT32_BASE_LAST,
            average=read.average,
            classes=read.classes,
            decides_at=read.decides_at,
            ranks_scores=True,
            source=ModelSource(
                "onnx", version=str(model.ir_version), sha256=hashlib.sha256(data).hexdigest(), path=place
            ),
        )
        library = NativeONNX(data, ensemble.n_outputs)
        return LoadedModel(
            ensemble,
            self.name,
            library.margins,
            None,
            read.notes,
            predicts=partial(library.predicts, ensemble=ensemble),
        )
