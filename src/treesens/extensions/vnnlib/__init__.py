"""Reads and decides VNN-LIB properties of ONNX tree ensembles."""
