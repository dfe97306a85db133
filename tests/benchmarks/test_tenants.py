"""The benchmark of tenants on a real API server."""

import asyncio

import pytest

from benchmarks.tenants import run

pytestmark = [pytest.mark.controlplane, pytest.mark.long]


def test_each_request_that_reaches_the_webhook_is_judged_by_a_policy() -> None:
    """Beside the production set, with a few tenants and with more than there are kinds."""
    assert asyncio.run(run([2, 14]))
