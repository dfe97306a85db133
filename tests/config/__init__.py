"""Settings, YAML with line numbers, API types, generated files and rights.

`regenerate` writes every generated file; test_manifests compares. Types of single kinds are in
`api`, their versions in `converters`. test_least_privilege runs both processes with their rights.
"""
