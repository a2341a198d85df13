"""VNN-LIB properties of ONNX tree ensembles."""
