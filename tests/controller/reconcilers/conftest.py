"""An API server in memory that serves all kinds."""

from collections.abc import AsyncIterator

import pytest

from controller.reconcilers import planned_kinds
from gatewright.testing import ApiServer


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    """An empty API server that serves the kinds."""
    async with ApiServer(*planned_kinds()) as server:
        yield server
