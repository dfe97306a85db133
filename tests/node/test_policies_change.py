"""Policies change by an upgrade, and back by a rollback, while users create objects."""

import time

import pytest

from tests.node.conftest import Figures
from tests.node.installation import PRODUCTION, Installation
from tests.node.load import Load

pytestmark = [pytest.mark.node, pytest.mark.long]

# Twenty seconds on a machine that does nothing else.
IN_FORCE_WITHIN = 60.0


def test_a_change_is_in_force_in_every_replica(installed: Installation, figure: Figures) -> None:
    """Soon after `helm upgrade` and `helm rollback` their policies are in force; no call fails."""
    assert installed.verdicts() == [False, False]
    with Load(installed, bad_is_allowed=True) as load:
        installed.release.install(PRODUCTION, "policies.action=Warn")
        warned = _wait_for_all(installed, allowed=True)
        installed.release.helm("rollback", "gatewright", "--wait")
        denied = _wait_for_all(installed, allowed=False)
    for what, (first, last) in {"Warn": warned, "Deny": denied}.items():
        figure(f"{what}: in force in the first replica {first:.1f} s, in all {last:.1f} s later")
    figure(str(load))
    assert load.failed == []
    assert max(warned[1], denied[1]) < IN_FORCE_WITHIN


def _wait_for_all(installation: Installation, *, allowed: bool) -> tuple[float, float]:
    """Return how long the first and the last replica took to give this verdict."""
    began = time.monotonic()
    first = installation.until("one replica", lambda: allowed in installation.verdicts())
    installation.until("all replicas", lambda: set(installation.verdicts()) == {allowed})
    return first, time.monotonic() - began
