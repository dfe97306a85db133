"""Policies as objects of the cluster: in force in every replica at once, and no bad one unloads a good one."""

import json
import ssl
from pathlib import Path

import pytest
import yaml

from kube.resource import JsonObject
from tests.e2e import manifests
from tests.e2e.conftest import CONFIG
from tests.e2e.policies.conftest import (
    API_VERSION,
    HOME,
    Installation,
    exception,
    few,
    post,
    tenants,
    too_many,
)
from tests.e2e.test_production import denial, forbidden
from tests.gatewright.started import Gatewright, call
from webhook.server.cluster_policies import CLUSTER_POLICY

pytestmark = pytest.mark.controlplane("kube-controller-manager")

MANAGER = CONFIG / "manager/manager.yaml"
REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "u-1",
        "operation": "CREATE",
        "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "name": "shop",
        "userInfo": {"username": "jane"},
    },
}


def test_an_object_is_in_force_in_every_replica_as_soon_as_it_is_stored(
    installation: Installation, namespace: str
) -> None:
    """Made, changed and deleted, without a restart; each replica judges by it."""
    pids = [webhook.process.pid for webhook in installation.webhooks]
    for maximum in range(3, 8):
        policy = few(namespace, maximum)
        installation.kubectl("apply", "-f-", input=policy)
        installation.until(
            "in force",
            lambda policy=policy, wanted=maximum - 2: (
                installation.generations(policy) == [wanted] * 2
            ),
        )

    review = REVIEW | {
        "request": REVIEW["request"]
        | {"namespace": namespace, "object": manifests.deployment(replicas=8)}
    }
    for webhook in installation.webhooks:
        status, body = installation.review(webhook, review)
        assert (status, json.loads(body)["response"]["status"]["message"]) == (
            200,
            f"1 violation\n- {too_many(8, 7)}",
        )
    installation.until(
        "registered", lambda: installation.denied(namespace, manifests.deployment(replicas=8))
    )
    said = installation.refusal(
        "create", "-n", namespace, "-f-", input=manifests.deployment(replicas=8)
    )
    assert said == forbidden(too_many(8, 7))

    installation.kubectl("delete", "clusteradmissionpolicy/few")
    installation.until("gone", lambda: installation.generations(policy) == [None, None])
    installation.kubectl("create", "-n", namespace, "-f-", input=manifests.deployment(replicas=8))
    for webhook in installation.webhooks:
        assert json.loads(installation.review(webhook, review)[1])["response"] == {
            "uid": "u-1",
            "allowed": True,
        }
    assert [webhook.process.pid for webhook in installation.webhooks] == pids


def test_the_same_yaml_has_the_same_effect_in_check(
    installation: Installation,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Policies, one of a tenant, and an exception have the same effect in the cluster and in `gatewright check`."""
    written = [
        few(namespace, 2),
        few(
            namespace,
            name="images",
            policy="image-registries",
            params={"registries": ["registry.company.com"]},
        ),
        tenants(namespace),
        exception(names=["shop"], params={"maximum": 4}),
    ]
    (tmp_path / "policies.yaml").write_text(yaml.safe_dump_all(written))
    options = ("--policies", str(tmp_path / "policies.yaml"), "-n", namespace, "-o", "json")
    installation.apply(*written[:3])
    installation.kubectl("apply", "-f-", input=written[3])
    bad = manifests.deployment(replicas=5, image="nginx:1.21")
    installation.until(
        "excepted", lambda: "cannot exceed 4" in _causes(installation, namespace, bad)
    )
    for manifest in (bad, bad | {"metadata": {"name": "other"}}, manifests.deployment(replicas=1)):
        file = tmp_path / "manifest.json"
        file.write_text(json.dumps(manifest))
        checked = call(capsys, "check", *options, str(file))
        assert checked.stderr == ""
        (record,) = json.loads(checked.stdout)["results"]
        lines = [(each["policy"], each["message"]) for each in record["violations"]]
        causes = json.loads(_causes(installation, namespace, manifest))
        assert lines == [(each["reason"], each["message"]) for each in causes]
        assert len(lines) == (0 if manifest["spec"]["replicas"] == 1 else 3)


def _causes(installation: Installation, namespace: str, manifest: JsonObject) -> str:
    """Return the causes of a denial as JSON; an empty list for an allowed object."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments?dryRun=All"
    code, body = installation.api.request("POST", path, manifest)
    return json.dumps([] if code == 201 else json.loads(body)["details"]["causes"])


WRONG = "Correct it; `gatewright policies` lists the policies."


def test_a_wrong_object_is_denied_when_it_is_applied(installation: Installation) -> None:
    """The denial has path, fault and suggestion; other faults are in tests/policies."""
    match = {
        "any": [{"kinds": ["Deploymnt"]}, {"kinds": ["Deployment", "StatefulSt"]}],
    }
    faults = [
        'replica-limits does not look at "Deploymnt"; did you mean "Deployment"?',
        'replica-limits does not look at "StatefulSt"; did you mean "StatefulSet"?',
    ]
    lines = [
        f"policy-objects: spec.match.any[{index}].kinds: {fault}; this ClusterAdmissionPolicy would "
        f"not be in force. {WRONG}"
        for index, fault in enumerate(faults)
    ]
    said = installation.refusal("apply", "-f-", input=few("shop", match=match))
    assert said == forbidden(*lines)


@pytest.mark.parametrize(
    ("object", "said"),
    [
        (
            exception("default", expires="2099-01-01"),
            'The PolicyException "why-not" is invalid: spec.expires: Invalid value: "2099-01-01": spec.expires in body '
            'must be of type date-time: "2099-01-01"\n',
        ),
        (
            exception("default", name=["shop"]),
            'Error from server (BadRequest): error when creating "STDIN": PolicyException in version "v1alpha1" cannot '
            'be handled as a PolicyException: strict decoding error: unknown field "spec.exceptions[0].name"\n',
        ),
        (
            few("shop", validationActions=["Forbid"]),
            'The ClusterAdmissionPolicy "few" is invalid: spec.validationActions[0]: Unsupported value: "Forbid": '
            'supported values: "Deny", "Warn", "Audit"\n',
        ),
    ],
    ids=["a date without a time", "a field", "an action"],
)
def test_the_api_server_reports_violations_of_the_schema(
    installation: Installation, object: JsonObject, said: str
) -> None:
    """The API server names the field, with or without a webhook."""
    assert installation.refusal("apply", "-f-", input=object) == said


GADGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.net"},
    "spec": {
        "group": "example.net",
        "scope": "Namespaced",
        "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer"},
                                    "color": {"type": "string"},
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


def of_gadgets(expression: str, **metadata: JsonObject) -> JsonObject:
    """Make a policy with a rule about a custom kind of somebody else."""
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": "gadgets", **metadata},
        "spec": {
            "match": {"any": [{"kinds": ["example.net/v1/Gadget"]}]},
            "validations": [{"expression": expression, "message": "small"}],
        },
    }


def test_a_rule_about_an_unknown_field_of_a_custom_kind_is_denied(
    installation: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the schema that the API server serves; `check` with it, or its definition, says the same.

    Before the kind is served, any field may exist; the annotation is for fields still to come.
    """
    wrong = of_gadgets("object.spec.sice < 2")

    def is_admitted() -> bool:
        path = f"{CLUSTER_POLICY.path()}?dryRun=All"
        return installation.api.request("POST", path, wrong)[0] == 201

    installation.until("admitted", is_admitted)
    installation.kubectl("apply", "-f-", input=GADGETS)
    installation.until("the schema is served", lambda: not is_admitted())
    rule, fault = "spec.validations[0].expression", "line 1, column 13: undefined field 'sice'"
    fault = f"{rule}: {fault} of 'spec'; did you mean \"size\"?"
    denied = (
        f"policy-objects: {fault}; this ClusterAdmissionPolicy would not be in force. Correct it."
    )
    assert installation.refusal("create", "-f-", input=wrong) == forbidden(denied)

    allowed = of_gadgets(
        "object.spec.sice < 2", annotations={"gatewright.io/unknown-fields": "allow"}
    )
    installation.kubectl("create", "--dry-run=server", "-f-", input=allowed)
    warned = installation.plane.kubectl(
        "create", "--dry-run=server", "-f-", input=of_gadgets("object.spec.color == 2")
    )
    assert warned.stderr.startswith("Warning: rule-types: spec.validations[0].expression: line 1")

    policies, definition, gadget = (tmp_path / f"{name}.yaml" for name in ("set", "crd", "gadget"))
    policies.write_text(yaml.safe_dump(wrong))
    definition.write_text(yaml.safe_dump(GADGETS))
    one = {"apiVersion": "example.net/v1", "kind": "Gadget", "metadata": {"name": "one"}}
    gadget.write_text(yaml.safe_dump(one))
    kubeconfig = ("--kubeconfig", str(installation.plane.kubeconfig))
    for more in ((str(definition),), kubeconfig):  # the set's rules
        done = call(capsys, "check", "--policies", str(policies), *more, str(gadget))
        assert (done.returncode, fault in done.stderr) == (3, True), done
    for more in ((str(definition),), kubeconfig):  # the policy object as a manifest
        done = call(capsys, "check", "--policies", "baseline", *more, str(policies))
        assert (done.returncode, fault in done.stdout) == (1, True), done


def test_a_good_object_cannot_be_made_wrong(installation: Installation, namespace: str) -> None:
    """A patch is judged like a creation."""
    installation.apply(few(namespace))
    patch = '--patch={"spec":{"params":{"maximum":"ten"}}}'
    assert installation.refusal(
        "patch", "cap/few", "--type=merge", patch
    ) == "Error from server (Forbidden): " + denial(
        'policy-objects: spec.params.maximum: "ten": should be a valid integer; this '
        f"ClusterAdmissionPolicy would not be in force. {WRONG}"
    )


UNGUARDED = {
    "apiVersion": API_VERSION,
    "kind": "ClusterAdmissionPolicy",
    "metadata": {"name": "policy-objects"},
    "spec": {"policy": "policy-objects", "validationActions": ["Audit"]},
}


def test_a_bad_version_never_unloads_the_good_one(
    installation: Installation, namespace: str
) -> None:
    """An invalid version is reported in the status and each replica's log; the valid one stays in force."""
    policy = few(namespace)
    installation.apply(policy, UNGUARDED)
    installation.until(
        "denied", lambda: installation.denied(namespace, manifests.deployment(replicas=4))
    )
    assert installation.ready(policy) == ("True", "InForce", "")
    installation.kubectl("apply", "-f-", input=few(namespace, params={"maximun": 9}))
    fault = 'spec.params.maximun: unknown parameter; did you mean "maximum"?'
    assert installation.ready(policy) == ("False", "Invalid", fault)
    message = (
        f"ClusterAdmissionPolicy few cannot be used, its last good version stays in force: {fault}"
    )
    for webhook in installation.webhooks:
        webhook.until(
            "told",
            lambda webhook=webhook: message in [line["message"] for line in webhook.logged()],
        )
    assert installation.generations(policy) == [1, 1]
    assert installation.denied(namespace, manifests.deployment(replicas=4))
    wide = installation.kubectl("get", "cap", "few", "-o=wide", "--no-headers").split(maxsplit=5)
    assert (wide[:4], wide[5].strip()) == (["few", "replica-limits", "Deny", "False"], fault)

    installation.apply(few(namespace, 4))
    assert installation.generations(policy) == [3, 3]
    assert installation.ready(policy) == ("True", "InForce", "")
    assert not installation.denied(namespace, manifests.deployment(replicas=4))


def test_a_bad_version_stored_while_nothing_is_registered(
    installation: Installation, namespace: str
) -> None:
    """Once the webhook is registered again it judges by the last good version, in every replica."""
    policy = few(namespace)
    installation.apply(policy)
    installation.kubectl("delete", "validatingwebhookconfiguration/gatewright")
    wrong = few(namespace, params={"maximum": -1})
    installation.until(
        "stored",
        lambda: (
            installation.plane.kubectl("apply", "-f-", input=wrong, check=False).returncode == 0
        ),
    )
    fault = "spec.params.maximum: -1: should be greater than or equal to 0"
    assert installation.ready(policy) == ("False", "Invalid", fault)
    assert not installation.denied(namespace, manifests.deployment(replicas=4))
    installation.apply(few(namespace, name="services", policy="service-types", params={}))
    empty = next(
        document
        for document in yaml.safe_load_all(MANAGER.read_text())
        if document["kind"] == "ValidatingWebhookConfiguration"
    )
    installation.kubectl("apply", "-f-", input=empty)
    installation.until(
        "denied", lambda: installation.denied(namespace, manifests.deployment(replicas=4))
    )
    assert installation.generations(policy) == [1, 1]


def test_policies_in_gatewrights_namespace_are_not_reviewed_but_have_a_status(
    installation: Installation,
) -> None:
    """The webhook gets no requests of Gatewright's namespace.

    There, too, a bad version does not unload the good one.
    """
    installation.apply(tenants(HOME))
    installation.kubectl(
        "apply", "-f-", input=tenants(HOME) | {"spec": {"policy": "replica-limit"}}
    )
    fault = 'spec.policy: no policy "replica-limit"; did you mean "replica-limits"?'
    assert installation.ready(tenants(HOME)) == ("False", "Invalid", fault)
    assert installation.generations(tenants(HOME)) == [1, 1]
    installation.kubectl("delete", "ap/own", "-n", HOME)
    installation.until("gone", lambda: installation.generations(tenants(HOME)) == [None, None])


def test_conflicting_policies_are_reported_and_delay_no_others(
    installation: Installation, namespace: str
) -> None:
    """The second is not in force, as its status reports, until the first is deleted.

    Others come into force meanwhile.
    """
    one, two = (
        few(namespace, name=name, policy="resource-defaults", params={"limits": {"cpu": cpu}})
        for name, cpu in (("one", "1"), ("two", "2"))
    )
    installation.apply(one)
    installation.kubectl("apply", "-f-", input=two)
    installation.apply(few(namespace))
    installation.until("told", lambda: installation.ready(two)[1] == "Conflict")
    assert installation.ready(two)[2].startswith(
        "one and two set Pod spec.containers[name=container].resources.limits.cpu to different"
    )
    assert installation.ready(one) == ("True", "InForce", "")
    assert installation.generations(two) == [None, None]
    installation.kubectl("delete", "cap/one")
    installation.until("in force", lambda: installation.generations(two) == [1, 1])
    installation.until("told", lambda: installation.ready(two) == ("True", "InForce", ""))


def test_nothing_is_judged_before_the_objects_have_been_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A webhook that cannot reach the API server answers 503, never allowed, and is not ready."""
    kubeconfig = tmp_path / "kubeconfig"
    user = {"name": "u", "user": {"token": "none"}}
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    contexts = [{"name": "c", "context": {"cluster": "c", "user": "u"}}]
    about = {"apiVersion": "v1", "kind": "Config", "contexts": contexts, "current-context": "c"}
    kubeconfig.write_text(yaml.safe_dump(about | {"clusters": [cluster], "users": [user]}))
    assert call(capsys, "certs", str(tmp_path)).returncode == 0
    pair = ("--tls-cert", str(tmp_path / "tls.crt"), "--tls-key", str(tmp_path / "tls.key"))
    with Gatewright(None, tmp_path, "webhook", *pair, kubeconfig=kubeconfig) as webhook:
        webhook.launch()
        line = "[-] policies: policy objects of the cluster: not read yet\n"
        webhook.until("told", lambda: line in webhook.get("/readyz")[1])
        review = REVIEW | {"request": REVIEW["request"] | {"object": manifests.deployment()}}
        trust = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
        assert post(webhook, review, trust) == (503, b"the policies are not loaded yet\n")
        assert webhook.tracebacks() == []
        webhook.kill()


def test_an_object_that_does_not_change_is_not_written(
    installation: Installation, namespace: str
) -> None:
    """A restarted controller finds every status up to date and writes none."""
    installation.apply(few(namespace), tenants(namespace))
    installation.kubectl("apply", "-f-", input=exception())
    for object in (few(namespace), tenants(namespace), exception()):
        assert installation.ready(object) == ("True", "InForce", "")
    mark = installation.plane.audit_mark()
    assert installation.controller.end() == 0
    installation.controller.start()

    def looked_at() -> bool:
        done = [
            line
            for line in installation.controller.logged()
            if line["message"] == "Reconciliation completed"
        ]
        return any(line.get("policyexception.namespace") == HOME for line in done)

    installation.until("looked at again", looked_at)
    user = f"system:serviceaccount:{HOME}:gatewright-controller-manager"
    written = installation.plane.audit_events(
        mark, user=user, verb=("create", "update", "patch", "delete")
    )
    assert [
        event["requestURI"] for event in written if "gatewright.io" in event["requestURI"]
    ] == []
