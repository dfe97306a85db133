"""Webhook and controller as separate processes with the shipped rights: started, killed, restarted."""

import json
from collections.abc import Iterator

import pytest

from kube.resource import JsonObject
from tests.e2e import manifests
from tests.e2e.installation import (
    CONTROLLER,
    OURS,
    PRODUCTION,
    SERVICES,
    TLS,
    Installation,
    install,
)
from tests.gatewright.started import registered

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

SHORT_LEASE = ("--lease-duration=12s", "--renew-deadline=10s", "--retry-period=500ms")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation whose processes are not started; at the end, no request was forbidden."""
    with install(tmp_path_factory.mktemp("installed"), *SHORT_LEASE) as installation:
        yield installation
        forbidden = [
            event["requestURI"]
            for event in installation.plane.audit_events()
            if event["responseStatus"]["code"] == 403
            and event["user"]["username"].startswith(CONTROLLER[:39])
        ]
        assert forbidden == []


@pytest.fixture
def running(installed: Installation) -> Installation:
    """The installation with both processes running, whatever an earlier test did."""
    installed.bring_up()
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


def webhooks(running: Installation) -> list[JsonObject]:
    """Return the rules for which the API server calls the webhook."""
    kind = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    return [each["rules"] for each in running.api.get(f"{kind}/gatewright").get("webhooks", [])]


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
