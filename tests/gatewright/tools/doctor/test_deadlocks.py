"""Webhooks that block their own recovery, or the cluster's."""

import time

import jsonpatch
import pytest

from gatewright.tools.doctor import diagnose
from tests.gatewright.tools.doctor.clusters import (
    NOW,
    backend,
    configuration,
    findings,
    found,
    state_of,
    webhook,
    without,
)

PODS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["pods"],
}
HERE = {"matchLabels": {"kubernetes.io/metadata.name": "guard"}}


def test_nothing_is_found_where_all_is_well():
    """A narrow webhook with two pods, a budget and a valid certificate has no finding."""
    assert found(configuration(webhook()), *backend()) == []


def test_a_webhook_that_judges_its_own_pods_cannot_come_back():
    """The finding names the requests that fail, and the patch excludes the namespace."""
    judge = webhook(rules=[PODS], namespaceSelector=HERE)
    finding = findings(configuration(judge), *backend())[0]
    assert (finding.level, finding.check) == ("critical", "own-pods")
    assert finding.message == (
        "pods.guard.example.com judges requests for its own pods (behind guard/guard) and fails closed. If "
        "its last pod goes, the API server refuses CREATE pods in guard (its pods cannot be created): the "
        "webhook cannot come back"
    )
    requirement = {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": ["guard"],
    }
    path = "/webhooks/0/namespaceSelector/matchExpressions"
    assert finding.patch == ({"op": "add", "path": path, "value": [requirement]},)
    assert finding.command.startswith(
        "kubectl patch validatingwebhookconfiguration guard --type=json -p '[{"
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"failurePolicy": "Ignore"},
        {"objectSelector": {"matchLabels": {"app": "other"}}},
        {"matchConditions": [{"name": "a", "expression": "request.namespace != 'guard'"}]},
        {
            "matchConditions": [
                {
                    "name": "a",
                    "expression": "!request.userInfo.username.startsWith('system:serviceaccount:kube-system:')",
                }
            ]
        },
        {"rules": [PODS | {"operations": ["DELETE"]}]},
        {"rules": [PODS | {"scope": "Cluster"}]},
        {"rules": [PODS | {"apiVersions": ["v1beta1"]}]},
        {
            "rules": [PODS | {"resources": ["pods/binding"]}],
            "objectSelector": {"matchLabels": {"app": "guard"}},
        },
    ],
    ids=["ignore", "object", "condition", "user", "operation", "scope", "version", "binding"],
)
def test_a_webhook_that_is_not_called_for_its_own_pods_is_no_deadlock(changes):
    """Everything that keeps the API server from calling it counts: policy, selectors, conditions, rules."""
    judge = webhook(rules=[PODS], namespaceSelector=HERE) | changes
    assert ("critical", "own-pods") not in found(configuration(judge), *backend())


@pytest.mark.parametrize(
    ("expression", "is_called"),
    [
        ("has(object.spec.hostNetwork) && object.spec.hostNetwork", True),
        ("object.metadata.?ownerReferences.orValue([]).size() > 0", True),
        ("request.name != ''", True),
        ("request.operation == 'CREATE' && oldObject == null", True),
        ("request.operation == 'UPDATE' && oldObject != null", True),
        ("request.operation == 'UPDATE' && oldObject == null", False),
        ("request.namespace != 'guard' && has(object.spec)", False),
        ("!has(object.metadata.labels)", False),
        ("object.metadata.labels['app'] != 'guard'", False),
    ],
)
def test_a_condition_about_unknown_fields_may_be_true(expression, is_called):
    """What is known still decides where it can."""
    rules = [PODS | {"resources": ["pods", "pods/status"], "operations": ["CREATE", "UPDATE"]}]
    conditions = [{"name": "a", "expression": expression}]
    judge = webhook(rules=rules, namespaceSelector=HERE, matchConditions=conditions)
    assert (("critical", "own-pods") in found(configuration(judge), *backend())) is is_called


@pytest.mark.parametrize(
    ("resource", "operation", "group"),
    [
        ("pods/status", "UPDATE", ""),
        ("pods/binding", "CREATE", ""),
        ("serviceaccounts/token", "CREATE", ""),
        ("endpointslices", "UPDATE", "discovery.k8s.io"),
    ],
)
def test_whatever_its_pods_need_is_a_deadlock(resource, operation, group):
    """Status, binding, token and endpoints of its pods are needed, too."""
    rule = PODS | {"apiGroups": [group], "resources": [resource], "operations": [operation]}
    judge = webhook(rules=[rule], namespaceSelector=HERE)
    assert ("critical", "own-pods") in found(configuration(judge), *backend())


@pytest.mark.parametrize(
    ("group", "resource", "operation"), [("", "secrets", "UPDATE"), ("apps", "replicasets", "*")]
)
def test_its_own_secrets_and_replica_sets_are_a_warning(group, resource, operation):
    """Its pods come back, but it cannot renew its certificate, or run another image."""
    rule = PODS | {"apiGroups": [group], "resources": [resource], "operations": [operation]}
    judge = webhook(rules=[rule], namespaceSelector=HERE)
    assert ("warning", "own-data") in (checks := found(configuration(judge), *backend()))
    assert ("critical", "own-pods") not in checks


@pytest.mark.parametrize(
    ("group", "resource", "check"),
    [
        ("", "nodes", "cluster-resources"),
        ("", "nodes/status", "cluster-resources"),
        ("authentication.k8s.io", "tokenreviews", "cluster-resources"),
        ("certificates.k8s.io", "certificatesigningrequests/approval", "cluster-resources"),
        ("", "pods", "system-namespaces"),
        ("coordination.k8s.io", "leases", "system-namespaces"),
        ("apps", "controllerrevisions", "system-namespaces"),
    ],
)
def test_what_a_cluster_needs_to_come_back(group, resource, check):
    """Nodes, system pods and Leases may not depend on a webhook that fails closed."""
    rule = PODS | {"apiGroups": [group], "resources": [resource], "operations": ["*"]}
    judge = webhook(rules=[rule], namespaceSelector=None, timeoutSeconds=3)
    levels = [each for each in found(configuration(judge), *backend()) if each[1] == check]
    assert levels == [("critical", check)]


def test_two_webhooks_that_need_each_other_are_a_cycle():
    """A's pods are judged by B, and B's by A: both gone, neither comes back."""
    a = webhook(
        name="a.example.com",
        clientConfig=webhook()["clientConfig"] | {"service": {"namespace": "a", "name": "a"}},
        rules=[PODS],
        namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "b"}},
    )
    b = webhook(
        name="b.example.com",
        clientConfig=webhook()["clientConfig"] | {"service": {"namespace": "b", "name": "b"}},
        rules=[PODS],
        namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "a"}},
    )
    cluster = [*backend("a"), *backend("b")]
    other = a | {"name": "other.example.com", "rules": [PODS | {"resources": ["services"]}]}
    judging = configuration(other, a, name="a")
    cycle = findings(judging, configuration(b, name="b"), *cluster)[0]
    assert (cycle.level, cycle.check, cycle.subject.title) == (
        "critical",
        "cycle",
        "ValidatingWebhookConfiguration a",
    )
    assert cycle.message == (
        "a/a -> b/b -> a/a: the pods of each are judged by the next one, and all fail closed. If "
        "the pods of a/a and b/b are gone at the same time, none of these webhooks comes back"
    )
    assert cycle.remedy == (
        "exclude b from the webhooks of a/a: kubectl patch validatingwebhookconfiguration a "
        """--type=json -p '[{"op": "add", "path": "/webhooks/1/namespaceSelector/matchExpressions", """
        """"value": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["b"]}]}]'"""
    )
    alone = found(configuration(a, name="a"), *cluster)
    assert ("critical", "cycle") not in alone


def test_events_are_a_note():
    """A webhook that fails closed over events hides why it fails."""
    rule = PODS | {"resources": ["events"]}
    judge = webhook(rules=[rule], namespaceSelector=None)
    assert found(configuration(judge), *backend()) == [("note", "events")]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("inject", "true", []),
        ("k8s-app", "kube-dns", [("critical", "system-namespaces")]),
        ("app", "network", [("critical", "system-namespaces")]),
    ],
)
def test_a_webhook_for_labelled_objects_is_called_for_what_has_the_label(key, value, expected):
    """System pods do not ask for a sidecar; labels of known workloads count."""
    rules = [PODS | {"resources": ["pods", "pods/resize", "pods/ephemeralcontainers"]}]
    selector = {"objectSelector": {"matchLabels": {key: value}}, "namespaceSelector": None}
    template = {"metadata": {"labels": {"app": "network"}}}
    network = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"namespace": "kube-system", "name": "network"},
        "spec": {"template": template},
    }
    judge = configuration(webhook(rules=rules, **selector))
    assert found(judge, network, *backend()) == expected


@pytest.mark.parametrize(
    ("priority", "expected"),
    [("", []), ("system-node-critical", [("critical", "system-namespaces")])],
)
def test_the_network_of_a_new_node_may_be_in_any_namespace(priority, expected):
    """Calico's operator and Flannel install DaemonSets outside kube-system."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "calico-system"}}
    network = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"namespace": "calico-system", "name": "calico-node"},
        "spec": {"template": {"spec": {"priorityClassName": priority}}},
    }
    subject = configuration(webhook(namespaceSelector=selector))
    reported = findings(subject, network, *backend())
    assert [(each.level, each.check) for each in reported] == expected
    for hazard in reported:
        assert hazard.message.endswith(
            "CREATE pods in calico-system (DaemonSet calico-system/calico-node gets no pod on a "
            "new node)"
        )
        assert found(jsonpatch.apply_patch(subject, hazard.patch), network, *backend()) == []


def test_the_service_of_the_api_server_is_spared_without_its_namespace():
    """People's Services in default are still judged."""
    rule = PODS | {"resources": ["services"]}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
    conditions = [{"name": "mine", "expression": "true"}]
    judge = webhook(rules=[rule], namespaceSelector=selector, matchConditions=conditions)
    subject = configuration(judge)
    (finding,) = findings(subject, *backend())
    assert (finding.check, finding.fix) == (
        "system-namespaces",
        "do not call it for the objects default/kubernetes",
    )
    expression = '!(request.namespace == "default" && request.name == "kubernetes")'
    spared = {"name": "spares-what-the-cluster-needs-1", "expression": expression}
    patched = jsonpatch.apply_patch(subject, finding.patch)
    assert patched["webhooks"][0]["matchConditions"] == [*conditions, spared]
    assert jsonpatch.apply_patch(patched, finding.patch) == patched  # run twice
    assert found(patched, *backend()) == []


@pytest.mark.long
@pytest.mark.parametrize(("sort", "is_own"), [("Validating", False), ("Mutating", True)])
def test_two_thousand_webhooks_take_seconds(sort, is_own):
    """14,000 objects; the bound is generous, since a search over all pairs took 40 s."""
    objects = []
    for number in range(2000):
        name = f"w{number}"
        service = {"service": {"namespace": name, "name": name}}
        selected = f"tenant-{number}" if is_own else "shop"
        selector = {"matchLabels": {"kubernetes.io/metadata.name": selected}}
        judge = webhook(
            name=f"{name}.example.com", clientConfig=service, namespaceSelector=selector
        )
        objects += [*without(backend(name), "Secret"), configuration(judge, name=name, sort=sort)]
    state, before = state_of(objects), time.process_time()
    diagnose(state, NOW)
    assert time.process_time() - before < 15
