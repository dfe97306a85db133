"""Find settings of webhooks that miss or break requests."""

from collections.abc import Iterator, Mapping, Sequence

from config.api.admission import ResourceRule
from gatewright.tools.doctor.hazards import (
    NOTE,
    WARNING,
    Hazard,
    join_words,
    of_webhook,
    on_condition,
)
from gatewright.tools.doctor.models import ResourceDefinition
from gatewright.tools.doctor.sequences import Sequences
from gatewright.tools.doctor.state import ClusterState, Registered, WebhookKey

# Kubernetes serves one resource of its own in two versions.
BUILT_IN_VERSIONS = {("autoscaling", "horizontalpodautoscalers"): ["v1", "v2"]}
# Subresources that change fields which a rule about the resource is meant to control.
WAYS_AROUND = {
    "pods": (
        ("UPDATE", "pods/ephemeralcontainers", "`kubectl debug` adds containers"),
        ("UPDATE", "pods/resize", "the resources of running containers are changed"),
    ),
    "deployments": (("UPDATE", "deployments/scale", "`kubectl scale` changes replicas"),),
    "statefulsets": (("UPDATE", "statefulsets/scale", "`kubectl scale` changes replicas"),),
    "replicasets": (("UPDATE", "replicasets/scale", "`kubectl scale` changes replicas"),),
}
WRITES = {"CREATE", "UPDATE", "*"}
EVICTION = ("CREATE", "pods/eviction", "an eviction deletes the pod")


def check(state: ClusterState, called_in_turn: Sequences) -> Iterator[Hazard]:
    """Yield findings about each webhook, then about mutating webhooks of the same resource."""
    versions = BUILT_IN_VERSIONS | {
        (definition.group, definition.plural): [
            version.name for version in definition.versions if version.served
        ]
        for definition in state.all(ResourceDefinition)
    }
    for registered in state.registered_webhooks():
        yield from _side_effects(registered)
        yield from _everything(registered)
        yield from _versions(registered, versions)
        if not registered.is_mutating:
            yield from _ways_around(registered)
    yield from _order(called_in_turn)


def _side_effects(each: Registered) -> Iterator[Hazard]:
    if each.webhook.side_effects not in ("None", "NoneOnDryRun"):
        hazard = of_webhook(
            "side-effects",
            WARNING,
            each,
            f"{each.name} has sideEffects {each.webhook.side_effects}, so each dry run of what it "
            "judges fails: `kubectl apply --dry-run=server`, `kubectl diff`",
            "set sideEffects to None or NoneOnDryRun, if that is true",
            sideEffects="NoneOnDryRun",
        )
        yield on_condition(hazard)


def _everything(each: Registered) -> Iterator[Hazard]:
    operations = {
        "every operation" if operation == "*" else operation: None
        for rule in each.webhook.rules
        if "*" in rule.api_groups and {"*", "*/*"} & set(rule.resources)
        for operation in rule.operations
    }
    if each.fails_closed and operations:
        yield of_webhook(
            "all-resources",
            WARNING,
            each,
            f"{each.name} judges every resource of every group and fails closed. While it does not "
            f"answer, the API server refuses {join_words(list(operations))} on all that it selects",
            "name the resources in `rules`",
        )


def _versions(
    each: Registered, versions: Mapping[tuple[str, str], Sequence[str]]
) -> Iterator[Hazard]:
    if each.webhook.match_policy != "Exact":
        return
    for rule in each.webhook.rules:
        for group, resource, served in _served_versions(rule, versions):
            missed = sorted(set(served) - set(rule.api_versions))
            if missed:
                yield of_webhook(
                    "match-policy",
                    WARNING,
                    each,
                    f"{each.name} has matchPolicy Exact and names {', '.join(rule.api_versions)} "
                    f"of {resource}.{group}. The same objects sent as {', '.join(missed)} are not "
                    "judged",
                    "set matchPolicy to Equivalent",
                    matchPolicy="Equivalent",
                )


def _served_versions(
    rule: ResourceRule, versions: Mapping[tuple[str, str], Sequence[str]]
) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield the resources of a rule that are served in several versions, with these."""
    if "*" in rule.api_versions:
        return
    for group in rule.api_groups:
        for resource in rule.resources:
            yield group, resource, versions.get((group, resource), ())


def _ways_around(each: Registered) -> Iterator[Hazard]:
    if any("/" in resource for rule in each.webhook.rules for resource in rule.resources):
        return  # the author has chosen subresources
    missed = list[str]()
    for rule in each.webhook.rules:
        operations = set(rule.operations)
        for resource in rule.resources:
            ways = list(WAYS_AROUND.get(resource, ())) if operations & WRITES else []
            if resource == "pods" and operations & {"DELETE", "*"}:
                ways.append(EVICTION)
            missed += [f"{operation} {way} ({meaning})" for operation, way, meaning in ways]
    if missed:
        yield of_webhook(
            "subresources",
            NOTE,
            each,
            f"{each.name} is not called for {', '.join(dict.fromkeys(missed))}",
            "add these subresources to `rules`, if its policies are meant for them",
        )


def _order(called_in_turn: Sequences) -> Iterator[Hazard]:
    """Yield a finding for each mutating webhook that is not called again after others.

    A program knows the order of its own webhooks: only those of other servers count.
    """
    reported = set[WebhookKey]()
    for target, called in called_in_turn:
        last = max(
            (n for n, e in enumerate(called) if _server(e) != _server(called[-1])), default=-1
        )
        earlier = called[: last + 1]  # those before a webhook of another server
        never = next((e for e in earlier if e.webhook.reinvocation_policy == "Never"), None)
        if never and never.key not in reported:
            reported.add(never.key)
            hazard = of_webhook(
                "order",
                NOTE,
                never,
                f"{len(called)} mutating webhooks change {target}, in the order of their "
                f"configurations' names: {', '.join(each.name for each in called)}. "
                f"{never.name} does not see what later ones set (reinvocationPolicy Never); of "
                "two that set one field, the last one wins",
                "set reinvocationPolicy to IfNeeded, if it may be called twice",
                reinvocationPolicy="IfNeeded",
            )
            yield on_condition(hazard)


def _server(each: Registered) -> str:
    return each.webhook.client_config.server_name
