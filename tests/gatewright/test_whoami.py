"""Whom the API server takes us for."""

import pytest

from gatewright.whoami import whoami
from kube.endpoint import Endpoint


async def test_without_an_answer_nobody_is_known(caplog: pytest.LogCaptureFixture) -> None:
    """It is told, and what is made is judged as in a cluster."""
    assert await whoami(Endpoint("http://127.0.0.1:1")) is None
    assert caplog.messages[0].startswith(
        "cannot read the current user; judging children as requests of the ServiceAccount: "
    )
