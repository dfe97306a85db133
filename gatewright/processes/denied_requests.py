"""Finds requests that policies in force deny, for the controller, with the test harness."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from controller.registration.enforcement_requests import FindDenied
from kube.resource import JsonObject
from webhook.engine import BoundPolicy, Engine
from webhook.engine.match import LabeledNamespace
from webhook.harness.violating import DeniedRequest, find_denied


def denied_requests(carried: Callable[[], Sequence[JsonObject]]) -> FindDenied:
    """Return what finds a request that a policy denies to the controller's account.

    `carried` returns objects of the cases that the policies in force carry.
    """

    def find(
        policy: BoundPolicy,
        engine: Engine,
        namespaces: Sequence[LabeledNamespace],
        left_out: frozenset[tuple[str, str]],
    ) -> DeniedRequest | None:
        user, now = engine.planners.controller_user, datetime.now(UTC)
        return find_denied(policy, engine, namespaces, user, now, carried(), left_out)

    return find
