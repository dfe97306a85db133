"""Each prediction of doctor is provoked on the real API server, and its patches are tried."""

import json
import re
import shlex
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from certs import issue_ca
from gatewright.cli import main
from tests.controlplane.lent import LentPlane
from tests.controlplane.plane import ControlPlane
from tests.gatewright.started import Gatewright, once
from tests.gatewright.tools.doctor.clusters import LABELS, backend, configuration, encoded, webhook
from tests.kube.tls import serving
from tests.waiting import until
from webhook.harness.bases import smallest

pytestmark = pytest.mark.controlplane

NOT_FOUND = 'service "gone" not found'
GONE = {"service": {"namespace": "guard", "name": "gone"}}
CONFIG_MAPS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps"],
}
PAUSE = 0.1  # seconds between attempts to create an object
CALLS = "controller_runtime_webhook_requests_total{"
POD = {"containers": [{"name": "a", "image": "a"}], "automountServiceAccountToken": False}


class Cluster:
    """An API server with admission that hurts: what doctor reports, and what it answers."""

    def __init__(self, plane: ControlPlane, printed: pytest.CaptureFixture[str]) -> None:
        self.plane = plane
        self._printed = printed

    def apply(self, *objects: dict[str, Any]) -> None:
        """Store objects, as their authors did."""
        items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.plane.kubectl("apply", "--server-side", "-f", "-", input=items)

    def delete(self, *objects: dict[str, Any]) -> None:
        """Delete objects."""
        items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.plane.kubectl("delete", "-f", "-", input=items)

    def doctor(self, *options: str) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """Return the findings by kind and name of the object, and check the exit code."""
        with pytest.raises(SystemExit) as ended:
            main(["doctor", "--kubeconfig", str(self.plane.kubeconfig), "-o", "json", *options])
        out, err = self._printed.readouterr()
        report = json.loads(out)
        results = {(each["kind"], each["name"]): each["violations"] for each in report["results"]}
        is_critical = any(each["verdict"] == "critical" for each in report["results"])
        assert (ended.value.code, err) == (int(is_critical), "")
        return {key: found for key, found in results.items() if found}

    def create(self, kind: str, namespace: str = "", **fields: Any) -> str:
        """Try to create an object; return why the API server refuses, or ""."""
        metadata = {"generateName": "try-"} | ({"namespace": namespace} if namespace else {})
        place = f"namespaces/{namespace}/" if namespace else ""
        path = f"/api/v1/{place}{kind.lower()}s"
        code, answer = self.plane.api.request("POST", path, {"metadata": metadata} | fields)
        return "" if code == 201 else json.loads(answer)["message"]

    def until_refused(self, reason: str, kind: str, namespace: str = "", **fields: Any) -> None:
        """Create objects until the API server refuses one, since it needs a moment to load a change."""
        assert reason in until(lambda: self.create(kind, namespace, **fields), every=PAUSE)

    def until_created(self, kind: str, namespace: str = "", **fields: Any) -> None:
        """Try until the API server, which has a change after a moment, creates an object."""
        until(lambda: not self.create(kind, namespace, **fields), every=PAUSE)


@pytest.fixture(scope="module")
def plane(lent_plane: LentPlane) -> Iterator[ControlPlane]:
    """An API server without other users, since webhooks that fail closed affect all tests."""
    with lent_plane.lend() as plane:
        for name in ("guard", "shop", "quiet"):
            plane.create_namespace(name)
        yield plane


@pytest.fixture
def cluster(plane: ControlPlane, capsys: pytest.CaptureFixture[str]) -> Cluster:
    """The API server, and doctor in this process."""
    return Cluster(plane, capsys)


def checks(found: list[dict[str, Any]]) -> list[str]:
    """Return the names of the checks."""
    return [each["policy"] for each in found]


def patch_of(found: list[dict[str, Any]], check: str) -> list[str]:
    """Return the arguments of the kubectl command that a finding prints."""
    (fix,) = (each["fix"] for each in found if each["policy"] == check)
    program, *arguments = shlex.split(fix[fix.index("kubectl patch") :])
    assert program == "kubectl"
    return arguments


def test_a_cluster_without_webhooks_has_no_finding(cluster):
    """A fresh API server is well."""
    assert cluster.doctor() == {}


def test_pods_that_serve_a_dead_webhook_cannot_come_back_until_it_is_patched(cluster):
    """own-pods: the request fails as predicted, and succeeds after the printed patch."""
    rules = [CONFIG_MAPS | {"resources": ["pods"]}]
    judge = configuration(webhook(clientConfig=GONE, rules=rules, namespaceSelector={}))
    cluster.apply(judge)
    try:
        found = cluster.doctor()["ValidatingWebhookConfiguration", "guard"]
        assert checks(found) == [
            "ca-bundle-empty",
            "no-endpoint",
            "own-pods",
            "system-namespaces",
            "subresources",
        ]
        cluster.until_refused(NOT_FOUND, "Pod", "guard", spec=POD)
        cluster.plane.kubectl(*patch_of(found, "own-pods"))
        cluster.until_created("Pod", "guard", spec=POD)
        cluster.until_created("Pod", "kube-system", spec=POD)
        cluster.plane.kubectl(*patch_of(found, "system-namespaces"))  # mends the same
        cluster.until_created("Pod", "guard", spec=POD)
        assert NOT_FOUND in cluster.create("Pod", "shop", spec=POD)
    finally:
        cluster.delete(judge)


def test_a_node_cannot_register_beside_a_dead_webhook(cluster):
    """cluster-resources: a node is refused."""
    rules = [CONFIG_MAPS | {"resources": ["nodes"]}]
    judge = configuration(webhook(clientConfig=GONE, rules=rules, namespaceSelector={}))
    cluster.apply(judge)
    try:
        found = cluster.doctor()["ValidatingWebhookConfiguration", "guard"]
        assert "cluster-resources" in checks(found)
        cluster.until_refused(NOT_FOUND, "Node")
    finally:
        cluster.delete(judge)
    cluster.until_created("Node")


def test_what_a_condition_excludes_is_not_called(cluster):
    """There is no finding, and the request succeeds, although no webhook server answers."""
    conditions = [{"name": "shop", "expression": "request.namespace == 'shop'"}]
    rules = [CONFIG_MAPS | {"resources": ["pods"]}]
    judge = webhook(
        clientConfig=GONE, rules=rules, namespaceSelector={}, matchConditions=conditions
    )
    cluster.apply(configuration(judge))
    try:
        found = checks(cluster.doctor()["ValidatingWebhookConfiguration", "guard"])
        assert "own-pods" not in found
        assert "system-namespaces" not in found
        assert "no-endpoint" in found
        cluster.until_refused(NOT_FOUND, "Pod", "shop", spec=POD)
        assert cluster.create("Pod", "guard", spec=POD) == ""
        assert cluster.create("Pod", "kube-system", spec=POD) == ""
    finally:
        cluster.delete(configuration(judge))


@pytest.fixture
def server(cluster: Cluster, tmp_path: Path) -> Iterator[tuple[Gatewright, bytes]]:
    """A webhook that answers over TLS, and its authority."""
    _, authority = serving(tmp_path, "127.0.0.1")
    policies = tmp_path / "policies.yaml"
    policies.write_text(
        "apiVersion: gatewright.io/v1alpha1\n"
        "kind: ClusterAdmissionPolicy\n"
        "metadata: {name: tags}\n"
        "spec: {policy: image-tags, match: {any: [{namespaces: [nowhere]}]}}\n"
    )
    pair = ("--tls-cert", str(tmp_path / "tls.crt"), "--tls-key", str(tmp_path / "tls.key"))
    with Gatewright(
        cluster.plane, tmp_path, "webhook", "--policies", str(policies), *pair
    ) as gatewright:
        gatewright.start()
        yield gatewright, authority.read_bytes()
        gatewright.kill()  # a graceful end waits for the API server's connections


def is_called(cluster: Cluster, gatewright: Gatewright) -> bool:
    """Create a ConfigMap, and return whether the API server has called the webhook."""
    assert cluster.create("ConfigMap", "shop") == ""
    with urllib.request.urlopen(gatewright.metrics_url, timeout=60) as page:
        text = page.read().decode()
    counts = [line for line in text.splitlines() if line.startswith(CALLS)]
    return any(float(line.rpartition(" ")[2]) > 0 for line in counts)


@pytest.mark.parametrize("is_right", [True, False])
def test_the_certificate_that_the_server_presents(cluster, server, is_right):
    """certificate: with the right bundle requests pass; with another they fail as predicted."""
    gatewright, authority = server
    other = issue_ca("another authority", datetime.now(UTC)).certificate
    bundle = encoded(authority if is_right else other)
    config = {"url": f"{gatewright.url}/validate", "caBundle": bundle}
    judge = configuration(webhook(clientConfig=config, rules=[CONFIG_MAPS]))
    cluster.apply(judge)
    try:
        found = cluster.doctor("--probe").get(("ValidatingWebhookConfiguration", "guard"), [])
        if not is_right:
            assert checks(found) == ["certificate"]
            unknown = "certificate signed by unknown authority"
            cluster.until_refused(unknown, "ConfigMap", "shop")
            return
        assert found == []
        until(lambda: is_called(cluster, gatewright), every=PAUSE)
    finally:
        cluster.delete(judge)


def test_parameters_that_do_not_exist_refuse_every_request(cluster):
    """params: requests are refused because of the binding's parameterNotFoundAction Deny."""
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "limits"},
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [CONFIG_MAPS]},
            "validations": [{"expression": "params.data.size() > 0"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "limits"},
        "spec": {
            "policyName": "limits",
            "validationActions": ["Deny"],
            "paramRef": {
                "name": "limits",
                "namespace": "quiet",
                "parameterNotFoundAction": "Deny",
            },
            "matchResources": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}
            },
        },
    }
    loose = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "loose"},
        "spec": {"policyName": "nothing", "validationActions": ["Deny"]},
    }
    cluster.apply(policy, binding, loose)
    try:
        found = cluster.doctor()
        (missing,) = found["ValidatingAdmissionPolicyBinding", "limits"]
        assert missing["message"].startswith(
            "ConfigMap quiet/limits does not exist, and parameterNotFoundAction is Deny: every "
            "request that it matches is refused"
        )
        assert checks(found["ValidatingAdmissionPolicyBinding", "loose"]) == [
            "binding-without-policy"
        ]
        cluster.until_refused("no params found for policy binding", "ConfigMap", "shop")
        cluster.plane.kubectl("create", "configmap", "limits", "-n", "quiet", "--from-literal=a=b")
        assert ("ValidatingAdmissionPolicyBinding", "limits") not in cluster.doctor()
    finally:
        cluster.delete(policy, binding, loose)


def test_objects_of_a_kind_without_its_conversion_webhook_cannot_be_read(cluster):
    """no-endpoint of a CustomResourceDefinition."""
    version = {
        "served": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "votes.toys.example.com"},
        "spec": {
            "group": "toys.example.com",
            "scope": "Namespaced",
            "names": {
                "plural": "votes",
                "kind": "Vote",
                "singular": "vote",
                "listKind": "VoteList",
            },
            "versions": [
                version | {"name": "v1", "storage": True},
                version | {"name": "v2", "storage": False},
            ],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": GONE, "conversionReviewVersions": ["v1"]},
            },
        },
    }
    cluster.apply(definition)
    try:
        cluster.plane.kubectl("wait", "--for=condition=Established", "crd/votes.toys.example.com")
        found = cluster.doctor()["CustomResourceDefinition", "votes.toys.example.com"]
        assert "no-endpoint" in checks(found)
        vote = {
            "apiVersion": "toys.example.com/v1",
            "kind": "Vote",
            "metadata": {"name": "a", "namespace": "shop"},
        }
        cluster.plane.kubectl("create", "-f", "-", input=vote)
        read = cluster.plane.kubectl("get", "votes.v2.toys.example.com", "-A", check=False)
        assert NOT_FOUND in read.stderr
    finally:
        cluster.delete(definition)


def test_an_aggregated_api_without_service_does_not_answer(cluster):
    """The finding is no-endpoint, at the APIService."""
    aggregated = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1.metrics.toys.example.com"},
        "spec": {
            "group": "metrics.toys.example.com",
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"namespace": "guard", "name": "gone"},
        },
    }
    cluster.apply(aggregated)
    try:
        found = cluster.doctor()["APIService", "v1.metrics.toys.example.com"]
        assert checks(found) == ["no-endpoint", "unverified"]
        path = "/apis/metrics.toys.example.com/v1"
        read = cluster.plane.kubectl("get", "--raw", path, check=False)
        assert "the server is currently unable to handle the request" in read.stderr
    finally:
        cluster.delete(aggregated)


def test_gatewrights_own_registration_has_no_finding(cluster, tmp_path):
    """Every webhook that Gatewright registers for its presets is well."""
    crds = once("crds").stdout
    cluster.plane.kubectl("apply", "--server-side", "-f", "-", input=crds)
    for preset in ("production", "baseline"):
        policies = Path("config/policies").absolute() / f"{preset}.yaml"
        with Gatewright.run(cluster.plane, tmp_path, policies=policies) as gatewright:
            found = cluster.doctor("--probe")
            gatewright.kill()
        kinds = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
        cluster.plane.kubectl("delete", kinds, "--all")
        assert found == {}


def test_commands_for_replicas_and_budgets_work_as_printed(cluster):
    """The Deployment then runs two pods, and a budget covers them."""
    service, slice = (each for each in backend() if each["kind"] in ("Service", "EndpointSlice"))
    endpoints = slice | {"addressType": "IPv4", "endpoints": slice["endpoints"][:1]}
    deployment = smallest("Deployment", "guard", "guard")
    deployment["spec"] |= {"replicas": 1, "selector": {"matchLabels": LABELS}}
    deployment["spec"]["template"]["metadata"] = {"labels": LABELS}
    judge = configuration(webhook())
    cluster.apply(service, endpoints, deployment, judge)
    try:
        for check in ("one-replica", "no-disruption-budget"):
            found = cluster.doctor()["Deployment", "guard"]
            (fix,) = (each["fix"] for each in found if each["policy"] == check)
            cluster.plane.kubectl(*shlex.split(fix.partition(": kubectl ")[2]))
        assert cluster.doctor() == {}
    finally:
        cluster.delete(service, endpoints, deployment, judge)


def planted(namespace: str, resource: str, **changes: Any) -> dict[str, Any]:
    """Return a webhook configuration that judges one resource, in a namespace or everywhere."""
    plural, _, group = resource.partition(".")
    rules = [CONFIG_MAPS | {"apiGroups": [group], "resources": [plural]}]
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}} if namespace else {}
    fields = {"clientConfig": {"url": "https://127.0.0.1:1/", "caBundle": encoded(CA.certificate)}}
    found = webhook(**fields | {"rules": rules, "namespaceSelector": selector} | changes)
    return configuration(found)


CA = issue_ca("planted", datetime.now(UTC))
EXPIRED = issue_ca("planted", datetime(2010, 1, 1, tzinfo=UTC))
# Faults that another program mends: the command makes them harmless meanwhile.
OPENED = ("no-endpoint", "ca-bundle-")
FAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "pods-of-its-own": ("own-pods", planted("guard", "pods", clientConfig=GONE)),
    "system-pods": ("system-namespaces", planted("kube-system", "pods")),
    "nodes": ("cluster-resources", planted("", "nodes")),
    "own-secrets": ("own-data", planted("guard", "secrets", clientConfig=GONE)),
    "events": ("events", planted("default", "events")),
    "no-service": ("no-endpoint", planted("shop", "configmaps", clientConfig=GONE)),
    "expired": (
        "ca-bundle-expired",
        planted(
            "shop",
            "secrets",
            clientConfig={"url": "https://127.0.0.1:1/", "caBundle": encoded(EXPIRED.certificate)},
        ),
    ),
    "slow-leases": (
        "lease-timeout",
        planted("kube-system", "leases.coordination.k8s.io", failurePolicy="Ignore"),
    ),
    "slow": ("long-timeout", planted("shop", "services", timeoutSeconds=30)),
    "everything": ("all-resources", planted("quiet", "*.*")),
}


def test_ten_planted_faults_are_found_and_hurt(cluster):
    """Each is found at its object; with those that fail closed, the request that doctor names is refused."""
    objects = [each | {"metadata": {"name": name}} for name, (_, each) in FAULTS.items()]
    cluster.apply(*objects)
    try:
        found = cluster.doctor()
        missed = {
            name: check
            for name, (check, _) in FAULTS.items()
            if check not in checks(found.get(("ValidatingWebhookConfiguration", name), []))
        }
        assert missed == {}
        # several webhooks are called side by side, and the error of the first is the answer
        cluster.until_refused("failed calling webhook", "Pod", "guard", spec=POD)
        for kind, namespace in (
            ("Secret", "guard"),
            ("ConfigMap", "shop"),
            ("Secret", "shop"),
            ("ConfigMap", "quiet"),
            ("Node", ""),
        ):
            cluster.until_refused("failed calling webhook", kind, namespace)
        cluster.until_refused("failed calling webhook", "Pod", "kube-system", spec=POD)
        # every printed command works, in any order, and fixes its finding
        commands = {
            (name, violation["policy"]): violation["fix"].partition(": kubectl ")[2]
            for (_, name), violations in found.items()
            for violation in violations
            if ": kubectl " in violation["fix"]
        }
        for command in commands.values():
            cluster.plane.kubectl(*shlex.split(command))
        after = cluster.doctor()
        left = {
            (name, violation["policy"])
            for (_, name), violations in after.items()
            for violation in violations
            if violation["action"] == "critical" or not violation["policy"].startswith(OPENED)
        }
        assert commands.keys() & left == set()
        assert {check for _, check in commands} >= {
            "own-pods", "own-data", "system-namespaces", "cluster-resources", "events",
            "no-endpoint", "long-timeout", "lease-timeout",
        }  # fmt: skip
        cluster.until_created("Node")
        cluster.until_created("Pod", "guard", spec=POD)
        cluster.until_created("Pod", "kube-system", spec=POD)
        cluster.until_created("ConfigMap", "shop")
    finally:
        cluster.delete(*objects)
    cluster.until_created("Node")


EVERYTHING = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
NOWHERE = {"url": "https://127.0.0.1:1/", "caBundle": encoded(CA.certificate)}
KUBE_SYSTEM = {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}
LEASES = CONFIG_MAPS | {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
SPARED = [{"name": "deletions", "expression": "request.operation != 'DELETE'"}]


def of_everything(**changes: Any) -> dict[str, Any]:
    """Return a webhook that judges everything, and does not answer."""
    fields = {"clientConfig": NOWHERE, "rules": [EVERYTHING], "namespaceSelector": {}}
    return webhook(**fields | changes)


BAD_CLUSTERS: dict[str, list[dict[str, Any]]] = {
    "everything": [configuration(of_everything())],
    "its-own-pods-and-everything": [configuration(of_everything(clientConfig=GONE))],
    "without-a-bundle": [configuration(of_everything(clientConfig=GONE, timeoutSeconds=30))],
    "with-conditions": [configuration(of_everything(matchConditions=SPARED))],
    "with-a-selector": [
        configuration(
            of_everything(
                namespaceSelector={
                    "matchExpressions": [
                        {
                            "key": "kubernetes.io/metadata.name",
                            "operator": "NotIn",
                            "values": ["shop"],
                        }
                    ]
                }
            )
        )
    ],
    "six-webhooks": [
        configuration(*(of_everything(name=f"{name}.guard.example.com") for name in "abcdef"))
    ],
    "expired": [configuration(of_everything(clientConfig=NOWHERE | {
        "caBundle": encoded(EXPIRED.certificate)}))],
    "slow-leases": [
        configuration(
            of_everything(
                rules=[LEASES], namespaceSelector=KUBE_SYSTEM, timeoutSeconds=30, sideEffects="None"
            )
        )
    ],
    "mutating": [
        configuration(of_everything(timeoutSeconds=20), of_everything(name="b.guard.example.com"),
                      sort="Mutating"),
        configuration(of_everything(timeoutSeconds=30), name="other", sort="Mutating"),
    ],
    "both-sorts": [
        configuration(of_everything(), sort="Mutating"),
        configuration(of_everything(clientConfig=GONE)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("objects", BAD_CLUSTERS.values(), ids=list(BAD_CLUSTERS))
def test_all_printed_commands_run_once_leave_nothing_critical(cluster, objects):
    """Each command is run once, in the order of the findings; the cluster works afterwards."""
    cluster.apply(*objects)
    try:
        before = [each for violations in cluster.doctor().values() for each in violations]
        assert "critical" in {each["action"] for each in before}
        fixes = (each["fix"].partition(": kubectl ")[2] for each in before)
        for commands in dict.fromkeys(filter(None, fixes)):
            for command in re.split(r" && kubectl ", commands):
                cluster.plane.kubectl(*shlex.split(command))
        after = [each for violations in cluster.doctor().values() for each in violations]
        assert [each for each in after if each["action"] == "critical"] == []
        cluster.until_created("Node")
        cluster.until_created("Pod", "kube-system", spec=POD)
    finally:
        cluster.delete(*objects)
