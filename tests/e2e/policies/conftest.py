"""An installation with two replicas of the webhook, and policies as objects of the cluster."""

import base64
import json
import secrets
import shutil
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from kube.resource import JsonObject
from tests.controlplane.plane import ControlPlane
from tests.e2e.conftest import CONFIG, Cluster
from tests.gatewright.started import Gatewright, registered
from tests.waiting import WITHIN, until
from webhook.server.cluster_policies import CLUSTER_POLICY, EXCEPTION, RESOURCES

HOME = "gatewright-system"
OBJECTS = {each.kind: each for each in RESOURCES}
REGISTRATION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/gatewright"
API_VERSION = "gatewright.io/v1alpha1"
ROLLOUT = "rollouts.argoproj.io/v1alpha1/Rollout=spec.template.spec"
TEAM_LABELS = '''\
"""Pods say whose they are."""

from gatewright.policy import Params, Policy, Violation


def validate(request, params):
    """Find no pods."""
    if request.fields("metadata").fields("labels").string("team") is None:
        yield Violation("metadata.labels", "team missing", "pods belong to a team", "add the label")


POLICY = Policy("team-labels", validate=validate, kinds="pods")
'''
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
ROLLOUTS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "rollouts.argoproj.io"},
    "spec": {
        "group": "argoproj.io",
        "scope": "Namespaced",
        "names": {
            "plural": "rollouts",
            "singular": "rollout",
            "kind": "Rollout",
            "listKind": "RolloutList",
        },
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": OPEN},
            }
        ],
    },
}


@dataclass(frozen=True)
class Installation(Cluster):
    """A cluster with two webhooks, of which the API server calls the first, and a controller, with their RBAC."""

    webhooks: tuple[Gatewright, Gatewright]
    controller: Gatewright

    def until(self, what: str, sign: Callable[[], object]) -> None:
        """Poll until a condition holds or the time is up."""
        until(sign, within=WITHIN, problem=lambda: what)

    def generations(self, object: JsonObject) -> list[int | None]:
        """Return the generation of a policy object that each replica has in force."""
        metadata = object["metadata"]
        key = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
        line = f'gatewright_policy_generation{{kind="{object["kind"]}",name="{key}"}} '
        return [_value(webhook.metrics_url, line) for webhook in self.webhooks]

    def apply(self, *objects: JsonObject) -> None:
        """Apply policy objects, and wait until every replica has them in force."""
        for object in objects:
            stored = json.loads(self.kubectl("apply", "-f-", "-o=json", input=object))
            generation = stored["metadata"]["generation"]
            self.until(
                "in force",
                lambda it=object, wanted=generation: self.generations(it) == [wanted] * 2,
            )

    def denied(self, namespace: str, object: JsonObject) -> bool:
        """Whether the API server denies a dry run of a creation."""
        plural = f"{object['kind'].lower()}s"
        root = (
            f"apis/{object['apiVersion']}"
            if "/" in object["apiVersion"]
            else f"api/{object['apiVersion']}"
        )
        path = f"/{root}/namespaces/{namespace}/{plural}?dryRun=All"
        code, answer = self.api.request("POST", path, object)
        assert code in (201, 403), answer
        return code == 403

    def ready(self, object: JsonObject) -> tuple[str, str, str]:
        """Return status, reason and message of the condition Ready, once it is about the current generation."""
        metadata = object["metadata"]
        path = OBJECTS[object["kind"]].path(metadata.get("namespace"), metadata["name"])
        found: list[JsonObject] = []

        def told() -> bool:
            stored = self.api.get(path)
            status = stored.get("status", {})
            found[:] = status.get("conditions", [])
            return status.get("observedGeneration") == stored["metadata"]["generation"]

        self.until("told in the status", told)
        (condition,) = found
        return condition["status"], condition["reason"], condition["message"]

    def rules(self) -> set[tuple[str, str, str]]:
        """Return the rules of the validating webhook: group, resource and operation."""
        configuration = self.api.get(REGISTRATION)
        return {
            (group, resource, operation)
            for webhook in configuration.get("webhooks", [])
            for rule in webhook["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for operation in rule["operations"]
        }

    def review(self, webhook: Gatewright, body: JsonObject) -> tuple[int, bytes]:
        """Send a review to one replica."""
        configuration = self.api.get(REGISTRATION)
        bundle = base64.b64decode(configuration["webhooks"][0]["clientConfig"]["caBundle"]).decode()
        return post(webhook, body, ssl.create_default_context(cadata=bundle))


def post(webhook: Gatewright, body: JsonObject, trust: ssl.SSLContext) -> tuple[int, bytes]:
    """Send a review to a webhook; return status and body."""
    url = f"{webhook.url.replace('127.0.0.1', 'localhost')}/validate"
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust)
    )
    try:
        with opener.open(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def _value(url: str, line: str) -> int | None:
    with urllib.request.urlopen(url, timeout=60) as answer:
        found = [each for each in answer.read().decode().splitlines() if each.startswith(line)]
    return int(float(found[0].rpartition(" ")[2])) if found else None


@pytest.fixture(scope="package")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The plain manifests, the processes with their ServiceAccounts' RBAC, and a team's own policy and kind."""
    directory = tmp_path_factory.mktemp("installation")
    parts = ("etcd", "kube-apiserver", "kube-controller-manager")
    with (
        ControlPlane.start(directory / "controlplane", parts=parts) as plane,
        ExitStack() as ending,
    ):
        for manifests in ("crd/bases", "rbac", "manager"):
            plane.kubectl("apply", "-f", str(CONFIG / manifests))
        plane.kubectl("apply", "-f-", input=ROLLOUTS)
        plane.kubectl("wait", "crd", "--all", "--for=condition=Established")
        accounts = {
            name: plane.service_account_kubeconfig(HOME, f"gatewright-{name}")
            for name in ("webhook", "controller-manager")
        }
        (directory / "team").mkdir()
        (directory / "team" / "team_labels.py").write_text(TEAM_LABELS)
        team = ("--policies-dir", str(directory / "team"), "--pod-kinds", ROLLOUT)
        pair = ("--tls-cert", str(directory / "tls.crt"), "--tls-key", str(directory / "tls.key"))
        one, two = (
            Gatewright(plane, directory, "webhook", *pair, *team, kubeconfig=accounts["webhook"])
            for _ in range(2)
        )
        at = ("--webhook-url", one.url.replace("127.0.0.1", "localhost"), "--namespace", HOME)
        controller = Gatewright(
            plane, directory, "controller", *at, *team, kubeconfig=accounts["controller-manager"]
        )
        for process in (one, two, controller):
            ending.callback(process.close)
            ending.callback(
                process.kill
            )  # on SIGTERM, a webhook waits for the API server to close its connections
        controller.process.start()
        plane.kubectl(
            "wait", "--for=create", "secret/gatewright-webhook-tls", "-n", HOME, "--timeout=90s"
        )
        secret = json.loads(
            plane.kubectl("get", "secret", "gatewright-webhook-tls", "-n", HOME, "-o=json").stdout
        )
        for name, value in secret["data"].items():
            (directory / name).write_bytes(base64.b64decode(value))
        for webhook in (one, two):
            webhook.start()
        controller.until("registered", lambda: "validate" in registered(plane))
        yield Installation(plane, (one, two), controller)
        for process in (one, two, controller):
            assert process.tracebacks() == []
        ours = f"system:serviceaccount:{HOME}:gatewright-"
        events = [
            event for event in plane.audit_events() if event["user"]["username"].startswith(ours)
        ]
        assert [
            event["requestURI"] for event in events if event["responseStatus"]["code"] == 403
        ] == []
    shutil.rmtree(plane.directory / "etcd")


@pytest.fixture(autouse=True)
def cleared(installation: Installation) -> Iterator[None]:
    """Delete all cluster policies and exceptions after each test."""
    yield
    for resource, namespace in ((CLUSTER_POLICY, None), (EXCEPTION, HOME)):
        code, answer = installation.api.request("DELETE", resource.path(namespace))
        assert code == 200, answer


@pytest.fixture
def namespace(installation: Installation) -> Iterator[str]:
    """A new namespace."""
    name = f"e2e-{secrets.token_hex(4)}"
    installation.plane.create_namespace(name)
    yield name
    installation.plane.delete_namespace(name)


def few(namespace: str, maximum: int = 3, *, name: str = "few", **spec: Any) -> JsonObject:
    """Return a cluster policy that allows this many replicas in one namespace."""
    match = {"any": [{"namespaces": [namespace]}]}
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"policy": "replica-limits", "params": {"maximum": maximum}, "match": match} | spec,
    }


def tenants(namespace: str, maximum: int = 1) -> JsonObject:
    """Return a tenant's policy that allows this many replicas."""
    return {
        "apiVersion": API_VERSION,
        "kind": "AdmissionPolicy",
        "metadata": {"name": "own", "namespace": namespace},
        "spec": {"policy": "replica-limits", "params": {"maximum": maximum, "tier": "our"}},
    }


def exception(
    namespace: str = HOME, expires: str = "2099-01-01T00:00:00Z", **entry: Any
) -> JsonObject:
    """Return an exception from the cluster policy."""
    return {
        "apiVersion": API_VERSION,
        "kind": "PolicyException",
        "metadata": {"name": "why-not", "namespace": namespace},
        "spec": {"reason": "moving", "expires": expires, "exceptions": [{"policy": "few"} | entry]},
    }


def too_many(found: int, maximum: int, *, name: str = "few", tier: str = "production") -> str:
    """Return the violation of too many replicas."""
    rule = f"{tier} workloads cannot exceed {maximum} replicas. Set it to {maximum} or less."
    return f"{name}: spec.replicas: {found}; {rule}"
