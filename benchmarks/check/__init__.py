"""Compare `gatewright check` with other programs: `python -m benchmarks.check`."""
