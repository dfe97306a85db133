"""Both processes work with their rights, and the controller has no unused right."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from controller.reconcilers import planned_kinds
from kube.resource import JsonObject
from tests.config.everything import BEFORE, CHANGES, MORE
from tests.controlplane.audit import WRITES
from tests.controlplane.plane import ControlPlane
from tests.gatewright.started import Gatewright, registered

CONFIG = Path(__file__).parents[2] / "config"
OURS = "gatewright-system"
CONTROLLER = f"system:serviceaccount:{OURS}:gatewright-controller-manager"
TLS = "gatewright-webhook-tls"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
ACCOUNTS = ("controller-manager", "webhook")
Right = tuple[str, str, str]  # group, resource, verb
# Only for granting it to the accounts of databases: an account may grant only the rights that it has.
GRANTED = {("", "pods", "patch")}

# The admission plugin OwnerReferencesPermissionEnforcement, if enabled, requires the right to update finalizers of an
# owner with blockOwnerDeletion; the audit log does not show that.
BLOCKING = "finalizers"


@pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")
def test_every_write_right_is_used_and_none_is_missing(
    own_control_plane: Callable[..., ControlPlane], tmp_path: Path
) -> None:
    """While all samples are created, changed and deleted, no request is forbidden, and every granted verb is used."""
    plane = own_control_plane()
    for directory in ("crd/bases", "rbac", "manager"):
        plane.kubectl("apply", "-f", str(CONFIG / directory))
    webhook, controller = prepared(plane, tmp_path)
    with ExitStack() as ending:
        for process in (webhook, controller):
            ending.callback(process.close)
            ending.callback(process.process.kill)
        webhook.launch()
        assert f"certificate: Secret {OURS}/{TLS}: does not exist" in unready(webhook)
        controller.process.start()
        webhook.until("ready", webhook.is_ready)
        controller.until("registered", lambda: registered(plane) == {"validate", "mutate"})
        apply(plane, BEFORE)
        for path in ("samples", "policies/production.yaml"):
            plane.kubectl("apply", "-f", str(CONFIG / path))
        apply(plane, MORE)
        made = [each for each in ours() if each != "webapp/taken"]
        plane.kubectl("wait", "--for=condition=Ready", *made, "--timeout=120s")
        for what, patch, gone in CHANGES:
            for resource in (
                gone
            ):  # those of optional kinds come when the kind is discovered, and are no part of Ready
                plane.kubectl("wait", "--for=create", resource, "--timeout=90s")
            plane.kubectl("patch", what, "--type=merge", "-p", json.dumps(patch))
            if gone:
                plane.kubectl("wait", "--for=delete", *gone, "--timeout=90s")
        passing = ("postgresql/short-lived", "appstack/short-lived", "ecommerceplatform/brief")
        plane.kubectl("delete", *passing, "--timeout=60s")
        leftover = granted() - used(plane)
        assert leftover == GRANTED, plane.kubectl("get", "all").stdout
        assert refused(plane) == []
        assert secrets_read_by_the_webhook(plane) == {TLS}


def granted() -> set[Right]:
    """Return the role's verbs other than reading."""
    rules = yaml.safe_load((CONFIG.parent / "charts/gatewright/files/rbac.yaml").read_text())[
        "controller"
    ]
    return {
        (rule["apiGroups"][0], resource, verb)
        for rule in rules
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb in WRITES and not resource.endswith(f"/{BLOCKING}")
    }


def used(plane: ControlPlane) -> set[Right]:
    """Return the controller's writes; an apply that creates needs the create verb too."""
    return {
        (
            about.get("apiGroup", ""),
            "/".join(filter(None, (about["resource"], about.get("subresource")))),
            verb,
        )
        for event in plane.audit_events()
        if event["user"]["username"] == CONTROLLER and event["verb"] in WRITES
        for about in [event["objectRef"]]
        for verb in (
            [event["verb"], "create"] if event["responseStatus"]["code"] == 201 else [event["verb"]]
        )
    }


def apply(plane: ControlPlane, objects: list[JsonObject]) -> None:
    """Apply objects as kubectl does."""
    plane.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(objects))


def ours() -> Iterator[str]:
    """Return the custom objects of the samples and of this test, as kubectl names them."""
    samples = [
        document
        for path in (CONFIG / "samples").glob("*.yaml")
        for document in yaml.safe_load_all(path.read_text())
    ]
    for sample in (*samples, *MORE):
        if sample["kind"] in {kind.resource.kind for kind in planned_kinds()}:
            yield f"{sample['kind'].lower()}/{sample['metadata']['name']}"


def prepared(plane: ControlPlane, directory: Path) -> tuple[Gatewright, Gatewright]:
    """Return both processes, each with its ServiceAccount's kubeconfig and its pod's policies."""
    accounts = {
        name: plane.service_account_kubeconfig(OURS, f"gatewright-{name}") for name in ACCOUNTS
    }
    policies = ("--policies-config-map", "gatewright-policies")
    data = {"data": {"preset.yaml": (CONFIG / "policies/production.yaml").read_text()}}
    patch = ("--type=merge", "-p", json.dumps(data))
    plane.kubectl("patch", "configmap", policies[1], "-n", OURS, *patch)
    webhook = Gatewright(
        plane, directory, "webhook", *policies, "--tls-secret", TLS, kubeconfig=accounts["webhook"]
    )
    at = ("--webhook-url", webhook.url.replace("127.0.0.1", "localhost"))
    return webhook, Gatewright(
        plane, directory, "controller", *policies, *at, kubeconfig=accounts["controller-manager"]
    )


def unready(process: Gatewright) -> str:
    """Return the text of /readyz after the first look-up of the certificate."""
    process.until("looked", lambda: "not read yet" not in process.get("/readyz")[1])
    return process.get("/readyz")[1]


def secrets_read_by_the_webhook(plane: ControlPlane) -> set[str]:
    """Return the names of the Secrets that the webhook's account may list, of all that exist."""
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{OURS}", "system:authenticated"]
    user = {"user": f"system:serviceaccount:{OURS}:gatewright-webhook", "groups": groups}

    def may(verb: str, name: str) -> bool:
        what = {"namespace": OURS, "verb": verb, "resource": "secrets", "name": name}
        review = {"spec": user | {"resourceAttributes": what}}
        _, answer = plane.api.request("POST", ACCESS_REVIEWS, review)
        return bool(json.loads(answer)["status"]["allowed"])

    found = plane.kubectl(
        "get", "secrets", "-n", OURS, "-o=jsonpath={.items[*].metadata.name}"
    ).stdout.split()
    assert {"gatewright-ca", TLS} <= set(found)
    verbs = ("get", "list", "watch", "create", "update", "patch", "delete")
    allowed = {(verb, name) for name in (*found, "") for verb in verbs if may(verb, name)}
    assert {verb for verb, _ in allowed} == {"list", "watch"}
    return {name for _, name in allowed}


def refused(plane: ControlPlane) -> list[tuple[str, str]]:
    """Return the forbidden requests of Gatewright's ServiceAccounts."""
    return [
        (event["verb"], event["requestURI"])
        for event in plane.audit_events()
        if event["user"]["username"].startswith(f"system:serviceaccount:{OURS}:")
        and event["responseStatus"]["code"] == 403
    ]
