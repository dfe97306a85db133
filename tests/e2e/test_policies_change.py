"""Changes of policies and namespaces at run time, the registration, and the end of the process."""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.lent import LentPlane
from tests.e2e import manifests
from tests.e2e.conftest import CONFIG, Cluster, Laptop
from tests.e2e.test_production import APPROVED
from tests.gatewright.started import Gatewright, once, registered

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

STRICT = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata:
  name: strict-replicas
spec:
  policy: replica-limits
  params:
    maximum: {maximum}
    tier: {namespace}
  match:
    any:
      - namespaces: [{namespace}]
"""
EXCEPTION = """\
apiVersion: gatewright.io/v1alpha1
kind: PolicyException
metadata:
  name: moving
spec:
  reason: moving
  expires: "2099-01-01T00:00:00Z"
  exceptions:
    - policy: strict-replicas
"""


@pytest.fixture
def edited(laptop: Laptop) -> Iterator[Callable[[str], Path]]:
    """Add a policy to the file of those in force; restore the file after the test."""
    file = laptop.policies / "production.yaml"
    shipped = file.read_text()

    def add(policy: str) -> Path:
        file.write_text(f"{shipped}---\n{policy}")
        return file

    yield add
    file.write_text(shipped)


def _is_denied(laptop: Laptop, namespace: str, replicas: int) -> bool:
    """Return whether a Deployment with this many replicas is denied."""
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments?dryRun=All"
    code, _ = laptop.api.request("POST", path, manifests.deployment("judged", replicas=replicas))
    return code == 403


def test_an_edited_policy_file_is_in_force_without_a_restart(
    laptop: Laptop, namespace: str, edited: Callable[[str], Path]
) -> None:
    """An edit denies, on the scale subresource of a WebApp too; a broken edit is logged and changes nothing."""
    laptop.kubectl("create", "-n", namespace, "-f-", input=manifests.webapp())
    assert not _is_denied(laptop, namespace, 4)
    policy = STRICT.format(maximum=3, namespace=namespace)
    edited(policy)
    laptop.gatewright.until("denied", lambda: _is_denied(laptop, namespace, 4))
    assert laptop.refusal("scale", "webapp/shop", "--replicas=4", "-n", namespace) == (
        'Error from server (Forbidden): admission webhook "validate.gatewright.io" denied the request: 1 violation\n'
        f"- strict-replicas: spec.replicas: 4; {namespace} workloads cannot exceed 3 replicas. Set it to 3 or less.\n"
    )

    file = edited(policy.replace("maximum", "maximun"))
    line = file.read_text().splitlines().index("    maximun: 3") + 1
    fault = (
        f"the policies cannot be used, those before stay in force: {file}:{line}: "
        "ClusterAdmissionPolicy strict-replicas: spec.params.maximun: "
        'unknown parameter; did you mean "maximum"?'
    )
    laptop.gatewright.until(
        "told", lambda: any(each["message"] == fault for each in laptop.gatewright.logged())
    )
    assert laptop.gatewright.is_ready()
    assert _is_denied(laptop, namespace, 4)


def test_a_policy_object_in_the_cluster_is_in_force_immediately(
    laptop: Laptop, namespace: str
) -> None:
    """It denies from its creation to its deletion, like one in a file."""
    policy = STRICT.format(maximum=3, namespace=namespace)
    assert laptop.kubectl("apply", "-f-", input=policy).endswith("/strict-replicas created\n")
    laptop.gatewright.until("denied", lambda: _is_denied(laptop, namespace, 4))
    laptop.kubectl("delete", "clusteradmissionpolicy", "strict-replicas")
    laptop.gatewright.until("allowed", lambda: not _is_denied(laptop, namespace, 4))


def test_a_namespace_becomes_production_by_its_label(laptop: Laptop, namespace: str) -> None:
    """Policies apply from the moment a namespace has the label until it loses it."""
    assert not _is_denied(laptop, namespace, 11)
    laptop.kubectl("label", "namespace", namespace, "environment=production")
    laptop.gatewright.until("denied", lambda: _is_denied(laptop, namespace, 11))
    laptop.kubectl("label", "namespace", namespace, "environment-")
    laptop.gatewright.until("allowed", lambda: not _is_denied(laptop, namespace, 11))


def test_a_denied_child_shows_in_the_status_of_its_webapp(laptop: Laptop, namespace: str) -> None:
    """The WebApp's condition has the webhook's message about its Deployment."""
    laptop.kubectl("create", "-n", namespace, "-f-", input=manifests.webapp(image="nginx:1.21"))
    laptop.running(namespace, "shop")
    laptop.kubectl("label", "namespace", namespace, "environment=production")
    laptop.gatewright.until("denied", lambda: _is_denied(laptop, namespace, 11))
    laptop.kubectl("delete", "deployment/shop", "-n", namespace)
    laptop.wait("webapp/shop", "condition=Ready=False", namespace)
    laptop.wait(
        "webapp/shop",
        'jsonpath={.status.conditions[?(@.type=="Ready")].reason}=Forbidden',
        namespace,
    )
    conditions = laptop.get("webapp/shop", namespace)["status"]["conditions"]
    messages = [each["message"] for each in conditions if each["type"] == "Ready"]
    assert messages == [
        'failed to create deployment: admission webhook "validate-2.gatewright.io" denied the request: 1 violation '
        '- image-registries: spec.template.spec.containers[name=webapp].image: "nginx:1.21" comes from docker.io; '
        f"{APPROVED}"
    ]


def test_a_new_production_namespace_is_judged_immediately(laptop: Laptop) -> None:
    """No object is admitted unjudged between the namespace's creation and its first objects."""
    for _ in range(5):
        name = laptop.create_namespace(environment="production")
        code, _ = laptop.api.request(
            "POST",
            f"/apis/apps/v1/namespaces/{name}/deployments",
            manifests.deployment(replicas=11),
        )
        assert code == 403
        laptop.plane.delete_namespace(name)


PUBLISHED = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "webapp-validator"},
    "webhooks": [
        {
            "name": "validate.webapp.example.com",
            "rules": [
                {
                    "apiGroups": ["example.com"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["webapps"],
                }
            ],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
        }
    ],
}


@pytest.fixture(scope="module")
def bare(lent_plane: LentPlane) -> Iterator[Cluster]:
    """A cluster with the CRDs and namespace production, without Gatewright running."""
    with lent_plane.lend() as plane:
        plane.kubectl("apply", "-f", str(CONFIG / "crd/bases"))
        plane.kubectl("wait", "crd/webapps.example.com", "--for=condition=Established")
        plane.create_namespace("production")
        yield Cluster(plane)


def test_the_published_registration_works_with_another_client_config(
    bare: Cluster, tmp_path: Path
) -> None:
    """A webhook with a manually created pair answers at /validate-webapp."""
    pair = tmp_path / "pair"
    assert once("certs", str(pair)).returncode == 0
    policies = ("--policies", str(CONFIG / "policies/production.yaml"))
    options = (*policies, "--tls-cert", f"{pair}/tls.crt", "--tls-key", f"{pair}/tls.key")
    with Gatewright(bare.plane, tmp_path, "webhook", *options) as webhook:
        webhook.start()
        bundle = base64.b64encode((pair / "ca.crt").read_bytes()).decode()
        client_config = {"url": f"{webhook.url}/validate-webapp", "caBundle": bundle}
        webhooks = [PUBLISHED["webhooks"][0] | {"clientConfig": client_config}]
        bare.kubectl("create", "-f-", input=PUBLISHED | {"webhooks": webhooks})
        webhook.until(
            "denied",
            lambda: "denied the request" in _output_of(bare, manifests.webapp(image="nginx:1.21")),
        )
        line = f'image-registries: spec.image: "nginx:1.21" comes from docker.io; {APPROVED}'
        assert _output_of(bare, manifests.webapp(image="nginx:1.21")) == (
            'Error from server (Forbidden): error when creating "STDIN": admission webhook '
            f'"validate.webapp.example.com" denied the request: 1 violation\n- {line}\n'
        )
        assert _output_of(bare, manifests.webapp()) == "webapp.example.com/shop created\n"
        patch = '--patch={"spec":{"image":"nginx:1.21"}}'
        said = bare.refusal("patch", "webapp/shop", "-n", "production", "--type=merge", patch)
        assert (
            f'admission webhook "validate.webapp.example.com" denied the request: 1 violation\n- {line}\n'
            in said
        )
        bare.kubectl("delete", "validatingwebhookconfiguration", "webapp-validator")
        webhook.kill()  # a graceful end would wait for the API server's connections


def _output_of(cluster: Cluster, manifest: manifests.JsonObject) -> str:
    """Return kubectl's output for a creation in production."""
    result = cluster.plane.kubectl("create", "-n", "production", "-f-", input=manifest, check=False)
    return result.stdout + result.stderr


def test_a_graceful_end_leaves_nothing(bare: Cluster, tmp_path: Path) -> None:
    """SIGTERM ends `gatewright run --unregister` with 0; registration and process are gone, and creations work."""
    bare.kubectl("apply", "-f-", input=STRICT.format(maximum=3, namespace="elsewhere"))
    with Gatewright.run(
        bare.plane, tmp_path, policies=CONFIG / "policies/production.yaml"
    ) as gatewright:
        pid = gatewright.process.pid
        bare.refusal(
            "create", "-n", "production", "-f-", input=manifests.webapp("later", image="nginx:1.21")
        )
        assert gatewright.end() == 0
    assert registered(bare.plane) == set()
    assert not Path(f"/proc/{pid}").exists()
    configurations = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
    assert bare.kubectl("get", configurations) == ""
    bare.kubectl(
        "create", "-n", "production", "-f-", input=manifests.webapp("later", image="nginx:1.21")
    )


def test_a_kept_registration_denies_after_the_end(bare: Cluster, tmp_path: Path) -> None:
    """By default nothing is admitted unjudged until it runs again, and the last line says how to end that."""
    policies = ("--policies", str(CONFIG / "policies/production.yaml"))
    create = ("create", "-n", "production", "-f-")
    bad = manifests.webapp("kept", image="nginx:1.21")
    with Gatewright(bare.plane, tmp_path, "run", *policies) as kept:
        kept.start().until("registered", lambda: registered(bare.plane) == {"validate", "mutate"})
        assert kept.end() == 0
        unregister = f"unregister --kubeconfig={bare.plane.kubeconfig}"
        assert kept.logged()[-1]["message"] == (
            "the webhook stays registered: until the next start, what policies judge is denied;"
            f" to unregister it: gatewright {unregister}"
        )
        assert registered(bare.plane) == {"validate", "mutate"}
        said = bare.refusal(*create, input=bad)
        assert 'failed calling webhook "' in said
        assert "connection refused" in said
        kept.start()
        verdict = "denied the request: 1 violation\n- image-registries: "
        # The API server may have the certificate authority of the first start for some moments.
        kept.until("denied", lambda: verdict in bare.refusal(*create, input=bad))
    assert once(*unregister.split()).returncode == 0
    assert registered(bare.plane) == set()
    assert bare.kubectl(*create, input=bad) == "webapp.example.com/kept created\n"
    bare.kubectl("delete", "webapp/kept", "-n", "production")


def test_run_uses_exceptions_of_its_namespace(bare: Cluster, tmp_path: Path) -> None:
    """`--namespace` names the namespace whose exceptions apply to cluster policies, as in an installation."""
    bare.plane.create_namespace("gatewright-system")
    bare.kubectl("apply", "-f-", input=STRICT.format(maximum=3, namespace="elsewhere"))
    options = ("--namespace", "gatewright-system")
    with Gatewright.run(
        bare.plane, tmp_path, *options, policies=CONFIG / "policies/production.yaml"
    ):
        for namespace, ready in (("gatewright-system", "True"), ("production", "False")):
            bare.kubectl("apply", "-n", namespace, "-f-", input=EXCEPTION)
            condition = f"--for=condition=Ready={ready}"
            bare.kubectl(
                "wait", "policyexception/moving", "-n", namespace, condition, "--timeout=90s"
            )


def test_a_policy_that_widens_what_is_sent_warns_at_apply_and_in_its_status(
    laptop: Laptop,
) -> None:
    """With one label too many; its status says so too, until it is deleted."""

    def by_label(number: int) -> dict[str, Any]:
        clause = {"namespaceSelector": {"matchLabels": {f"key-{number}": "x"}}}
        return {
            "apiVersion": "gatewright.io/v1alpha1",
            "kind": "ClusterAdmissionPolicy",
            "metadata": {"name": f"by-label-{number}", "labels": {"test": "widened"}},
            "spec": {"policy": "naked-pods", "match": {"any": [clause]}},
        }

    def narrow(name: str) -> str:
        policy = laptop.api.get(f"/apis/gatewright.io/v1alpha1/clusteradmissionpolicies/{name}")
        conditions = policy.get("status", {}).get("conditions", [])
        return "".join(each["status"] for each in conditions if each["type"] == "Narrow")

    many = {"apiVersion": "v1", "kind": "List", "items": [by_label(each) for each in range(20)]}
    widening = by_label(20)
    clauses = widening["spec"]["match"]["any"]
    clauses += [by_label(each)["spec"]["match"]["any"][0] for each in range(21, 40)]
    try:
        applied = laptop.plane.kubectl("apply", "-f-", input=json.dumps(many))
        assert "policy-impact" not in applied.stderr
        ready = ("-l", "test=widened", "--for=condition=Ready", "--timeout=90s")
        laptop.kubectl("wait", "clusteradmissionpolicies", *ready)
        assert narrow("by-label-0") == ""
        applied = laptop.plane.kubectl("apply", "-f-", input=json.dumps(widening))
        assert "policy-impact: spec.match: requests from more namespaces than by-label-20, " in (
            applied.stderr
        )
        laptop.gatewright.until("widened", lambda: narrow("by-label-20") == "False")
    finally:
        laptop.kubectl("delete", "clusteradmissionpolicies", "-l", "test=widened")
