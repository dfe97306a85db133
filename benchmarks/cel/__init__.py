"""Measure an expression here and in cel-go: `python -m benchmarks.cel`."""
