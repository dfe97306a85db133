"""Benchmarks, each compared with a baseline from the same run: read the ratios, not the absolute figures."""
