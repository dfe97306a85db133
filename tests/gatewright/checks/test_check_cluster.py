"""`gatewright check --kubeconfig`: judges objects of a cluster, or manifests against it, and writes nothing."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from config.api.policy import AdmissionPolicy, ClusterAdmissionPolicy
from config.api.policy_exception import PolicyException
from config.crds import definition
from gatewright.checks import live_cluster
from gatewright.cli import main
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.resource import Resource
from tests.webhook.registries.conftest import small_registry
from tests.webhook.registries.signing import bundle, pem
from webhook.server.cluster_policies import RESOURCES

NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
POD = Resource("", "v1", "pods", "Pod")
REPLICA_SET = Resource("apps", "v1", "replicasets", "ReplicaSet")
CONFIG_MAP = Resource("", "v1", "configmaps", "ConfigMap")
POLICY, _, EXCEPTION = RESOURCES
LIMIT = {
    "policy": "replica-limits",
    "match": {"any": [{"namespaceSelector": {"matchLabels": {"tier": "live"}}}]},
}
SHOP = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: new, namespace: shop}
spec:
  replicas: 11
  selector: {matchLabels: {app: new}}
  template:
    metadata: {labels: {app: new}}
    spec: {containers: [{name: app, image: shop}]}
"""
VIOLATION = (
    "spec.replicas: 11; production workloads cannot exceed 10 replicas. Set it to 10 or less."
)


@pytest.fixture(scope="module")
def crds():
    """The CRDs of policies and exceptions."""
    return [definition(kind) for kind in (ClusterAdmissionPolicy, AdmissionPolicy, PolicyException)]


@pytest.fixture
async def server(crds, tmp_path, monkeypatch):
    """Return an API server with two namespaces, and its kubeconfig."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(live_cluster, "QPS", 10_000.0)  # an API server in memory needs no rest
    async with FakeApiServer() as fake:
        for crd in crds:
            fake.define(crd)
        for name, labels in (("shop", {"tier": "live"}), ("lab", {}), ("gatewright-system", {})):
            fake.create(NAMESPACE, {"metadata": {"name": name, "labels": labels}})
        config = {
            "current-context": "it",
            "contexts": [{"name": "it", "context": {"cluster": "it"}}],
            "clusters": [{"name": "it", "cluster": {"server": fake.endpoint.url}}],
        }
        write("kubeconfig", json.dumps(config))
        yield fake


@pytest.fixture
async def registry():
    """A registry of images."""
    async with small_registry() as small:
        yield small


@pytest.fixture
def check(capsys):
    """Check the cluster; return exit code, report, and stderr."""

    def _check(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["check", "--kubeconfig", "kubeconfig", "-o", "json", *arguments])
        out, err = capsys.readouterr()
        return ended.value.code, json.loads(out) if out else None, err

    return lambda *arguments: asyncio.to_thread(_check, *arguments)


def policy(server, name="replica-limits", **spec):
    """Create a policy object."""
    server.create(POLICY, {"metadata": {"name": name}, "spec": {**LIMIT, **spec}})


def deployment(server, name, namespace="shop", replicas=11, resource=DEPLOYMENT, **metadata):
    """Create a Deployment or a ReplicaSet."""
    return server.create(
        resource,
        {
            "metadata": {"name": name, "namespace": namespace, **metadata},
            "spec": {"replicas": replicas},
        },
    )


def write(name, text):
    """Write a file in the test's directory."""
    Path(name).write_text(text)


def read(name):
    """Return the text of a file in the directory of the test."""
    return Path(name).read_text()


def verdicts(report):
    """Return verdict, namespace and name of each result that is not a policy."""
    found = (each for each in report["results"] if each["namespace"])
    return [f"{each['verdict']} {each['namespace']}/{each['name']}" for each in found]


async def test_objects_in_the_cluster_are_judged(server, check):
    """The cluster's policy objects are used; results have no file, and nothing is written."""
    policy(server)
    deployment(server, "big")
    deployment(server, "small", replicas=1)
    deployment(server, "big", namespace="lab")
    before = server.list(DEPLOYMENT)
    code, report, err = await check()
    (violation,) = report["results"][0]["violations"]
    assert (code, verdicts(report), err) == (1, ["denied shop/big", "allowed shop/small"], "")
    assert (violation["message"], violation["file"]) == (VIOLATION, "")
    assert server.list(DEPLOYMENT) == before


async def test_owned_objects_are_left_out(server, check):
    """A ReplicaSet of a Deployment is skipped; one without an owner is judged."""
    policy(server)
    owner = deployment(server, "big")["metadata"]
    reference = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "big",
        "uid": owner["uid"],
        "controller": True,
    }
    deployment(server, "big-1", resource=REPLICA_SET, ownerReferences=[reference])
    deployment(server, "alone", resource=REPLICA_SET)
    _, report, _ = await check()
    assert verdicts(report) == ["denied shop/big", "denied shop/alone"]


async def test_namespaces_that_the_webhook_never_sees_are_left_out(server, check):
    """These are the system's and Gatewright's own namespaces, in which nothing is denied."""
    policy(server, match={})
    for namespace in ("kube-system", "kube-node-lease", "gatewright-system", "shop"):
        deployment(server, "big", namespace=namespace)
    assert verdicts((await check())[1]) == ["denied shop/big"]


async def test_the_charts_policies_are_in_force(server, check):
    """They are in a ConfigMap of Gatewright's namespace; a policy object replaces one of the same name."""
    spec = json.dumps({"policy": "replica-limits", "params": {"maximum": 5}})
    text = f"apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {{name: few}}\nspec: {spec}\n"
    metadata = {
        "name": "gatewright-policies",
        "namespace": "gatewright-system",
        "labels": {"app.kubernetes.io/component": "webhook"},
    }
    cases = "policies: preset.yaml\ncases: [{name: none, object: {kind: Pod}, expect: not-matched}]"
    data = {"preset.yaml": text, "cases.yaml": cases}
    server.create(CONFIG_MAP, {"metadata": metadata, "data": data})
    deployment(server, "seven", replicas=7)
    assert verdicts((await check())[1]) == ["denied shop/seven"]
    policy(server, name="few", params={"maximum": 8})
    assert verdicts((await check())[1]) == ["allowed shop/seven"]


async def test_the_clusters_policies_are_listed_with_what_was_measured(server, capsys):
    """`gatewright policies --kubeconfig` has a row for each policy object, with the reasons for what is not True."""
    policy(server, name="few")
    policy(server, name="warns", validationActions=["Warn"])
    since = {"lastTransitionTime": "2026-11-28T00:00:00Z", "observedGeneration": 1}
    conditions = [
        {"type": "Ready", "status": "True", "reason": "InForce", "message": "", **since},
        {"type": "Enforced", "status": "False", "reason": "Admitted", "message": "why", **since},
    ]
    server.change(POLICY, "few", {"status": {"conditions": conditions}}, subresource="status")

    def listed():
        with pytest.raises(SystemExit) as ended:
            main(["policies", "--kubeconfig", "kubeconfig"])
        return ended.value.code, capsys.readouterr().out

    code, out = await asyncio.to_thread(listed)
    assert (code, [line.split() for line in out.splitlines()]) == (
        0,
        [
            ["POLICY", "ACTIONS", "READY", "ENFORCED", "MESSAGE"],
            ["few", "Deny", "True", "False", "Admitted:", "why"],
            ["warns", "Warn", "Unknown", "-"],
        ],
    )


async def test_policy_files_replace_the_clusters_policies(server, check):
    """The cluster's objects are judged by these policies only."""
    policy(server)
    write(
        "p.yaml",
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: few}\n"
        "spec: {policy: replica-limits, params: {maximum: 5}}\n",
    )
    deployment(server, "seven", replicas=7)
    _, report, _ = await check("--policies", "p.yaml")
    assert [each["policy"] for each in report["results"][0]["violations"]] == ["few"]


async def test_manifests_are_judged_against_the_cluster(server, check):
    """Namespace labels come from the cluster; those on the command line override them."""
    policy(server)
    deployment(server, "old")
    write("shop.yaml", SHOP)
    code, report, _ = await check("shop.yaml")
    assert (code, verdicts(report)) == (1, ["denied shop/new"])
    code, report, _ = await check("--namespace-labels", "shop=", "shop.yaml")
    assert (code, verdicts(report)) == (0, ["unmatched shop/new"])


GIZMO = Resource("example.test", "v1", "gizmo-list", "Gizmo", namespaced=False)
GIZMOS = {
    "metadata": {"name": "gizmo-list.example.test"},
    "spec": {
        "group": "example.test",
        "scope": "Cluster",
        "names": {"kind": "Gizmo", "plural": "gizmo-list"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
NO_GIZMOS = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: none}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [example.test], apiVersions: [v1], operations: [CREATE], resources: [gizmo-list]}]
  validations: [{expression: "false", messageExpression: "'no ' + request.kind.kind"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: none}
spec: {policyName: none, validationActions: [Deny]}
"""


@pytest.mark.parametrize("resources", ["gizmo-list", '"*"'])
async def test_custom_kinds_are_those_of_the_cluster(server, check, resources):
    """The resource need not be the plural of the kind, a policy need not name it, and it may be cluster-scoped."""
    server.define(GIZMOS)
    server.create(GIZMO, {"metadata": {"name": "there"}})
    write("none.yaml", NO_GIZMOS.replace("gizmo-list", resources))
    write("gizmo.yaml", "apiVersion: example.test/v1\nkind: Gizmo\nmetadata: {name: new}\n")
    for manifests, name in (((), "there"), (("gizmo.yaml",), "new")):
        code, report, _ = await check("--policies", "none.yaml", *manifests)
        (result,) = report["results"]
        (violation,) = result["violations"]
        assert (code, result["kind"], result["namespace"], result["name"]) == (1, "Gizmo", "", name)
        assert violation["message"] == "no Gizmo"


async def test_a_policy_whose_look_up_is_forbidden_cannot_decide(server, check):
    """Objects that could not be listed do not count as absent."""
    policy(
        server, name="budgets", policy="disruption-budgets", params={"workloads": True}, match={}
    )
    deployment(server, "big")
    server.fail(1, 403, path="/apis/policy/v1/poddisruptionbudgets")
    code, report, err = await check()
    (violation,) = report["results"][0]["violations"]
    assert (code, verdicts(report)) == (3, ["error shop/big"])
    assert violation["message"] == (
        "could not be decided, since disruption budgets could not be looked up. Try again."
    )
    assert err.startswith("poddisruptionbudgets cannot be listed: 403 Forbidden")


async def test_a_bad_policy_object_hides_no_verdict(server, check):
    """It is a problem, with exit code 3."""
    policy(server)
    policy(server, name="odd", params={"maximun": 1})
    deployment(server, "big")
    code, report, err = await check()
    assert (code, verdicts(report)) == (3, ["denied shop/big"])
    assert err == (
        'ClusterAdmissionPolicy odd: spec.params.maximun: unknown parameter; did you mean "maximum"?\n'
    )


async def test_a_policy_object_that_conflicts_hides_no_verdict(server, check):
    """It is a problem, since it is not in force in the webhook; the first one and the others are in force."""
    policy(server)
    for name, cpu in (("one", "1"), ("two", "2")):
        match = {"any": [{"kinds": ["Pod"]}]}
        policy(
            server, name, policy="resource-defaults", params={"limits": {"cpu": cpu}}, match=match
        )
    deployment(server, "big")
    code, report, _ = await check()
    assert (code, verdicts(report)) == (3, ["denied shop/big"])
    (problem,) = report["problems"]
    assert (problem["file"], problem["message"]) == (
        "ClusterAdmissionPolicy two",
        "it is not in force: one and two set Pod spec.containers[name=container].resources.limits.cpu to different "
        'values: "1" and "2"',
    )


async def test_exceptions_in_the_cluster_are_used(server, check):
    """Those in Gatewright's namespace exempt; others are reported to have no effect."""
    policy(server)
    spec = {
        "reason": "sale",
        "expires": "2999-01-01T00:00:00Z",
        "exceptions": [{"policy": "replica-limits"}],
    }
    deployment(server, "big")
    server.create(EXCEPTION, {"metadata": {"name": "sale", "namespace": "lab"}, "spec": spec})
    code, _, err = await check()
    assert (code, err) == (
        1,
        'note: PolicyException lab/sale: has no effect: spec.exceptions[0].policy: "replica-limits" is a cluster '
        "policy; exceptions from it count in namespace gatewright-system only\n",
    )
    server.create(
        EXCEPTION, {"metadata": {"name": "sale", "namespace": "gatewright-system"}, "spec": spec}
    )
    assert (await check())[0] == 0


async def test_an_exception_that_ends_soon_is_named_without_a_line(server, check):
    """It is an object of the cluster."""
    policy(server)
    expires = (
        (datetime.now(UTC) + timedelta(days=9)).isoformat(timespec="seconds").replace("+00:00", "Z")
    )
    spec = {"reason": "sale", "expires": expires, "exceptions": [{"policy": "replica-limits"}]}
    server.create(
        EXCEPTION, {"metadata": {"name": "sale", "namespace": "gatewright-system"}, "spec": spec}
    )
    deployment(server, "big")
    await check("-o", "html=report.html")
    assert "<td>PolicyException gatewright-system/sale</td>" in read("report.html")


async def test_a_forbidden_list_is_a_problem(server, check):
    """The other objects are judged."""
    policy(server)
    deployment(server, "alone", resource=REPLICA_SET)
    server.fail(1, 403, path="/apis/apps/v1/deployments")
    code, report, err = await check()
    assert (code, verdicts(report)) == (3, ["denied shop/alone"])
    assert err.startswith("deployments cannot be listed: 403 Forbidden")


async def test_a_cluster_without_policies_is_an_error(server, check):
    """The error is the same as for files."""
    code, report, err = await check()
    assert (code, report) == (3, None)
    assert err.startswith("no policies in the cluster: ")


async def test_an_unreachable_server_is_a_problem(server, check):
    """The problem is one line."""
    await server.stop()
    code, _, err = await check()
    assert (code, len(err.splitlines())) == (3, 1)


async def test_a_tag_in_a_pod_is_verified_by_the_digest_that_runs(server, check, registry):
    """Like the audit, `check` verifies that digest; without access to registries, nothing is verified."""
    key, digest = ec.generate_private_key(ec.SECP256R1()), f"sha256:{'a' * 64}"
    registry.attach(digest, bundle(key, digest))
    entry = {"images": [registry.address], "keys": [pem(key)]}
    policy(server, "signed", policy="image-signatures", params={"signatures": [entry]})
    containers = [{"name": "app", "image": f"{registry.address}/team/shop:1"}]
    metadata = {"name": "shop", "namespace": "shop"}
    server.create(POD, {"metadata": metadata, "spec": {"containers": containers}})
    running = [{"name": "app", "imageID": f"{registry.address}/team/shop@{digest}"}]
    server.change(POD, "shop", {"status": {"containerStatuses": running}}, "shop", "status")
    code, report, _ = await check("--insecure-registries", registry.address, "--registry-access")
    assert (code, verdicts(report)) == (0, ["allowed shop/shop"])
    code, report, _ = await check()
    (violation,) = report["results"][0]["violations"]
    assert (code, verdicts(report), violation["message"]) == (
        3,
        ["error shop/shop"],
        "images are not verified: only their registries know. Use --registry-access.",
    )


async def test_credentials_that_are_not_valid_are_one_problem(server, check):
    """There is one problem, not one for each kind."""
    server.fail(99, 401, path="/api")
    code, _, err = await check()
    assert (code, err.splitlines()) == (
        3,
        ["cannot read from the API server: 401 Unauthorized: a fault of the test: 401"],
    )


PLANTED = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: big}
spec:
  replicas: 0
  selector: {matchLabels: {app: big}}
  template:
    metadata: {labels: {app: big}}
    spec: {containers: [{name: app, image: "nginx:1.21"}]}
"""


@pytest.mark.controlplane
def test_a_real_cluster_is_judged(control_plane, namespace, tmp_path, capsys):
    """The policies are from a file, the objects from a real API server; a Deployment's ReplicaSet is left out."""
    kubectl = control_plane.kubectl
    kubectl("apply", "-n", namespace, "-f", "-", input=PLANTED)
    policies = tmp_path / "p.yaml"
    policies.write_text(
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: images}\nspec:\n"
        "  policy: image-registries\n  params: {registries: [registry.company.com]}\n"
        f"  match: {{any: [{{namespaces: [{namespace}]}}]}}\n"
    )
    given = ("--kubeconfig", str(control_plane.kubeconfig), "--policies", str(policies))
    with pytest.raises(SystemExit) as ended:
        main(["check", *given, "-o", "json"])
    report = json.loads(capsys.readouterr().out)
    denied = [
        (result["kind"], result["name"])
        for result in report["results"]
        if result["verdict"] == "denied"
    ]
    assert (ended.value.code, denied, report["problems"]) == (1, [("Deployment", "big")], [])
