"""Doctor has the findings of other programs about webhooks.

- Gardener: gardener/gardener pkg/gardenlet/operation/botanist/matchers/matcher.go, and the time-outs
  of its webhook remediation
- clusterlint: digitalocean/clusterlint checks/doks/admission_controller_webhook*.go
- GKE: K8S_ADMISSION_WEBHOOK_UNSAFE and K8S_ADMISSION_WEBHOOK_UNAVAILABLE
"""

import pytest

from tests.gatewright.tools.doctor.clusters import backend, configuration, found, webhook, without

# Resources without which Gardener does not wake up a cluster, by namespace; "-" has none.
MATCHERS = """
kube-system: pods pods/status configmaps endpoints secrets serviceaccounts services services/status
kube-system: controllerrevisions.apps daemonsets.apps daemonsets/status.apps deployments.apps
kube-system: deployments/scale.apps replicasets.apps replicasets/status.apps replicasets/scale.apps
kube-system: networkpolicies.networking.k8s.io roles.rbac.authorization.k8s.io
kube-system: rolebindings.rbac.authorization.k8s.io leases.coordination.k8s.io
kube-node-lease: leases.coordination.k8s.io
default: endpoints services services/status
-: nodes nodes/status namespaces namespaces/status clusterroles.rbac.authorization.k8s.io
-: clusterrolebindings.rbac.authorization.k8s.io
-: customresourcedefinitions.apiextensions.k8s.io customresourcedefinitions/status.apiextensions.k8s.io
-: apiservices.apiregistration.k8s.io apiservices/status.apiregistration.k8s.io
-: certificatesigningrequests.certificates.k8s.io
-: certificatesigningrequests/status.certificates.k8s.io
-: certificatesigningrequests/approval.certificates.k8s.io priorityclasses.scheduling.k8s.io
"""
IN_MATCHERS = [
    (line.partition(": ")[0], resource)
    for line in MATCHERS.strip().splitlines()
    for resource in line.partition(": ")[2].split()
]
DANGEROUS = {"system-namespaces", "cluster-resources"}


def judging(namespace: str, resource: str, *operations: str, **changes: object) -> dict:
    """Return a webhook that judges one resource, in one namespace if it is namespaced."""
    name, _, group = resource.partition(".")
    rule = {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": list(operations),
        "resources": [name],
    }
    selector = (
        {} if namespace == "-" else {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    )
    return webhook(rules=[rule], namespaceSelector=selector, **changes)


@pytest.mark.parametrize("operations", [("CREATE",), ("UPDATE",), ("*",)], ids=" ".join)
@pytest.mark.parametrize(("namespace", "resource"), IN_MATCHERS)
def test_what_gardener_finds_problematic_is_found(namespace, resource, operations):
    """A webhook that fails closed and judges one of these.

    A subresource is only ever updated, and the namespace kube-system is never created.
    """
    if operations == ("CREATE",) and ("/" in resource or resource == "namespaces"):
        return
    checks = {
        check
        for _, check in found(configuration(judging(namespace, resource, *operations)), *backend())
    }
    assert checks & DANGEROUS


@pytest.mark.parametrize(
    ("namespace", "seconds", "check"),
    [("kube-system", 4, "lease-timeout"), ("kube-system", 16, "long-timeout")],
)
def test_gardeners_limits_of_time_are_found(namespace, seconds, check):
    """Timeouts above 3 s on Leases, and above 15 s, are found, also for webhooks that fail open."""
    resource = "leases.coordination.k8s.io" if seconds < 10 else "pods"
    judge = judging(namespace, resource, "UPDATE", failurePolicy="Ignore", timeoutSeconds=seconds)
    assert check in {each for _, each in found(configuration(judge), *backend())}


def test_what_clusterlint_finds_is_found():
    """These are a missing Service, a webhook that judges kube-system or its own pods, and a timeout of 30 s."""
    own = judging("guard", "pods", "CREATE")
    assert ("critical", "own-pods") in found(configuration(own), *backend())
    missing = without(backend(), "Service")
    assert "no-endpoint" in {check for _, check in found(configuration(webhook()), *missing)}
    slow = webhook(timeoutSeconds=30)
    assert "long-timeout" in {check for _, check in found(configuration(slow), *backend())}


def test_what_gke_recommends_is_found():
    """UNSAFE: system resources and namespaces. UNAVAILABLE: no endpoint."""
    unsafe = found(configuration(judging("kube-system", "pods", "CREATE")), *backend())
    assert ("critical", "system-namespaces") in unsafe
    unavailable = found(configuration(webhook()), *backend(ready=0))
    assert "no-endpoint" in {check for _, check in unavailable}
