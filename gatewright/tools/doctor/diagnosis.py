"""Run every check of doctor on the state of a cluster."""

from collections.abc import Mapping
from datetime import datetime

from gatewright.tools.doctor import backends, bundles, deadlocks, policies, timeouts, webhooks
from gatewright.tools.doctor.hazards import LEVELS_OF_HARM, Hazard
from gatewright.tools.doctor.sequences import sequences
from gatewright.tools.doctor.state import ClusterState


def diagnose(
    state: ClusterState, now: datetime, served: Mapping[str, bytes] | None = None
) -> list[Hazard]:
    """Return all findings, grouped by object, the worst first.

    `served` are the certificates that probed servers presented (PEM by DNS name).
    """
    called_in_turn = sequences(state)
    found = [
        *deadlocks.check(state),
        *backends.check(state),
        *bundles.check(state, now, served),
        *timeouts.check(state, called_in_turn),
        *webhooks.check(state, called_in_turn),
        *policies.check(state, now),
    ]
    return sorted(
        found, key=lambda each: (LEVELS_OF_HARM.index(each.level), each.subject.title, each.check)
    )
