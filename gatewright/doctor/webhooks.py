"""Find settings of webhooks that delay, miss or break requests."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from config.api.admission import ResourceRule
from gatewright.doctor.calls import is_called
from gatewright.doctor.hazards import CRITICAL, NOTE, WARNING, Hazard
from gatewright.doctor.models import ResourceDefinition, ServedVersion
from gatewright.doctor.needs import leases
from gatewright.doctor.state import ClusterState, Registered

MAX_TIMEOUT = 15  # seconds; Gardener's bound for webhooks that fail closed or open
MAX_LEASE_TIMEOUT = 3  # seconds: components give up a Lease after 10 s, with several tries in them
MAX_TOTAL = 30  # seconds: kubectl and most controllers end a request after 30 to 34 s
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


def check(state: ClusterState, now: datetime) -> Iterator[Hazard]:
    """Yield findings about each webhook, then about mutating webhooks called in sequence."""
    webhooks = state.registered()
    versions = {
        (each.spec.group, each.spec.names.plural): each.spec.versions
        for each in state.all(ResourceDefinition)
    }
    for each in webhooks:
        yield from _timeout(each, state)
        yield from _side_effects(each)
        yield from _everything(each)
        yield from _versions(each, versions)
        if not each.is_mutating:
            yield from _ways_around(each)
    yield from _in_turn([each for each in webhooks if each.is_mutating])


def _timeout(each: Registered, state: ClusterState) -> Iterator[Hazard]:
    seconds = each.webhook.timeout_seconds
    if seconds > MAX_LEASE_TIMEOUT and any(
        is_called(each.webhook, request, state) for request in leases()
    ):
        yield _of(
            each,
            "lease-timeout",
            CRITICAL,
            f"{each.webhook.name} judges Leases and may take {seconds} s. While it hangs, "
            "kube-scheduler, kube-controller-manager and kubelets cannot renew theirs in time and "
            "lose them",
            f"leave Leases out of its rules, or set timeoutSeconds to {MAX_LEASE_TIMEOUT}",
            _set(each, "timeoutSeconds", MAX_LEASE_TIMEOUT),
        )
    elif seconds > MAX_TIMEOUT:
        yield _of(
            each,
            "long-timeout",
            WARNING,
            f"{each.webhook.name} may take {seconds} s. While it hangs, each request that it "
            "judges waits so long, and so do the controllers that send them",
            f"set timeoutSeconds to {MAX_TIMEOUT} or less",
            _set(each, "timeoutSeconds", MAX_TIMEOUT),
        )


def _side_effects(each: Registered) -> Iterator[Hazard]:
    if each.webhook.side_effects not in ("None", "NoneOnDryRun"):
        yield _of(
            each,
            "side-effects",
            WARNING,
            f"{each.webhook.name} has sideEffects {each.webhook.side_effects}, so each dry run of "
            "what it judges fails: `kubectl apply --dry-run=server`, `kubectl diff`",
            "set sideEffects to None or NoneOnDryRun, if that is true",
            _set(each, "sideEffects", "NoneOnDryRun"),
        )


def _everything(each: Registered) -> Iterator[Hazard]:
    if each.fails_closed and any(
        "*" in rule.api_groups and {"*", "*/*"} & set(rule.resources) for rule in each.webhook.rules
    ):
        yield _of(
            each,
            "all-resources",
            WARNING,
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
                yield _of(
                    each,
                    "match-policy",
                    WARNING,
                    f"{each.webhook.name} has matchPolicy Exact and names "
                    f"{', '.join(rule.api_versions)} of {resource}.{group}. The same objects sent "
                    f"as {', '.join(missed)} are not judged",
                    "set matchPolicy to Equivalent",
                    _set(each, "matchPolicy", "Equivalent"),
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
        yield _of(
            each,
            "subresources",
            NOTE,
            f"{each.webhook.name} is not called for {', '.join(dict.fromkeys(missed))}",
            "add these subresources to `rules`, if its policies are meant for them",
        )


def _in_turn(mutating: Sequence[Registered]) -> Iterator[Hazard]:
    """Yield findings about mutating webhooks, which are called in sequence, ordered by name."""
    by_resource: dict[str, list[Registered]] = {}
    for each in mutating:
        names = {
            f"{resource}.{group}" if group else resource
            for rule in each.webhook.rules
            for group in rule.api_groups
            for resource in rule.resources
        }
        for name in names:
            by_resource.setdefault(name, []).append(each)
    reported = set[tuple[str, ...]]()
    for name, called in sorted(by_resource.items()):
        key = tuple(each.webhook.name for each in called)
        total = sum(each.webhook.timeout_seconds for each in called)
        if len(called) < 2 or key in reported:
            continue
        if total > MAX_TOTAL:
            reported.add(key)
            yield _of(
                called[-1],
                "timeouts-add-up",
                WARNING,
                f"{len(called)} mutating webhooks judge {name}, one after another, and may take "
                f"{total} s together ({', '.join(key)}). The API server's clients give up after "
                f"{MAX_TOTAL} s: while these hang, the request fails whatever their failurePolicy",
                f"lower timeoutSeconds until the sum is at most {MAX_TOTAL}",
            )
        never = [each for each in called[:-1] if each.webhook.reinvocation_policy == "Never"]
        if never:
            reported.add(key)
            yield _of(
                never[0],
                "order",
                NOTE,
                f"{len(called)} mutating webhooks change {name}, in the order of their "
                f"configurations' names: {', '.join(key)}. {never[0].webhook.name} does not see "
                "what later ones set (reinvocationPolicy Never); of two that set one field, the "
                "last one wins",
                "set reinvocationPolicy to IfNeeded, if it may be called twice",
                _set(never[0], "reinvocationPolicy", "IfNeeded"),
            )


def _set(each: Registered, field: str, value: object) -> tuple[Mapping[str, object], ...]:
    return ({"op": "add", "path": f"/webhooks/{each.index}/{field}", "value": value},)


def _of(
    each: Registered,
    name: str,
    level: str,
    message: str,
    fix: str,
    patch: tuple[Mapping[str, object], ...] = (),
) -> Hazard:
    return Hazard(
        check=name,
        subject=each.configuration,
        level=level,
        path=each.path,
        message=message,
        fix=fix,
        patch=patch,
    )
