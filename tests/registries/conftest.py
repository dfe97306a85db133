"""Registries built from their Go modules."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controlplane.fixtures import available
from tests.registries.servers import RealRegistry, registry_binary, running


@pytest.fixture(params=["referrers", "tags"])
def real_registry(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealRegistry]:
    """A registry with the referrers API, then one without."""
    available(request.config, registry_binary)
    with running(request.param, tmp_path) as registry:
        yield registry
