"""Tests: a package for each package of the source, and the packages below.

Tests without a mark are fast and have no requirements (`make test-unit`). Marks: `controlplane` needs the real API
server of `tests/controlplane`, `databases` needs real database servers, `node` a real node, and `long` takes minutes.
`tests/e2e` tests Gatewright through kubectl, `tests/node` in pods on a real node, and `tests/source` the text of the
source. `tests/fakes` replaces the network and the clock.
"""
