"""The error of a test process that does not become ready."""

from pathlib import Path

import pytest

from tests.gatewright import started
from tests.gatewright.started import Gatewright, GatewrightError


@pytest.mark.long
def test_failed_checks_are_in_the_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They come before the end of the log."""
    pair = ("--tls-cert", str(tmp_path / "tls.crt"), "--tls-key", str(tmp_path / "tls.key"))
    with Gatewright(None, tmp_path, "webhook", "--no-cluster", *pair).launch() as webhook:
        monkeypatch.setattr(started, "READY_WITHIN", 0.0)
        with pytest.raises(GatewrightError) as raised:
            webhook.until("ready", webhook.is_ready)
        webhook.kill()
    said, _, log = str(raised.value).partition("--- webhook: the end of ")
    assert (
        said
        == f"gatewright webhook: not ready\n[-] certificate: {tmp_path}/tls.crt: No such file or directory\n"
    )
    assert log.startswith(str(tmp_path))
