"""Find settings of webhooks that miss or break requests."""

from collections.abc import Iterator, Mapping, Sequence

from config.api.admission import ResourceRule
from gatewright.doctor.hazards import NOTE, WARNING, Hazard, setting
from gatewright.doctor.models import ResourceDefinition, ServedVersion
from gatewright.doctor.state import ClusterState, Registered

NEWER_VERSIONS = {
    "autoscaling": ("v1", "v2"),
    "flowcontrol.apiserver.k8s.io": ("v1beta3", "v1"),
}
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
EVICTION = ("CREATE", "pods/eviction", "an eviction deletes the pod")


def check(state: ClusterState) -> Iterator[Hazard]:
    """Yield findings about each webhook, then about mutating webhooks of the same resource."""
    versions = {
        (each.spec.group, each.spec.names.plural): each.spec.versions
        for each in state.all(ResourceDefinition)
    }
    for each in state.registered():
        yield from _side_effects(each)
        yield from _everything(each)
        yield from _versions(each, versions)
        if not each.is_mutating:
            yield from _ways_around(each)
    yield from _order(state)


def _side_effects(each: Registered) -> Iterator[Hazard]:
    if each.webhook.side_effects not in ("None", "NoneOnDryRun"):
        yield Hazard(
            "side-effects",
            WARNING,
            each.configuration,
            each.path,
            f"{each.webhook.name} has sideEffects {each.webhook.side_effects}, so each dry run of "
            "what it judges fails: `kubectl apply --dry-run=server`, `kubectl diff`",
            "set sideEffects to None or NoneOnDryRun, if that is true",
            setting(each, "sideEffects", "NoneOnDryRun"),
        )


def _everything(each: Registered) -> Iterator[Hazard]:
    if each.fails_closed and any(
        "*" in rule.api_groups and {"*", "*/*"} & set(rule.resources) for rule in each.webhook.rules
    ):
        yield Hazard(
            "all-resources",
            WARNING,
            each.configuration,
            each.path,
            f"{each.webhook.name} judges every resource of every group and fails closed. While it "
            "does not answer, nothing that it selects can be written, whatever its kind",
            "name the resources in `rules`",
        )


def _versions(
    each: Registered, versions: Mapping[tuple[str, str], Sequence[ServedVersion]]
) -> Iterator[Hazard]:
    if each.webhook.match_policy != "Exact":
        return
    for rule in each.webhook.rules:
        for group, resource, served in _served(rule, versions):
            missed = sorted(set(served) - set(rule.api_versions))
            if missed:
                yield Hazard(
                    "match-policy",
                    WARNING,
                    each.configuration,
                    each.path,
                    f"{each.webhook.name} has matchPolicy Exact and names "
                    f"{', '.join(rule.api_versions)} of {resource}.{group}. The same objects sent "
                    f"as {', '.join(missed)} are not judged",
                    "set matchPolicy to Equivalent",
                    setting(each, "matchPolicy", "Equivalent"),
                )


def _served(
    rule: ResourceRule, versions: Mapping[tuple[str, str], Sequence[ServedVersion]]
) -> Iterator[tuple[str, str, list[str]]]:
    if "*" in rule.api_versions:
        return
    for group in rule.api_groups:
        if group in NEWER_VERSIONS:
            yield group, rule.resources[0], list(NEWER_VERSIONS[group])
        for resource in rule.resources:
            served = [each.name for each in versions.get((group, resource), ()) if each.served]
            if served:
                yield group, resource, served


def _ways_around(each: Registered) -> Iterator[Hazard]:
    if any("/" in resource for rule in each.webhook.rules for resource in rule.resources):
        return  # the author has chosen subresources
    missed = list[str]()
    for rule in each.webhook.rules:
        for resource in rule.resources:
            ways = list(WAYS_AROUND.get(resource, ()))
            if resource == "pods" and "DELETE" in rule.operations:
                ways.append(EVICTION)
            missed += [f"{operation} {way} ({meaning})" for operation, way, meaning in ways]
    if missed:
        yield Hazard(
            "subresources",
            NOTE,
            each.configuration,
            each.path,
            f"{each.webhook.name} is not called for {', '.join(dict.fromkeys(missed))}",
            "add these subresources to `rules`, if its policies are meant for them",
        )


def _order(state: ClusterState) -> Iterator[Hazard]:
    """Yield a finding for each group of mutating webhooks of which one is not called again."""
    reported = set[tuple[str, ...]]()
    for name, called in state.mutating().items():
        names = tuple(each.webhook.name for each in called)
        never = [each for each in called[:-1] if each.webhook.reinvocation_policy == "Never"]
        if never and names not in reported:
            reported.add(names)
            yield Hazard(
                "order",
                NOTE,
                never[0].configuration,
                never[0].path,
                f"{len(called)} mutating webhooks change {name}, in the order of their "
                f"configurations' names: {', '.join(names)}. {never[0].webhook.name} does not see "
                "what later ones set (reinvocationPolicy Never); of two that set one field, the "
                "last one wins",
                "set reinvocationPolicy to IfNeeded, if it may be called twice",
                setting(never[0], "reinvocationPolicy", "IfNeeded"),
            )
