"""Webhook and controller as separate processes with the shipped rights: started, killed, restarted."""

import json
import shutil
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from tests.controlplane.audit import WRITES
from tests.controlplane.plane import ControlPlane
from tests.e2e import manifests
from tests.e2e.attempts import attempts
from tests.e2e.conftest import CONFIG, Cluster
from tests.gatewright.started import Gatewright, registered

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

OURS = "gatewright-system"
TLS = "gatewright-webhook-tls"
CONTROLLER = f"system:serviceaccount:{OURS}:gatewright-controller-manager"
PRODUCTION = (CONFIG / "policies/production.yaml").read_text()
SERVICES = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: services}
spec:
  policy: service-types
  match: {any: [{namespaces: [production]}]}
"""
POLICIES = ("--policies-config-map", "gatewright-policies")
SHORT_LEASE = ("--lease-duration=12s", "--renew-deadline=10s", "--retry-period=500ms")
BOTH = {"validate", "mutate"}


@dataclass(frozen=True)
class Installation(Cluster):
    """A cluster with Gatewright installed."""

    webhook: Gatewright
    controller: Gatewright

    def served_certificate(self) -> str:
        """Return the certificate that the webhook serves."""
        address = urlsplit(self.webhook.url)
        assert address.hostname is not None
        assert address.port is not None
        return ssl.get_server_certificate((address.hostname, address.port))

    def write_policies(self, text: str) -> None:
        """Write the policies' ConfigMap, as an upgrade of the chart does."""
        patch = json.dumps({"data": {"preset.yaml": text}})
        self.kubectl(
            "patch", "configmap", "gatewright-policies", "-n", OURS, "--type=merge", "-p", patch
        )

    def is_registered(self) -> bool:
        """Return whether the API server calls the webhook."""
        return registered(self.plane) == BOTH

    def kill(self) -> None:
        """Kill both processes."""
        self.webhook.kill()
        self.controller.kill()

    def start(self) -> None:
        """Start both."""
        self.webhook.start()
        self.controller.start()

    def create(self, namespace: str, manifest: manifests.JsonObject) -> None:
        """Create an object."""
        self.kubectl("create", "-n", namespace, "-f-", input=manifest)

    def writes(self, since: int) -> Counter[str]:
        """Count the controller's writes since a mark, except its Lease and events."""
        events = self.plane.audit_events(since, user=CONTROLLER, verb=WRITES)
        about = [(event["verb"], event["objectRef"]) for event in events]
        return Counter(
            f"{verb} {each['resource']}"
            + (f"/{each['subresource']}" if "subresource" in each else "")
            for verb, each in about
            if each["resource"] not in ("leases", "events")
        )

    def reconciled(self) -> Counter[str]:
        """Count the controller's reconciles of each WebApp."""
        lines = self.controller.logged()
        completed = [line for line in lines if line["message"] == "Reconciliation completed"]
        return Counter(line["webapp.name"] for line in completed if "webapp.name" in line)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation from the plain manifests whose processes are not started; the test simulates the pods."""
    directory = tmp_path_factory.mktemp("installed")
    pair = ("--tls-secret", TLS)
    with ControlPlane.start(directory / "controlplane") as plane:
        for part in ("crd/bases", "rbac", "manager"):
            plane.kubectl("apply", "-f", str(CONFIG / part))
        plane.create_namespace("production")
        users = {
            name: plane.service_account_kubeconfig(OURS, f"gatewright-{name}")
            for name in ("webhook", "controller-manager")
        }
        webhook = Gatewright(
            plane, directory, "webhook", *POLICIES, *pair, kubeconfig=users["webhook"]
        )
        options = (*POLICIES, *SHORT_LEASE, "--webhook-url", webhook.url)
        controller = Gatewright(
            plane, directory, "controller", *options, kubeconfig=users["controller-manager"]
        )
        with webhook, controller:
            installation = Installation(plane, webhook, controller)
            installation.write_policies(PRODUCTION)
            yield installation
            installed_logs = webhook.tracebacks() + controller.tracebacks()
            webhook.kill()  # a graceful end would wait for the API server's connections
        assert installed_logs == []
        forbidden = [
            event for event in plane.audit_events() if event["responseStatus"]["code"] == 403
        ]
        ours = [
            event["requestURI"]
            for event in forbidden
            if event["user"]["username"].startswith(CONTROLLER[:39])
        ]
        assert ours == []
    shutil.rmtree(plane.directory / "etcd")


@pytest.fixture
def running(installed: Installation) -> Installation:
    """The installation with both processes running, whatever an earlier test did."""
    for process in (installed.controller, installed.webhook):
        if process.process.pid is None:
            process.launch()
    installed.webhook.until("ready", installed.webhook.is_ready)
    installed.controller.until("ready", installed.controller.is_ready).until(
        "registered", installed.is_registered
    )
    return installed


def test_s8_the_first_start_blocks_no_request(installed: Installation) -> None:
    """S8: the webhook is registered only once it answers with a trusted certificate."""
    installed.controller.launch()
    warned = "not registered yet: no webhook answers"
    installed.controller.until(
        "waiting for the webhook",
        lambda: any(line["message"] == warned for line in installed.controller.logged()),
    )
    assert registered(installed.plane) == set()
    assert (
        f"[-] registration: {installed.webhook.url} cannot be reached: "
        in (installed.controller.get("/readyz")[1])
    )
    installed.create("production", manifests.deployment("early", image="nginx:1.21"))
    installed.webhook.start()
    installed.controller.until("registered", installed.is_registered)
    installed.controller.until("ready", installed.controller.is_ready)
    said = installed.refusal(
        "create", "-n", "production", "-f-", input=manifests.deployment(image="nginx:1.21")
    )
    assert 'admission webhook "validate.gatewright.io" denied the request: 1 violation\n' in said


def test_a_new_certificate_is_served_without_a_kubelet(running: Installation) -> None:
    """The controller replaces a Secret that is deleted, and the webhook serves what it finds there."""
    before = running.served_certificate()
    running.kubectl("delete", "secret", TLS, "-n", OURS)
    running.webhook.until("renewed", lambda: running.served_certificate() != before)
    assert running.webhook.is_ready()
    refused = manifests.deployment(image="nginx:1.21")
    assert "denied the request" in running.refusal(
        "create", "-n", "production", "-f-", input=refused
    )


def test_changed_policies_are_in_force_without_a_kubelet(running: Installation) -> None:
    """The webhook judges by them, the registration follows, and /readyz names the version in force."""
    before, early = policies_line(running), webhooks(running)
    running.write_policies(f"{PRODUCTION}---\n{SERVICES}")
    running.webhook.until("changed", lambda: policies_line(running) != before)
    running.controller.until("changed", lambda: webhooks(running) != early)
    running.write_policies("# nothing\n")
    refused = (
        "a newer set cannot be used: ConfigMap gatewright-system/gatewright-policies: preset.yaml"
    )
    running.webhook.until("refused", lambda: refused in policies_line(running))
    assert running.webhook.is_ready()
    running.write_policies(PRODUCTION)
    running.webhook.until("restored", lambda: policies_line(running) == before)
    running.controller.until("restored", lambda: webhooks(running) == early)


CASES = """\
policies: preset.yaml
cases:
  - name: many
    namespace: production
    object: {kind: Deployment, spec: {replicas: 99}}
    expect: allowed
"""


def test_a_failed_case_of_a_config_map_is_an_event_about_it(running: Installation) -> None:
    """The policies before stay in force; `kubectl describe configmap` says why."""
    about = ("-n", OURS, "--type=merge", "-p")
    patch = ("patch", "configmap", "gatewright-policies", *about)
    running.kubectl(*patch, json.dumps({"data": {"cases.yaml": CASES}}))
    described: list[str] = []

    def is_described() -> bool:
        described[:] = running.kubectl(
            "describe", "configmap", "gatewright-policies", "-n", OURS
        ).splitlines()
        return any("CaseFailed" in line for line in described)

    running.controller.until("described", is_described)
    (line,) = (each for each in described if "CaseFailed" in each)
    assert line.split()[:2] == ["Warning", "CaseFailed"]
    assert 'case "many": expected allowed, got denied with code 403' in line
    running.kubectl(*patch, json.dumps({"data": {"cases.yaml": None}}))


def policies_line(running: Installation) -> str:
    """Return what the webhook reports about its policies."""
    lines = running.webhook.get("/readyz")[1].splitlines()
    (line,) = (line for line in lines if line.startswith("[+] policies: "))
    return line


def webhooks(running: Installation) -> str:
    """Return the rules for which the API server calls the webhook."""
    return running.kubectl(
        "get", "validatingwebhookconfiguration", "gatewright", "-o=jsonpath={.webhooks[*].rules}"
    )


def test_the_number_of_writes_is_minimal(running: Installation) -> None:
    """N WebApps of one replica cost 2N writes of children and 2N of statuses, then none, also after restarts."""
    namespace = running.create_namespace()
    names = [f"shop-{number}" for number in range(10)]
    manifest = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [manifests.webapp(name) for name in names],
    }
    mark = running.plane.audit_mark()
    running.kubectl("apply", "-n", namespace, "-f-", input=manifest)
    running.running(namespace, *names)
    assert running.writes(mark) == {
        "patch deployments": 10,
        "patch services": 10,
        "patch webapps/status": 20,
    }

    mark = running.plane.audit_mark()
    assert (
        running.kubectl("apply", "-n", namespace, "-f-", input=manifest).count(" unchanged\n") == 10
    )
    before = running.reconciled()
    running.kubectl("annotate", "webapps", "--all", "seen=yes", "-n", namespace)
    running.controller.until(
        "looked at", lambda: all(running.reconciled()[name] > before[name] for name in names)
    )
    assert running.writes(mark) == {}

    assert running.controller.end() == 0
    mark, before = running.plane.audit_mark(), running.reconciled()
    running.controller.start()
    running.controller.until(
        "looked at", lambda: all(running.reconciled()[name] > before[name] for name in names)
    )
    assert running.writes(mark) == {}


def test_s8_webapps_created_while_the_controller_is_down_are_reconciled(
    running: Installation,
) -> None:
    """S8: the running webhook judges them, and the restarted controller creates their children."""
    namespace = running.create_namespace()
    running.create(namespace, manifests.webapp("changed", image="nginx:1.21"))
    running.running(namespace, "changed")
    running.controller.kill()
    running.create(namespace, manifests.webapp("new", image="nginx:1.21"))
    running.kubectl("scale", "webapp/changed", "--replicas=2", "-n", namespace)
    assert "1 violation" in running.refusal(
        "create", "-n", "production", "-f-", input=manifests.webapp(image="nginx:1.21")
    )
    running.controller.start()
    running.running(namespace, "new")
    running.wait("deployment/changed", "jsonpath={.status.readyReplicas}=2", namespace)


def _failed_calling(installed: Installation, verb: str, seconds: int) -> str:
    url = installed.webhook.url
    return (
        'Error from server (InternalError): error when creating "STDIN": Internal error occurred: failed calling '
        f'webhook "{verb}.gatewright.io": failed to call webhook: Post "{url}/{verb}?timeout={seconds}s": dial tcp '
        f"{url.removeprefix('https://')}: connect: connection refused\n"
    )


def test_s8_while_both_are_down_nothing_is_admitted_unjudged(running: Installation) -> None:
    """S8: creations in scope are denied by the API server, other requests work, and nothing is lost."""
    namespace = running.create_namespace()
    for name in ("kept", "childless", "doomed"):
        running.create(namespace, manifests.webapp(name, image="nginx:1.21"))
    running.running(namespace, "kept", "childless", "doomed")
    before = running.get("deployment/kept", namespace)["metadata"]["uid"]

    running.kill()

    for where in ("production", namespace):
        create = ("create", "-n", where, "-f-")
        assert running.refusal(*create, input=manifests.webapp("late")) == _failed_calling(
            running, "mutate", 1
        )
        running.kubectl("create", "configmap", "notes", "-n", where)
    late = running.refusal("create", "-n", "production", "-f-", input=manifests.deployment("late"))
    assert late == _failed_calling(running, "validate", 3)
    running.create(namespace, manifests.deployment("unjudged", image="nginx:1.21"))
    running.wait("deployment/unjudged", "condition=Available", namespace)
    running.kubectl("delete", "deployment/unjudged", "--cascade=foreground", "-n", namespace)
    running.create("kube-system", manifests.deployment("addon", image="nginx:1.21"))
    running.wait("deployment/addon", "condition=Available", "kube-system")
    running.kubectl("delete", "webapp/doomed", "-n", namespace)
    running.kubectl("delete", "deployment/childless", "service/childless", "-n", namespace)

    running.start()

    running.create(namespace, manifests.webapp("late", image="nginx:1.21"))
    running.running(namespace, "late", "kept")
    running.wait("deployment/childless", "create", namespace)
    running.wait("service/childless", "create", namespace)
    running.running(namespace, "childless")
    running.wait("deployment/doomed", "delete", namespace)
    running.wait("service/doomed", "delete", namespace)
    left = running.kubectl(
        "get", "webapps,deployments,services", "-n", namespace, "-o=name"
    ).split()
    assert [each.rpartition("/")[2] for each in left] == ["childless", "kept", "late"] * 3
    assert running.get("deployment/kept", namespace)["metadata"]["uid"] == before


def edit_the_authority(running: Installation) -> None:
    """Write something into the CA's Secret that is no certificate."""
    patch = json.dumps({"data": {"ca.crt": "Z2FyYmFnZQ==", "tls.crt": "Z2FyYmFnZQ=="}})
    running.kubectl("patch", "secret", "gatewright-ca", "-n", OURS, "--type=merge", "-p", patch)


def delete_the_kinds(running: Installation) -> None:
    """Delete the CRDs of policies, and make them again."""
    names = ("clusteradmissionpolicies", "admissionpolicies", "policyexceptions")
    crds = [f"crd/{name}.gatewright.io" for name in names]
    running.kubectl("delete", *crds)
    running.kubectl("apply", "-f", str(CONFIG / "crd/bases"))
    running.kubectl("wait", "--for=condition=Established", *crds)


def is_denied(running: Installation, namespace: str) -> bool:
    """Return whether a Service that the policy `services` denies is denied there."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "open"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    }
    create = ("create", "--dry-run=server", "-n", namespace, "-f-")
    return "denied the request" in running.plane.kubectl(*create, input=service, check=False).stderr


@pytest.mark.parametrize("happens", [edit_the_authority, delete_the_kinds])
def test_bad_luck_admits_nothing(
    running: Installation, happens: Callable[[Installation], None]
) -> None:
    """While it happens, no bad object is admitted; afterwards all goes on as before, with new policies too."""
    namespace = running.create_namespace()
    with attempts(running.api) as found:
        happens(running)
        for each in (running.webhook, running.controller):
            each.until("ready", each.is_ready)
        denials = found[403]
        running.webhook.until("denied", lambda: found[403] > denials)
        policy = SERVICES.replace("production", namespace)
        running.kubectl("apply", "-f-", input=policy)
        running.kubectl(
            "wait", "clusteradmissionpolicy/services", "--for=condition=Ready", "--timeout=60s"
        )
        running.create(namespace, manifests.webapp("shop", image="nginx:1.21"))
        running.running(namespace, "shop")
        running.webhook.until("denies", lambda: is_denied(running, namespace))
    running.kubectl("delete", "clusteradmissionpolicy/services")
    assert [code for code in found if 200 <= code < 300] == []
