"""The current user of a kubeconfig."""

import pytest

from gatewright.processes.current_user import whoami
from kube.endpoint import Endpoint


async def test_an_unknown_user_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Children are judged as in a cluster."""
    assert await whoami(Endpoint("http://127.0.0.1:1")) is None
    assert caplog.messages[0].startswith(
        "cannot read the current user; judging children as requests of the ServiceAccount: "
    )
