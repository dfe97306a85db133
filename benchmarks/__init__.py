"""Benchmarks with a baseline from the same run: read the ratios, not the absolute figures.

`reviews` compares a review with webhooks in Go, `cel` an expression with cel-go, `check` a run of
`gatewright check` with conftest and kube-score. `controller` measures reconciles and `audit` an
audit, on a separate cluster (`cluster`, `webapps`), by `passes`, `throughput`, `writes` and
`idle` phases, and `policies` many policies; `measured` and `trace` read CPU time and calls.
"""
