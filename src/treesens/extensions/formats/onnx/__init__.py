"""ONNX: tree ensembles of the operator set `ai.onnx.ml`."""
