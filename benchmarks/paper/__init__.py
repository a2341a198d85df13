"""The experiments of section 6 of the paper as code: `python -m benchmarks.paper --help`."""
