"""The image: its size, the files that it must not contain, and commands that need a kubeconfig, run in its pods."""

import base64
import json
import re
from typing import Any

import pytest
import yaml

from tests.node import buildah, images
from tests.node.conftest import Figures
from tests.node.node import Node

pytestmark = [pytest.mark.node, pytest.mark.long]

MOST = 200_000_000
CHECK = ("check", "--policies", "/kube/policies.yaml", "--kubeconfig", "/kube/config")


def test_the_image_is_small(node: Node, figure: Figures) -> None:
    """All its layers together, those of the base included."""
    listed = buildah.run("images", "--json", images.gatewright().built).stdout
    (found,) = json.loads(listed)
    figure(f"the image has {found['size']}")
    number, unit = found["size"].split()
    assert float(number) * {"MB": 1e6, "GB": 1e9}[unit] <= MOST


def test_it_has_no_pip(node: Node) -> None:
    """The image has no installer of Python packages."""
    code, printed = run_pod(node, "pip", [], command=["python", "-m", "pip"])
    assert (code, "No module named pip" in printed) == (1, True)


@pytest.mark.parametrize("login", ["token", "certificate", "plugin"])
def test_the_image_can_use_every_kind_of_kubeconfig(node: Node, login: str) -> None:
    """Each way to log in works: the image has the dependencies that kubernetes_asyncio needs for a plugin."""
    user = users(node)[login]
    code, printed = run_pod(node, f"check-{login}", CHECK, kubeconfig=kubeconfig(node, user))
    assert code in (0, 1), printed
    assert re.match(r"\d+ objects?: ", printed.splitlines()[-1]), printed


def test_an_oidc_token_is_sent(node: Node) -> None:
    """The token of a kubeconfig's OIDC provider reaches the API server, which knows no such provider."""
    code, printed = run_pod(
        node, "check-oidc", CHECK, kubeconfig=kubeconfig(node, users(node)["oidc"])
    )
    assert (code, "401" in printed) == (3, True), printed


def users(node: Node) -> dict[str, dict[str, Any]]:
    """Return the user entries of kubeconfigs, by the way they log in."""
    token = node.plane.token
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": token},
    }
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "echo",
        "args": [json.dumps(credential)],
        "interactiveMode": "Never",
    }
    claims = base64.urlsafe_b64encode(b'{"exp": 4102444800}').decode().rstrip("=")
    provider = {
        "idp-issuer-url": "https://issuer.invalid",
        "client-id": "me",
        "id-token": f"e30.{claims}.e30",
        "refresh-token": "none",
    }
    certificate = yaml.safe_load(
        node.plane.certificate_kubeconfig("somebody", "system:masters").read_text()
    )
    return {
        "token": {"token": token},
        "certificate": certificate["users"][0]["user"],
        "plugin": {"exec": plugin},
        "oidc": {"auth-provider": {"name": "oidc", "config": provider}},
    }


def kubeconfig(node: Node, user: dict[str, Any]) -> str:
    """Return a kubeconfig of the cluster for a user."""
    config = yaml.safe_load(node.plane.kubeconfig.read_text())
    config["users"][0]["user"] = user
    return yaml.safe_dump(config)


def run_pod(
    node: Node,
    name: str,
    arguments: tuple[str, ...] | list[str],
    *,
    command: list[str] | None = None,
    kubeconfig: str = "",
) -> tuple[int, str]:
    """Run the image once, with a kubeconfig and a policy set in /kube; return its exit code and its output."""
    metadata = {"name": name, "namespace": "default"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    container = {
        "name": "gatewright",
        "image": images.gatewright().name,
        "args": list(arguments),
        "volumeMounts": [{"name": "kube", "mountPath": "/kube"}],
        **({"command": command} if command else {}),
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "restartPolicy": "Never",
            "containers": [container],
            "volumes": [{"name": "kube", "secret": {"secretName": name}}],
        },
    }
    policies = (images.ROOT / "config/policies/baseline.yaml").read_text()
    node.apply([{**secret, "stringData": {"config": kubeconfig, "policies.yaml": policies}}, pod])
    ended = "--for=jsonpath={.status.containerStatuses[0].state.terminated.exitCode}"
    node.kubectl("wait", f"pod/{name}", ended, "--timeout=60s", timeout=70)
    found = json.loads(node.kubectl("get", "pod", name, "-o", "json").stdout)
    printed = node.kubectl("logs", name).stdout
    node.kubectl("delete", f"pod/{name}", f"secret/{name}", "--wait=false")
    return found["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"], printed
