"""The templates in Rego of Gatekeeper's library that have equal rules in CEL, by constraint kind.

Each function takes the parameters of a constraint, of which it removes those that it converts, and
the template's Rego, and returns the rules. Only versions of templates whose digests are in
library_templates.yaml are converted: with them, `benchmarks.migrations` found no difference.
"""

import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gatewright.tools.cel_text import every, literal, negate, some
from gatewright.tools.migrate.library_rules import (
    BYTES,
    CPU,
    LISTS,
    Parameters,
    TemplateRules,
    containers_rules,
    fields_rules,
    limits_rules,
    probes_rules,
    quantity_test,
    required_metadata,
    required_resources,
    rule,
)
from gatewright.tools.migrate.results import refuse, texts

__all__ = ["BYTES", "CONSTRAINTS", "CPU", "digest", "is_known", "rego_of"]

FILE = Path(__file__).parent / "library_templates.yaml"
DIGEST = "@[a-z0-9]+([+._-][a-z0-9]+)*:[a-zA-Z0-9=_-]+"
TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"
ALLOW_HTTP = "kubernetes.io/ingress.allow-http"
LibraryConverter = Callable[[Parameters, str], TemplateRules]


def rego_of(template: Mapping[str, Any]) -> str:
    """Return the Rego of a template, with its libraries."""
    target: Mapping[str, Any] = next(iter(template["spec"].get("targets") or ()), {})
    parts = [target.get("rego") or "", *texts(target.get("libs"))]
    for code in target.get("code") or ():
        if code.get("engine") == "Rego":
            parts += [code["source"].get("rego") or "", *texts(code["source"].get("libs"))]
    return "\n".join(parts)


def digest(rego: str) -> str:
    """Return the digest of Rego without comments and blank lines."""
    lines = (line.strip() for line in rego.splitlines())
    text = "\n".join(line for line in lines if line and not line.startswith("#"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_known(kind: str, rego: str) -> bool:
    """Return whether this is the Rego of a version of the library whose rules are equal."""
    return digest(rego) in _digests().get(kind, ())


@cache
def _digests() -> dict[str, list[str]]:
    digests: dict[str, list[str]] = yaml.safe_load(FILE.read_text())
    return digests


def _containers(test: str, message: str) -> LibraryConverter:
    return lambda given, rego: containers_rules(test, message, given, rego)


def _prefixes(test: str, verb: str) -> LibraryConverter:
    def convert(given: Parameters, rego: str) -> TemplateRules:
        repos = texts(given.pop("repos", None))
        if not repos:
            refuse("it has no repos", "`image-registries`")
        message = f"images {verb} begin with {' or '.join(repos)}"
        return containers_rules(test.format(repos=literal(repos)), message, given, rego)

    return convert


def _tags(given: Parameters, rego: str) -> TemplateRules:
    tags = texts(given.pop("tags", None))
    has_ports = "split(container.image" in rego  # earlier versions take a port for a tag
    tests = ["container.image.matches(':[^/]*$')" if has_ports else "container.image.contains(':')"]
    tests += [f"!container.image.endsWith({literal(f':{each}')})" for each in tags]
    message = "images must have a tag" + (f", and none of {', '.join(tags)}" if tags else "")
    return containers_rules(every(tests), message, given, rego)


def _storage(given: Parameters, rego: str) -> TemplateRules:
    test = quantity_test("limits", "ephemeral-storage", given, BYTES)
    message = "a limit of ephemeral-storage must be set, within the allowed maximum"
    return containers_rules(test, message, given, rego)


def _service_type(forbidden: str) -> LibraryConverter:
    test = f"object.spec.?type.orValue('') != {literal(forbidden)}"
    message = f"Services of the type {forbidden} are not allowed"
    return lambda _given, _rego: fields_rules("Service", rule(test, message, "spec.type"))


def _external_ips(given: Parameters, _: str) -> TemplateRules:
    allowed = literal(texts(given.pop("allowedIPs", None)))
    test = f"object.spec.?externalIPs.orValue([]).all(ip, ip in {allowed})"
    message = f"external IPs must be among {allowed}"
    return fields_rules("Service", rule(test, message, "spec.externalIPs"))


def _wildcard_hosts(_given: Parameters, _rego: str) -> TemplateRules:
    test = "object.spec.?rules.orValue([]).all(rule, rule.?host.orValue('*').matches('^[^*]+$'))"
    message = "each rule must have a host without *"
    return fields_rules("Ingress", rule(test, message, "spec.rules"))


def _https(given: Parameters, _: str) -> TemplateRules:
    annotations = f"object.metadata.?annotations[?{literal(ALLOW_HTTP)}]"
    path = f"metadata.annotations[{ALLOW_HTTP}]"
    rules = [rule(f"{annotations}.orValue('') == 'false'", 'must be "false"', path)]
    if given.pop("tlsOptional", False) is not True:
        has_tls = "object.spec.?tls.orValue([]).size() > 0"
        rules.insert(0, rule(has_tls, "Ingress must have tls", "spec.tls"))
    return fields_rules("Ingress", *rules)


def _replicas(given: Parameters, _: str) -> TemplateRules:
    ranges = [
        (bounds["min_replicas"], bounds["max_replicas"])
        for bounds in given.pop("ranges", None) or ()
    ]
    if not ranges or not all(type(bound) is int for each in ranges for bound in each):
        refuse("it has no ranges of numbers", "`replica-limits`")
    number = "object.spec.replicas"
    tests = [f"{number} >= {low} && {number} <= {high}" for low, high in ranges]
    message = f"must be {' or '.join(f'{low} to {high}' for low, high in ranges)}"
    test = every(["has(object.spec.replicas)", some(tests)])
    return TemplateRules((), [rule(test, message, "spec.replicas")])


def _token(_: Parameters, rego: str) -> TemplateRules:
    mounts = f"container.?volumeMounts.orValue([]).exists(mount, mount.mountPath == '{TOKENS}')"
    unset = "has(object.spec.automountServiceAccountToken)"
    rules = containers_rules(
        some([unset, negate(mounts)]), "must not mount a token", {}, rego, lists=LISTS[:2]
    )
    test = "!object.spec.?automountServiceAccountToken.orValue(false)"
    path = "spec.automountServiceAccountToken"
    rules.validations.insert(0, rule(test, "must not be true", path))
    return rules


def _host_namespaces(_: Parameters, rego: str) -> TemplateRules:
    rules = [
        rule(f"!object.spec.?{name}.orValue(false)", "must not be true", f"spec.{name}")
        for name in ("hostPID", "hostIPC")
    ]
    return fields_rules("Pod", *rules, rego=rego)


def _host_process(given: Parameters, rego: str) -> TemplateRules:
    field = "securityContext.?windowsOptions.?hostProcess.orValue(false)"
    rules = containers_rules(f"!container.?{field}", "must not be a host process", given, rego)
    path = "spec.securityContext.windowsOptions.hostProcess"
    rules.validations.insert(0, rule(f"!object.spec.?{field}", "must not be true", path))
    return rules


# Other kinds have no equal rules (docs/policies-from-elsewhere.md).
CONSTRAINTS: dict[str, LibraryConverter] = {
    "K8sAllowedRepos": _prefixes("{repos}.exists(repo, container.image.startsWith(repo))", "must"),
    "K8sDisallowedRepos": _prefixes(
        "!{repos}.exists(repo, container.image.startsWith(repo))", "must not"
    ),
    "K8sBlockLoadBalancer": _service_type("LoadBalancer"),
    "K8sBlockNodePort": _service_type("NodePort"),
    "K8sBlockWildcardIngress": _wildcard_hosts,
    "K8sContainerEphemeralStorageLimit": _storage,
    "K8sContainerLimits": lambda given, rego: limits_rules("limits", given, rego),
    "K8sContainerRequests": lambda given, rego: limits_rules("requests", given, rego),
    "K8sDisallowedTags": _tags,
    "K8sDisallowInteractiveTTY": _containers(
        "!container.?stdin.orValue(false) && !container.?tty.orValue(false)",
        "stdin and tty are not allowed",
    ),
    "K8sExternalIPs": _external_ips,
    "K8sHttpsOnly": _https,
    "K8sImageDigests": _containers(
        f"container.image.matches({literal(DIGEST)})", "images must have a digest"
    ),
    "K8sPSPAutomountServiceAccountTokenPod": _token,
    "K8sReplicaLimits": _replicas,
    "K8sRequiredAnnotations": lambda given, _: required_metadata("annotations", given),
    "K8sRequiredLabels": lambda given, _: required_metadata("labels", given),
    "K8sRequiredProbes": probes_rules,
    "K8sRequiredResources": required_resources,
    "K8sPSPAllowPrivilegeEscalationContainer": _containers(
        "!container.?securityContext.?allowPrivilegeEscalation.orValue(true)",
        "allowPrivilegeEscalation must be false",
    ),
    "K8sPSPHostNamespace": _host_namespaces,
    "K8sPSPHostProcess": _host_process,
    "K8sPSPPrivilegedContainer": _containers(
        "!container.?securityContext.?privileged.orValue(false)", "must not be privileged"
    ),
    "K8sPSPReadOnlyRootFilesystem": _containers(
        "container.?securityContext.?readOnlyRootFilesystem.orValue(false)",
        "readOnlyRootFilesystem must be true",
    ),
}
