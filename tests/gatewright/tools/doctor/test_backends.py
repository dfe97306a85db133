"""Backends of webhooks: Services, endpoints, pods, conversions and aggregated APIs."""

import jsonpatch
import pytest

from tests.gatewright.tools.doctor.clusters import (
    CA,
    backend,
    changed,
    configuration,
    encoded,
    findings,
    found,
    webhook,
    without,
)

CONFIGURATION = configuration(webhook())
NO_PORT = {"spec": {"selector": {"app": "guard"}, "ports": [{"name": "https", "port": 8443}]}}


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        (
            without(backend(), "Namespace"),
            "the namespace guard of the Service guard/guard does not exist",
        ),
        (without(backend(), "Service"), "the Service guard/guard does not exist"),
        (
            changed(backend(), "Service", NO_PORT),
            "the Service guard/guard has no port 443 (it has: 8443)",
        ),
        (backend(ready=0), "the Service guard/guard has no ready endpoint"),
        (
            without(backend(), "EndpointSlice"),
            "the Service guard/guard has no ready endpoint",
        ),
        (
            changed(backend(), "EndpointSlice", {"ports": [{"name": "metrics", "port": 1}]}),
            "no pod of the Service guard/guard has its port https",
        ),
    ],
    ids=["namespace", "service", "port", "not ready", "no slice", "port of the pods"],
)
def test_nothing_answers(objects, message):
    """The finding names the missing object and the failing requests."""
    (finding,) = (each for each in findings(CONFIGURATION, *objects) if each.check == "no-endpoint")
    assert finding.level == "critical"
    assert finding.message == (
        f"{message}, so every request that pods.guard.example.com judges is refused"
    )


def test_a_webhook_that_fails_open_without_endpoints_is_a_warning():
    """Requests pass unchecked."""
    (finding,) = findings(configuration(webhook(failurePolicy="Ignore")), *backend(ready=0))
    assert (finding.level, finding.check) == ("warning", "no-endpoint")
    assert finding.message.endswith(
        "so pods.guard.example.com judges nothing: requests pass unchecked"
    )


@pytest.mark.parametrize(
    ("objects", "check"),
    [
        (backend(replicas=1), "one-replica"),
        (without(backend(), "PodDisruptionBudget"), "no-disruption-budget"),
        (
            changed(
                backend(),
                "EndpointSlice",
                {"endpoints": [{"nodeName": "node-1"}, {"nodeName": "node-1"}]},
            ),
            "one-node",
        ),
    ],
)
def test_one_loss_leaves_nothing(objects, check):
    """A backend that depends on one pod, one drain or one node is a warning."""
    assert found(CONFIGURATION, *objects) == [("warning", check)]


def test_a_deployment_with_one_pod_is_one_finding_for_all_its_callers():
    """It names the webhooks; the command scales the Deployment."""
    other = configuration(webhook(name="b.example.com"), name="b")
    (finding,) = findings(CONFIGURATION, other, *backend(replicas=1))
    assert finding.subject.title == "Deployment guard/guard"
    assert finding.message == (
        "Deployment guard/guard runs one pod. If that pod or its node goes, every request that "
        "b.example.com and pods.guard.example.com judge is refused"
    )
    assert finding.command == "kubectl scale deployment guard --namespace guard --replicas=2"


def test_an_autoscaler_decides_how_many_pods_run():
    """A scaled Deployment would be scaled back; so the minimum of the autoscaler is raised."""
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"namespace": "guard", "name": "guard"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "guard"}, "minReplicas": None},
    }
    (finding,) = findings(CONFIGURATION, scaler, *backend())
    assert finding.message == (
        "Deployment guard/guard may run one pod. If that pod or its node goes, every request that "
        "pods.guard.example.com judges is refused"
    )
    assert finding.command == (
        "kubectl patch horizontalpodautoscaler guard --namespace guard --type=json -p "
        """'[{"op": "add", "path": "/spec/minReplicas", "value": 2}]'"""
    )
    assert found(CONFIGURATION, jsonpatch.apply_patch(scaler, finding.patch), *backend()) == []


def test_a_conversion_webhook_without_endpoints():
    """Objects of the kind cannot be read."""
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "votes.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "votes", "kind": "Vote"},
            "versions": [
                {"name": "v1", "served": True, "storage": True},
                {"name": "v1alpha1", "served": False},
            ],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": webhook()["clientConfig"]},
            },
        },
    }
    assert findings(definition, *backend(ready=0)) == []  # no object has another version
    definition["status"] = {"storedVersions": ["v1alpha1", "v1"]}
    (finding,) = findings(definition, *backend(ready=0))
    assert (finding.level, finding.check, finding.path) == (
        "critical",
        "no-endpoint",
        "spec.conversion.webhook",
    )
    assert finding.message == (
        "the Service guard/guard has no ready endpoint, so votes.example.com cannot be read, "
        "listed or written in other versions than the stored one"
    )


def test_a_webhook_without_rules_is_never_called():
    """Knative and Kyverno fill in the rules of their registrations later."""
    assert found(configuration(webhook(rules=[])), *backend(ready=0)) == []


def test_an_aggregated_api_without_endpoints():
    """Its requests fail, and namespaces cannot be deleted."""
    aggregated = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1.metrics.example.com"},
        "spec": {
            "group": "metrics.example.com",
            "version": "v1",
            "service": {"namespace": "guard", "name": "guard"},
            "caBundle": encoded(CA.certificate),
        },
    }
    (finding,) = findings(aggregated, *backend(ready=0))
    assert finding.message == (
        "the Service guard/guard has no ready endpoint, so requests of metrics.example.com/v1 "
        "fail, and no namespace can be deleted"
    )
    open_ = aggregated["spec"] | {"caBundle": "", "insecureSkipTLSVerify": True}
    assert found(aggregated | {"spec": open_}, *backend()) == [("warning", "unverified")]
