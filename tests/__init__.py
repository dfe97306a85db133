"""Tests: a folder for each package of the source, and some for what no package has.

Tests without a mark are fast and need nothing (`make test-unit`). Marks: `controlplane` needs the
real API server of `tests/controlplane`, `databases` real database servers, `node` a real node,
`long` only time.
`tests/e2e` is Gatewright as a person uses it, `tests/node` on a real node, `tests/source` the
source as a text, `tests/fakes` are what tests use instead of a network and a clock.
"""
