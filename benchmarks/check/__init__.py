"""`gatewright check` beside other programs that judge manifests: `python -m benchmarks.check`."""
