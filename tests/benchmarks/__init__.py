"""The benchmark of reviews checks its verdicts and writes its tables. Times are not tested.

The figures of traces are those of docs/architecture.md.
"""
