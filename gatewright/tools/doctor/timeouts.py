"""Find time-outs that are too long: of one webhook, and of those that are called in sequence."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gatewright.tools.doctor.calls import is_called
from gatewright.tools.doctor.hazards import (
    CRITICAL,
    WARNING,
    Hazard,
    of_webhook,
    patch_commands,
    setting,
)
from gatewright.tools.doctor.needs import leases
from gatewright.tools.doctor.sequences import Sequences
from gatewright.tools.doctor.state import ClusterState, Registered, WebhookKey

MAX_TIMEOUT = 15  # seconds; Gardener's bound for webhooks that fail closed or open
MAX_LEASE_TIMEOUT = 3  # seconds: components give up a Lease after 10 s, with several tries in them
MAX_TOTAL = 30  # seconds: leaves some for validation
REQUEST_LIMIT = 34  # seconds, after which the API server ends a request (handlers/rest.go)


def check(state: ClusterState, called_in_turn: Sequences) -> Iterator[Hazard]:
    """Yield findings about each webhook, then about mutating webhooks of the same resource."""
    bounds = {each.key: _longest_seconds(each, state) for each in state.registered_webhooks()}
    seconds = _lowered_timeouts([called for _, called in called_in_turn], bounds, state)
    for registered in state.registered_webhooks():
        yield from _timeout(registered, seconds[registered.key], bounds[registered.key])
    slow: dict[str, list[Sequence[Registered]]] = {}
    for target, called in called_in_turn:
        if len(called) > 1 and _total(called) >= REQUEST_LIMIT:
            slow.setdefault(target, []).append(called)
    for target, groups in slow.items():
        yield _in_turn(target, groups, seconds)


def _lowered_timeouts(
    groups: Iterable[Sequence[Registered]], bounds: Mapping[WebhookKey, int], state: ClusterState
) -> dict[WebhookKey, int]:
    """Return the time-outs with which no webhook, and no sequence of them, takes too long.

    Every command sets these, so it does not matter which is run, or in which order.
    """
    seconds = {
        registered.key: min(registered.webhook.timeout_seconds, bounds[registered.key])
        for registered in state.registered_webhooks()
    }
    for called in groups:
        # Of a sequence that takes too long, the slowest are lowered, all to the same time-out.
        highest = max(seconds[each.key] for each in called)
        while highest > 1 and sum(min(seconds[e.key], highest) for e in called) > MAX_TOTAL:
            highest -= 1
        for registered in called:
            seconds[registered.key] = min(seconds[registered.key], highest)
    return seconds


def _longest_seconds(each: Registered, state: ClusterState) -> int:
    """Return how long a webhook may take at most."""
    judges_leases = any(is_called(each.webhook, request, state) for request in leases())
    return MAX_LEASE_TIMEOUT if judges_leases else MAX_TIMEOUT


def _timeout(each: Registered, lowered: int, bound: int) -> Iterator[Hazard]:
    seconds = each.webhook.timeout_seconds
    if seconds <= bound:
        return
    if bound == MAX_LEASE_TIMEOUT:
        yield of_webhook(
            "lease-timeout",
            CRITICAL,
            each,
            f"{each.name} judges Leases and may take {seconds} s. While it hangs, kube-scheduler, "
            "kube-controller-manager and kubelets cannot renew theirs in time and lose them",
            f"leave Leases out of its rules, or set timeoutSeconds to {bound}",
            timeoutSeconds=lowered,
        )
    else:
        yield of_webhook(
            "long-timeout",
            WARNING,
            each,
            f"{each.name} may take {seconds} s. While it hangs, each request that it judges waits "
            "so long, and so do the controllers that send them",
            f"set timeoutSeconds to {bound} or less",
            timeoutSeconds=lowered,
        )


def _total(called: Sequence[Registered]) -> int:
    return sum(each.webhook.timeout_seconds for each in called)


def _in_turn(
    target: str, groups: Sequence[Sequence[Registered]], seconds: Mapping[WebhookKey, int]
) -> Hazard:
    """Return the finding about the slowest of the groups that a request of one resource meets."""
    called = max(groups, key=_total)
    names = ", ".join(each.name for each in called)
    can_end = all(sum(seconds[each.key] for each in group) <= MAX_TOTAL for group in groups)
    lowered = {each.key: each for group in groups for each in group if can_end}
    return Hazard(
        "timeouts-add-up",
        WARNING,
        called[-1].configuration,
        called[-1].path,
        f"{len(called)} mutating webhooks judge {target}, one after another, and may take "
        f"{_total(called)} s together ({names}). The API server ends a request after "
        f"{REQUEST_LIMIT} s: while these hang, it fails whatever their failurePolicy",
        f"lower timeoutSeconds until the sum is at most {MAX_TOTAL}",
        run=patch_commands(
            (registered, setting(registered, "timeoutSeconds", seconds[registered.key]))
            for registered in lowered.values()
            if seconds[registered.key] < registered.webhook.timeout_seconds
        ),
    )
