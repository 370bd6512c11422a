"""Predictions of other tools for the same published runs; see `python -m benchmarks.peers`."""
