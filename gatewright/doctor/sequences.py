"""The mutating webhooks that the API server may call for one request, one after another."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gatewright.doctor.calls import ExampleRequest, named_requests, names
from gatewright.doctor.models import AdmissionWebhook
from gatewright.doctor.state import ClusterState, Registered, WebhookKey

POD = ExampleRequest(operation="CREATE", resource="pods")  # rules of wildcards alone name it, too


def sequences(state: ClusterState) -> list[tuple[str, list[Registered]]]:
    """Return the webhooks called for a request and its resource; each group of webhooks once."""
    mutating = [each for each in state.registered() if each.is_mutating]
    requests = {str(POD): POD}
    for each in mutating:
        requests |= _named(each.webhook)
    called: dict[str, list[Registered]] = {}
    for each in mutating:
        for request in _matched(each.webhook, requests):
            called.setdefault(request, []).append(each)
    distinct: dict[tuple[WebhookKey, ...], tuple[str, list[Registered]]] = {}
    for request, webhooks in sorted(called.items()):
        key = tuple(each.key for each in webhooks)
        distinct.setdefault(key, (requests[request].target, webhooks))
    found: dict[tuple[WebhookKey, ...], tuple[str, list[Registered]]] = {}
    for target, webhooks in distinct.values():
        for group in _together(webhooks):
            found.setdefault(tuple(each.key for each in group), (target, group))
    return sorted(found.values(), key=lambda each: each[0])


def _named(webhook: AdmissionWebhook) -> dict[str, ExampleRequest]:
    return {str(request): request for rule in webhook.rules for request in named_requests(rule)}


def _matched(webhook: AdmissionWebhook, requests: dict[str, ExampleRequest]) -> Iterator[str]:
    """Return those of the requests that a webhook's rules match."""
    words = (
        word
        for rule in webhook.rules
        for word in (*rule.operations, *rule.api_groups, *rule.resources)
    )
    if not any("*" in word for word in words):
        yield from _named(webhook)
        return
    for key, request in requests.items():
        if any(names(rule, request) for rule in webhook.rules):
            yield key


def _together(webhooks: Sequence[Registered]) -> Iterator[list[Registered]]:
    """Yield groups of webhooks whose selectors can select one object; each webhook is in one."""
    alike: dict[str, list[int]] = {}
    for index, each in enumerate(webhooks):
        alike.setdefault(_selectors(each.webhook), []).append(index)
    allowed = {key: _allowed(webhooks[same[0]].webhook) for key, same in alike.items()}
    left = dict.fromkeys(alike)
    while left:
        first = next(iter(left))
        group = {first: None}
        for key in _candidates(first, allowed):
            if all(_overlap(allowed[key], allowed[other]) for other in group):
                group[key] = None
        yield [webhooks[index] for index in sorted(i for key in group for i in alike[key])]
        for key in group:
            left.pop(key, None)


def _candidates(first: str, allowed: Mapping[str, "AllowedLabels"]) -> Iterable[str]:
    """Return selectors that may overlap: those of other values of one label are left out first.

    Thousands of webhooks that each select their own namespace take a second, not minutes.
    """
    for label, (is_listed, values) in allowed[first].items():
        if is_listed:
            alike = (True, values)
            return [
                key
                for key, labels in allowed.items()
                if not (its := labels.get(label, alike))[0] or not values.isdisjoint(its[1])
            ]
    return allowed


def _selectors(webhook: AdmissionWebhook) -> str:
    selectors = webhook.namespace_selector, webhook.object_selector
    return " ".join("" if each is None else each.model_dump_json() for each in selectors)


# The values that a label may have: those of the set, or all but those. Absent is the value None.
# Labels of the namespace and of the object have different keys.
AllowedValues = tuple[bool, frozenset[str | None]]
AllowedLabels = dict[tuple[str, str], AllowedValues]


def _allowed(webhook: AdmissionWebhook) -> AllowedLabels:
    """Return the values that selectors allow, by label; of two requirements, the first counts."""
    found: AllowedLabels = {}
    namespaces, objects = webhook.namespace_selector, webhook.object_selector
    for holder, selector in (("namespace", namespaces), ("object", objects)):
        for key, value in selector.match_labels.items() if selector else ():
            found[holder, key] = True, frozenset({value})
        for each in selector.match_expressions if selector else ():
            values: frozenset[str | None] = frozenset(each.values) or frozenset({None})
            is_listed = each.operator in ("In", "DoesNotExist")
            found.setdefault((holder, each.key), (is_listed, values))
    return found


def _overlap(one: AllowedLabels, other: AllowedLabels) -> bool:
    """Return whether some labels are allowed by both."""
    for key in one.keys() & other.keys():
        (is_listed, values), (is_other_listed, others) = one[key], other[key]
        if is_listed and is_other_listed:
            meet = not values.isdisjoint(others)
        elif is_listed:
            meet = not values <= others
        else:
            meet = not is_other_listed or not others <= values
        if not meet:
            return False
    return True
