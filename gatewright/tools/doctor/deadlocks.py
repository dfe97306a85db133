"""Find webhooks that block their own recovery, or the cluster's."""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from gatewright.tools.doctor.calls import ExampleRequest, is_called, is_named
from gatewright.tools.doctor.hazards import (
    CRITICAL,
    NOTE,
    WARNING,
    Hazard,
    ObjectPatch,
    excluding,
    join_words,
    patch_commands,
    sparing,
)
from gatewright.tools.doctor.models import AdmissionWebhook
from gatewright.tools.doctor.needs import (
    API_SERVICE,
    DEFAULT,
    cluster_needs,
    events,
    own_needs,
)
from gatewright.tools.doctor.sequences import ANY, NAMESPACE_NAME, allowed_labels
from gatewright.tools.doctor.state import ClusterState, Registered, WebhookKey

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
API_OBJECTS = f'request.namespace == "{DEFAULT}" && request.name == "{API_SERVICE}"'


def check(state: ClusterState) -> Iterator[Hazard]:
    """Yield a finding for each webhook that blocks a recovery while it does not answer."""
    closed = [each for each in state.registered_webhooks() if each.fails_closed]
    needs = list(cluster_needs(state))
    cycles = list(_cycles(closed, state))
    also: dict[WebhookKey, set[str]] = {}
    for cycle in cycles:
        for webhook in cycle.blocking:
            also.setdefault(webhook.key, set()).add(cycle.space)
    exclusions: dict[WebhookKey, ObjectPatch] = {}
    for webhook in closed:
        spaces = also.get(webhook.key, set())
        hazards = list(_of_webhook(webhook, needs, spaces, state))
        exclusions[webhook.key] = (
            hazards[0].patch if hazards else _Exclusion.of((), spaces).patch(webhook)
        )
        yield from hazards
    for cycle in cycles:
        yield cycle.hazard(exclusions)


def _of_webhook(
    each: Registered, needs: Sequence[ExampleRequest], spaces: Set[str], state: ClusterState
) -> Iterator[Hazard]:
    """Yield the findings about one webhook: their patches are the same, and exclude `spaces`."""

    def select_called(requests: Iterable[ExampleRequest]) -> list[ExampleRequest]:
        return [request for request in requests if is_called(each.webhook, request, state)]

    service = each.service
    own = select_called(own_needs(service, state)) if service else []
    data = select_called(own_needs(service, state, "own_data")) if service and not own else []
    needed, lost = select_called(needs), select_called(events())
    system = [need for need in needed if need.namespace]
    wide = [need for need in needed if not need.namespace]
    patch = _Exclusion.of([*own, *data, *needed, *lost], spaces).patch(each)
    of_pods = f"requests for its own pods (behind {service})"
    of_data = "Secrets, ConfigMaps or ReplicaSets of its own namespace"
    of_cluster = "cluster-scoped objects that the cluster needs to come back,"
    of_system = "objects of system components"
    yield from _report_blocked(each, "own-pods", CRITICAL, of_pods, own, patch)
    yield from _report_blocked(each, "own-data", WARNING, of_data, data, patch)
    yield from _report_blocked(each, "system-namespaces", _level(system), of_system, system, patch)
    yield from _report_blocked(each, "cluster-resources", _level(wide), of_cluster, wide, patch)
    yield from _report_blocked(each, "events", NOTE, "events", lost, patch)


def _report_blocked(
    each: Registered,
    check: str,
    level: str,
    what: str,
    requests: Sequence[ExampleRequest],
    patch: ObjectPatch,
) -> Iterator[Hazard]:
    """Yield the finding about requests of one sort, if any is judged."""
    when, then = "While it does not answer", ""
    if check == "own-pods":
        when, then = "If its last pod goes", ": the webhook cannot come back"
    if requests:
        message = f"{each.name} judges {what} and fails closed. {when}, the API server refuses"
        message = f"{message} {_shorten(requests)}{then}"
        fix = _Exclusion.of(requests).fix
        yield Hazard(check, level, each.configuration, each.path, message, fix, patch)


class _Exclusion(NamedTuple):
    """What keeps a webhook out of requests: namespaces, resources, and the API server's Service."""

    spaces: Sequence[str]
    resources: Sequence[str]
    has_api_service: bool

    @classmethod
    def of(cls, requests: Iterable[ExampleRequest], also: Iterable[str] = ()) -> "_Exclusion":
        """Return what keeps a webhook out of these requests, and out of more namespaces."""
        spaces, resources, has_api_service = set(also), dict[str, None](), False
        for request in requests:
            if request.name == API_SERVICE:
                has_api_service = True
            elif request.namespace and request.resource != "events":
                spaces.add(request.namespace)
            else:
                resources[request.resource] = None
        return cls(sorted(spaces), list(resources), has_api_service)

    @property
    def fix(self) -> str:
        """The fix in words."""
        fixes = list[str]()
        if self.spaces:
            fixes.append(f"exclude {join_words(self.spaces)}")
        if self.has_api_service:
            fixes.append(f"do not call it for the objects {DEFAULT}/{API_SERVICE}")
        if self.resources:
            fixes.append(f"do not call it for {join_words(self.resources)}")
        return ", and ".join(fixes)

    def patch(self, each: Registered) -> ObjectPatch:
        """Return the patch of a webhook."""
        expressions = [API_OBJECTS] if self.has_api_service else []
        if self.resources:
            expressions.append(f"request.resource.resource in {json.dumps(self.resources)}")
        patch = excluding(each, self.spaces) if self.spaces else ()
        return patch + sparing(each, expressions) if expressions else patch


def _level(needed: Sequence[ExampleRequest]) -> str:
    names = {each.resource for each in needed}
    names |= {f"{each.resource}/{each.subresource}" for each in needed}
    return CRITICAL if names & VITAL else WARNING


def _shorten(needs: Sequence[ExampleRequest]) -> str:
    """Return the first requests with their meanings, and how many more there are."""
    distinct = list(dict.fromkeys(f"{need} ({need.meaning})" for need in needs))
    more = len(distinct) - MAX_LISTED
    return ", ".join(distinct[:MAX_LISTED]) + (f" and {more} more" if more > 0 else "")


class _Cycle(NamedTuple):
    """Services whose pods need each other's webhooks.

    One call less breaks it: the first one's webhooks (`blocking`) for the pods of the last one
    (`space`).
    """

    ring: Sequence[str]
    blocking: Sequence[Registered]

    @property
    def space(self) -> str:
        """The namespace that its fix excludes."""
        return self.ring[-1].partition("/")[0]

    def hazard(self, exclusions: Mapping[WebhookKey, ObjectPatch]) -> Hazard:
        """Return the finding; its command sets the whole exclusions of the webhooks."""
        ring, first = self.ring, self.blocking[0]
        return Hazard(
            "cycle",
            CRITICAL,
            first.configuration,
            first.path,
            f"{' -> '.join([*ring, ring[0]])}: the pods of each are judged by the next one, and "
            f"all fail closed. If the pods of {join_words(ring)} are gone at the same time, none "
            "of these webhooks comes back",
            f"exclude {self.space} from the webhooks of {ring[0]}",
            run=patch_commands((each, exclusions[each.key]) for each in self.blocking),
        )


def _cycles(closed: Sequence[Registered], state: ClusterState) -> Iterator[_Cycle]:
    """Yield each cycle of Services whose pods need each other's webhooks."""
    served: dict[str, list[Registered]] = {}
    needs: dict[str, list[ExampleRequest]] = {}
    for webhook in closed:
        if webhook.service is not None:
            served.setdefault(str(webhook.service), []).append(webhook)
            needs[str(webhook.service)] = list(own_needs(webhook.service, state))
    for ring in _rings(_blocked_by(served, needs, state)):
        blocking = [
            webhook
            for webhook in served[ring[0]]
            if any(is_called(webhook.webhook, need, state) for need in needs[ring[-1]])
        ]
        yield _Cycle(ring, blocking)


def _blocked_by(
    served: Mapping[str, Sequence[Registered]],
    needs: Mapping[str, Sequence[ExampleRequest]],
    state: ClusterState,
) -> dict[str, set[str]]:
    """Return, for each Service, the other Services whose webhooks judge its pods."""
    groups: dict[str, tuple[AdmissionWebhook, set[str]]] = {}  # of webhooks that judge the same
    for name, webhooks in served.items():
        for called in webhooks:
            if any(is_named(called.webhook, need) for need in needs[name]):
                words = called.webhook.model_dump_json(exclude={"name", "client_config"})
                groups.setdefault(words, (called.webhook, set()))[1].add(name)
    spaces = {name.partition("/")[0] for name in served}
    judging: dict[str, list[tuple[AdmissionWebhook, set[str]]]] = {space: [] for space in spaces}
    for webhook, names in groups.values():
        selector = webhook.namespace_selector
        is_listed, listed_spaces = allowed_labels(webhook).get(NAMESPACE_NAME, ANY)
        for space in spaces & listed_spaces if is_listed else spaces:
            if selector is None or state.selects(selector, space):
                judging[space].append((webhook, names))
    blocking = dict[str, set[str]]()
    for name in served:
        calling = (
            names
            for webhook, names in judging[name.partition("/")[0]]
            if any(is_called(webhook, need, state) for need in needs[name])
        )
        blocking[name] = set[str]().union(*calling) - {name}
    return blocking


def _rings(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the shortest cycle through each name that is in no cycle before."""
    rings: dict[str, list[str]] = {}
    for start in sorted(edges):
        before = {start: ""}  # the name from which each name was reached
        queue = deque([] if start in rings else [start])
        while queue:
            name = queue.popleft()
            if start in edges[name]:
                ring = [name]
                while ring[0] != start:
                    ring.insert(0, before[ring[0]])
                rings |= dict.fromkeys(ring, ring)
                break
            fresh = sorted(edges[name] - before.keys())
            before |= dict.fromkeys(fresh, name)
            queue += fresh
    return list({id(ring): ring for ring in rings.values()}.values())
