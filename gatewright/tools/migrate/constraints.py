"""Convert constraints of Gatekeeper's library to built-in policies.

Each function takes the parameters of a constraint, removes those that it converts, and returns
policies with their parameters.
"""

from collections.abc import Callable
from typing import Any

from gatewright.tools.migrate.results import refuse

Parameters = dict[str, Any]
NamedPolicies = list[tuple[str, dict[str, Any]]]


def _plain(policy: str, **params: Any) -> Callable[[Parameters], NamedPolicies]:
    return lambda _: [(policy, params)]


def _renamed(policy: str, **names: str) -> Callable[[Parameters], NamedPolicies]:
    """Return a policy with parameters that Gatekeeper calls by other names."""
    return lambda given: [(policy, {ours: given.pop(name) for ours, name in names.items()})]


def _registries(key: str, field: str) -> Callable[[Parameters], NamedPolicies]:
    def convert(given: Parameters) -> NamedPolicies:
        found = []
        for each in given.pop(key):
            if not each.endswith("/"):
                refuse(f'the entry "{each}" matches every image that begins with this text',
                       "`image-registries`, which compares the parts of a reference")  # fmt: skip
            first = each.partition("/")[0]
            is_host = "." in first or ":" in first or first == "localhost"
            found.append(f"{'' if is_host else 'docker.io/'}{each.rstrip('/')}")
        return [("image-registries", {field: found})]

    return convert


def _quantities(sort: str, *names: str) -> Callable[[Parameters], NamedPolicies]:
    """Convert maxima; Gatekeeper's policy also denies unset values."""

    def convert(given: Parameters) -> NamedPolicies:
        bounds = {name: {"max": given.pop(name)} for name in names if name in given}
        bounds = {name: each for name, each in bounds.items() if str(each["max"]) != "-1"}
        required = f"resource-{sort}", {"required": [*bounds]}
        return [("resource-bounds", {sort: bounds}), required] if bounds else []

    return convert


def _required_resources(given: Parameters) -> NamedPolicies:
    return [
        (f"resource-{sort}", {"required": given.pop(sort)})
        for sort in ("limits", "requests")
        if given.get(sort)
    ]


def _replicas(given: Parameters) -> NamedPolicies:
    ranges = given.pop("ranges")
    if len(ranges) != 1:
        refuse("it has several ranges", "`replica-limits`, with one range")
    bounds = {"minimum": ranges[0].get("min_replicas", 0), "maximum": ranges[0]["max_replicas"]}
    return [("replica-limits", bounds | {"allow_zero": bounds["minimum"] == 0})]


def _metadata(policy: str, field: str) -> Callable[[Parameters], NamedPolicies]:
    def convert(given: Parameters) -> NamedPolicies:
        given.pop("message", None)
        found = {}
        for each in given.pop(field):
            pattern = each.get("allowedRegex", "")
            if pattern and not (pattern.startswith("^") and pattern.endswith("$")):
                refuse(f"allowedRegex {pattern} matches a part of a value",
                       f"`{policy}`, which compares whole values")  # fmt: skip
            inner = pattern.removeprefix("^").removesuffix("$")
            found[each["key"]] = f"/{inner}/" if inner else "*"
        return [(policy, {field: found})]

    return convert


def _probes(given: Parameters) -> NamedPolicies:
    required = [each.removesuffix("Probe") for each in given.pop("probes")]
    return [("probes", {"required": required, "handlers": given.pop("probeTypes")})]


def _https(given: Parameters) -> NamedPolicies:
    return [("ingress-tls", {"https": True, "tls": not given.pop("tlsOptional", False)})]


# By kind of constraint; other kinds have no equivalent (docs/policies-from-elsewhere.md).
CONSTRAINTS: dict[str, Callable[[Parameters], NamedPolicies]] = {
    "K8sAllowedRepos": _registries("repos", "registries"),
    "K8sBlockLoadBalancer": _plain("service-types", forbidden=["LoadBalancer"]),
    "K8sBlockNodePort": _plain("service-types", forbidden=["NodePort"]),
    "K8sBlockWildcardIngress": _plain("ingress-hosts"),
    "K8sContainerEphemeralStorageLimit": _quantities("limits", "ephemeral-storage"),
    "K8sContainerLimits": _quantities("limits", "cpu", "memory"),
    "K8sContainerRequests": _quantities("requests", "cpu", "memory"),
    "K8sDisallowedRepos": _registries("repos", "denied"),
    "K8sDisallowedTags": _renamed("image-tags", denied="tags"),
    "K8sDisallowInteractiveTTY": _plain("interactive-containers", ephemeral=True),
    "K8sExternalIPs": _renamed("external-ips", allowed="allowedIPs"),
    "K8sHttpsOnly": _https,
    "K8sImageDigests": _plain("image-digests"),
    "K8sPSPAutomountServiceAccountTokenPod": _plain("service-account-tokens"),
    "K8sReplicaLimits": _replicas,
    "K8sRequiredAnnotations": _metadata("required-annotations", "annotations"),
    "K8sRequiredLabels": _metadata("required-labels", "labels"),
    "K8sRequiredProbes": _probes,
    "K8sRequiredResources": _required_resources,
    "K8sUniqueIngressHost": _plain("unique-ingress-hosts"),
    "K8sUniqueServiceSelector": _plain("service-selectors"),
    "K8sPSPAllowPrivilegeEscalationContainer": _plain("privilege-escalation"),
    "K8sPSPHostNamespace": _plain("host-namespaces"),
    "K8sPSPHostProcess": _plain("windows-host-process"),
    "K8sPSPPrivilegedContainer": _plain("privileged-containers"),
    "K8sPSPReadOnlyRootFilesystem": _plain("read-only-root-filesystem"),
}
