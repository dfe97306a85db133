"""CEL: cel-spec's conformance files, Kubernetes' libraries, errors and budgets.

`on_a_cluster` compares verdicts and messages with those of a real API server.
"""
