"""The mutating webhooks that the API server may call for one request, one after another."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain

from config.api.admission import ResourceRule
from gatewright.tools.doctor.calls import ExampleRequest, named_requests, names
from gatewright.tools.doctor.models import AdmissionWebhook
from gatewright.tools.doctor.state import ClusterState, Registered, WebhookKey

Sequences = list[tuple[str, list[Registered]]]
# The values that a label may have: those of the set, or all but those. Absent is the value None.
# Labels of the namespace and of the object have different keys.
AllowedValues = tuple[bool, frozenset[str | None]]
HeldLabel = tuple[str, str]
AllowedLabels = dict[HeldLabel, AllowedValues]
ANY: AllowedValues = (False, frozenset())
NONE: AllowedValues = (True, frozenset())
NAMESPACE_NAME = ("namespace", "kubernetes.io/metadata.name")
POD = ExampleRequest(operation="CREATE", resource="pods")  # rules of wildcards alone name it, too


def sequences(state: ClusterState) -> Sequences:
    """Return the webhooks called for a request and its resource; each group of webhooks once."""
    mutating = [each for each in state.registered_webhooks() if each.is_mutating]
    requests = {str(POD): POD}
    for webhook in mutating:
        requests |= {str(e): e for rule in webhook.webhook.rules for e in named_requests(rule)}
    by_group: dict[str, list[str]] = {}
    for text, request in requests.items():
        by_group.setdefault(request.group, []).append(text)
    called: dict[str, list[Registered]] = {}
    for webhook in mutating:
        rules = webhook.webhook.rules
        for text in {text for rule in rules for text in _match(rule, requests, by_group)}:
            called.setdefault(text, []).append(webhook)
    distinct: dict[tuple[WebhookKey, ...], tuple[str, list[Registered]]] = {}
    for text, webhooks in sorted(called.items()):
        key = tuple(each.key for each in webhooks)
        distinct.setdefault(key, (requests[text].target, webhooks))
    groups: dict[tuple[WebhookKey, ...], tuple[str, list[Registered]]] = {}
    for target, webhooks in distinct.values():
        for group in _together(webhooks):
            groups.setdefault(tuple(each.key for each in group), (target, group))
    return sorted(groups.values(), key=lambda each: each[0])


def _match(
    rule: ResourceRule,
    requests: Mapping[str, ExampleRequest],
    by_group: Mapping[str, Sequence[str]],
) -> Iterable[str]:
    """Return those of the requests that a rule matches."""
    if not any("*" in word for word in (*rule.operations, *rule.api_groups, *rule.resources)):
        return map(str, named_requests(rule))
    groups = by_group if "*" in rule.api_groups else rule.api_groups
    candidates = (text for group in groups for text in by_group.get(group, ()))
    return (text for text in candidates if names(rule, requests[text]))


def _together(webhooks: Sequence[Registered]) -> Iterator[list[Registered]]:
    """Yield groups of webhooks whose selectors can select one object; each webhook is in one."""
    alike: dict[str, list[int]] = {}
    for index, webhook in enumerate(webhooks):
        alike.setdefault(_selectors(webhook.webhook), []).append(index)
    allowed = {key: allowed_labels(webhooks[same[0]].webhook) for key, same in alike.items()}
    candidates = _index(allowed)
    left = dict.fromkeys(alike)
    while left:
        first = next(iter(left))
        group, common = {first}, allowed[first]
        for key in candidates(common):
            if (both := _common(common, allowed[key])) is not None:
                group.add(key)
                common = both
        yield [webhooks[index] for index in sorted(i for key in group for i in alike[key])]
        for key in group:
            left.pop(key, None)


def _index(
    allowed: Mapping[str, AllowedLabels],
) -> Callable[[AllowedLabels], Iterable[str]]:
    """Return a function that finds the selectors which may select the same object."""
    listing: dict[HeldLabel, dict[str | None, list[str]]] = {}
    for key, labels in allowed.items():
        for label, (is_listed, values) in labels.items():
            for value in values if is_listed else ():
                listing.setdefault(label, {}).setdefault(value, []).append(key)

    @cache
    def list_free(label: HeldLabel) -> list[str]:
        return [key for key, labels in allowed.items() if not labels.get(label, ANY)[0]]

    def candidates(labels: AllowedLabels) -> Iterable[str]:
        """Return the selectors that allow values of one label: the label with the fewest."""
        lists = (
            [*(listing[label][value] for value in values), list_free(label)]
            for label, (is_listed, values) in labels.items()
            if is_listed
        )
        fewest = min(lists, key=lambda each: sum(map(len, each)), default=[allowed])
        return dict.fromkeys(chain(*fewest))

    return candidates


def _selectors(webhook: AdmissionWebhook) -> str:
    selectors = webhook.namespace_selector, webhook.object_selector
    return " ".join("" if each is None else each.model_dump_json() for each in selectors)


def allowed_labels(webhook: AdmissionWebhook) -> AllowedLabels:
    """Return the values that selectors allow, by label."""
    allowed: AllowedLabels = {}
    namespaces, objects = webhook.namespace_selector, webhook.object_selector
    for holder, selector in (("namespace", namespaces), ("object", objects)):
        for key, value in selector.match_labels.items() if selector else ():
            allowed[holder, key] = True, frozenset({value})
        for expression in selector.match_expressions if selector else ():
            values: frozenset[str | None] = frozenset(expression.values) or frozenset({None})
            required = expression.operator in ("In", "DoesNotExist"), values
            allowed[holder, expression.key] = _meet(
                allowed.get((holder, expression.key), ANY), required
            )
    return allowed


def _common(one: AllowedLabels, other: AllowedLabels) -> AllowedLabels | None:
    """Return the labels that both allow; None if there are none."""
    shared = {key: _meet(one[key], other[key]) for key in other if key in one}
    return None if NONE in shared.values() else one | other | shared


def _meet(one: AllowedValues, other: AllowedValues) -> AllowedValues:
    (is_listed, values), (is_other_listed, others) = one, other
    if not is_other_listed:
        return is_listed, values - others if is_listed else values | others
    return True, others & values if is_listed else others - values
