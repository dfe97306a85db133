"""Find webhooks that block their own recovery, or the cluster's."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gatewright.doctor.calls import ExampleRequest, is_called, is_named
from gatewright.doctor.hazards import CRITICAL, NOTE, WARNING, Hazard, excluding, sparing
from gatewright.doctor.models import ResourceDefinition, ServiceReference
from gatewright.doctor.needs import cluster_needs, data_needs, events, own_needs
from gatewright.doctor.state import ClusterState, Registered

MAX_LISTED = 4  # requests that one message lists
# If these fail, nodes and pods do not recover; if others fail, an object cannot be changed.
VITAL = frozenset(
    {
        "apiservices",
        "certificatesigningrequests",
        "clusterrolebindings",
        "clusterroles",
        "controllerrevisions",
        "endpointslices",
        "leases",
        "nodes",
        "pods",
        "priorityclasses",
        "replicasets",
        "serviceaccounts/token",
        "subjectaccessreviews",
        "tokenreviews",
    }
)


def check(state: ClusterState) -> Iterator[Hazard]:
    """Yield a finding for each webhook that blocks a recovery while it does not answer."""
    closed = [each for each in state.registered() if each.fails_closed]
    needs = list(cluster_needs())
    for each in closed:
        yield from _of_webhook(each, needs, state)
    yield from _cycles(closed, state)


def _of_webhook(
    each: Registered, needs: Sequence[ExampleRequest], state: ClusterState
) -> Iterator[Hazard]:
    """Yield the findings about one webhook; each patch fixes as much as a patch can."""

    def judged(requests: Iterable[ExampleRequest]) -> list[ExampleRequest]:
        return [request for request in requests if is_called(each.webhook, request, state)]

    service, name = each.service, each.webhook.name
    own = judged(own_needs(service, state)) if service else []
    data = judged(data_needs(service.namespace)) if service and not own else []
    needed, lost = judged(needs), judged(events())
    namespaced = [need for need in needed if need.namespace]
    wide = [need for need in needed if not need.namespace]
    spaces = sorted({need.namespace for need in (*own, *data, *namespaced)})
    excluded = f"exclude {_and(spaces)}", excluding(each, spaces)
    resources = list(dict.fromkeys(need.resource for need in (*wide, *lost)))
    spared = (
        f"do not call it for {_and(resources)}",
        sparing(each, resources),
    )
    for check, level, requests, what, (fix, patch) in (
        ("own-pods", CRITICAL, own, f"requests for its own pods (behind {service})", excluded),
        ("own-data", WARNING, data, "Secrets or ConfigMaps of its own namespace", excluded),
        (
            "system-namespaces",
            _level(namespaced),
            namespaced,
            "objects that the cluster needs to come back,",
            excluded,
        ),
        (
            "cluster-resources",
            _level(wide),
            wide,
            "cluster-scoped objects that the cluster needs to come back,",
            spared,
        ),
        ("events", NOTE, lost, "events", spared),
    ):
        when, then = "While it does not answer", ""
        if check == "own-pods":
            when, then = "If its last pod goes", ": the pods cannot come back"
        if requests:
            yield Hazard(
                check,
                level,
                each.configuration,
                each.path,
                (
                    f"{name} judges {what} and fails closed. {when}, the API server refuses "
                    f"{_listed(requests)}{then}"
                ),
                fix,
                patch=patch,
            )


def _level(needed: Sequence[ExampleRequest]) -> str:
    names = {each.resource for each in needed}
    names |= {f"{each.resource}/{each.subresource}" for each in needed}
    return CRITICAL if names & VITAL else WARNING


def _cycles(closed: Sequence[Registered], state: ClusterState) -> Iterator[Hazard]:
    """Yield a finding for each cycle of Services whose pods need each other's webhooks."""
    served: dict[str, tuple[ServiceReference, list[Registered]]] = {}
    for each in closed:
        if each.service is not None:
            served.setdefault(str(each.service), (each.service, []))[1].append(each)
    for service in _conversions(state):
        served.setdefault(str(service), (service, []))
    for ring in _rings(_blocked_by(served, state)):
        webhooks = [each for name in ring for each in served[name][1]]
        if not webhooks:
            continue
        first = webhooks[0]
        others = [name for name in ring if name != str(first.service)]
        path = " -> ".join([*ring, ring[0]])
        spaces = sorted({served[name][0].namespace for name in ring})
        yield Hazard(
            "cycle",
            CRITICAL,
            first.configuration,
            first.path,
            (
                f"{path}: the pods of each are judged by the next one, and all fail closed. If the "
                f"pods of {first.service} and {_and(others)} are gone at the same time, the API "
                "server refuses to create any of them"
            ),
            f"exclude {_and(spaces)}",
            patch=excluding(first, spaces),
        )


def _conversions(state: ClusterState) -> list[ServiceReference]:
    """Return the Services of conversion webhooks."""
    return [
        service
        for each in state.all(ResourceDefinition)
        if each.spec.conversion.strategy == "Webhook"
        and (service := each.spec.conversion.webhook.client_config.service) is not None
    ]


def _blocked_by(
    served: Mapping[str, tuple[ServiceReference, list[Registered]]], state: ClusterState
) -> dict[str, set[str]]:
    """Return, for each Service, the other Services whose webhooks judge its pods."""
    needs = {name: list(own_needs(service, state)) for name, (service, _) in served.items()}
    # Grouped by selector: thousands of webhooks have only a few different selectors.
    groups: dict[str, list[tuple[str, Registered]]] = {}
    for name, (_, webhooks) in served.items():
        for each in webhooks:
            if any(is_named(each.webhook, need) for need in needs[name]):
                selector = each.webhook.namespace_selector
                words = "" if selector is None else selector.model_dump_json()
                groups.setdefault(words, []).append((name, each))
    found = dict[str, set[str]]()
    for name, (service, _) in served.items():
        found[name] = set()
        for members in groups.values():
            selector = members[0][1].webhook.namespace_selector
            if selector is None or state.selects(selector, service.namespace):
                found[name] |= {
                    other
                    for other, each in members
                    if other != name
                    and any(is_called(each.webhook, need, state) for need in needs[name])
                }
    return found


def _rings(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the shortest cycle through each name; each set of names once."""
    found: dict[frozenset[str], list[str]] = {}
    for start in sorted(edges):
        paths = [[start]]
        seen = {start}
        while paths:
            path = paths.pop(0)
            if start in edges[path[-1]] and len(path) > 1:
                found.setdefault(frozenset(path), path)
                break
            fresh = sorted(edges[path[-1]] - seen)
            seen.update(fresh)
            paths += [[*path, name] for name in fresh]
    return list(found.values())


def _listed(needs: Sequence[ExampleRequest]) -> str:
    """Return the first requests with their meanings, and how many more there are."""
    distinct = list(dict.fromkeys(f"{need} ({need.meaning})" for need in needs))
    listed = ", ".join(distinct[:MAX_LISTED])
    more = len(distinct) - MAX_LISTED
    return f"{listed} and {more} more" if more > 0 else listed


def _and(words: Sequence[str]) -> str:
    *head, last = words or [""]
    return f"{', '.join(head)} and {last}" if head else last
