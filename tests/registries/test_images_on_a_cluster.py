"""Signed images are admitted and pinned, others denied, on the real API server with real registries."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import ec

from tests.controlplane.plane import ControlPlane
from tests.gatewright.started import Gatewright, call, once
from tests.registries.servers import RealRegistry
from tests.webhook.registries.signing import SigningKey, bundle, pem

pytestmark = pytest.mark.controlplane
OLD, NEW = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
IN_FORCE_WITHIN = 60.0


def write_policies(file: Path, namespace: str, host: str, *keys: SigningKey) -> None:
    """Write a policy set that pins the images of a registry and wants them signed."""
    match = {"any": [{"namespaces": [namespace]}]}
    entry = {"images": [f"{host}/team"], "keys": [pem(key) for key in keys]}
    specs: dict[str, Any] = {
        "image-pins": {"images": [f"{host}/team"]},
        "image-signatures": {"signatures": [entry]},
    }
    documents = [
        {
            "apiVersion": "gatewright.io/v1alpha1",
            "kind": "ClusterAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {"policy": name, "match": match, "params": params},
        }
        for name, params in specs.items()
    ]
    replaced = file.with_suffix(".new")
    replaced.write_text(yaml.safe_dump_all(documents))
    replaced.replace(file)


def run(plane: ControlPlane, namespace: str, name: str, image: str) -> str:
    """Create a pod; return its image as stored, or why it was refused."""
    command = ("run", name, f"--image={image}", "--restart=Never", "-n", namespace)
    ended = plane.kubectl(*command, check=False)
    if ended.returncode:
        return ended.stderr
    path = "jsonpath={.spec.containers[0].image}"
    return plane.kubectl("get", "pod", name, "-n", namespace, "-o", path).stdout


def test_from_signed_to_admitted_pinned_and_denied(
    control_plane: ControlPlane, namespace: str, real_registry: RealRegistry, tmp_path: Path
):
    """The steps are: sign, admit, pin, deny, rotate the key, stop the registry."""
    host = real_registry.address
    signed, unsigned = (real_registry.push(f"team/{name}:1", name) for name in ("shop", "evil"))
    later = real_registry.push("team/later:1", "later")
    real_registry.attach("team/shop", signed, bundle(OLD, signed))
    real_registry.attach("team/later", later, bundle(NEW, later))
    policies = tmp_path / "policies.yaml"
    write_policies(policies, namespace, host, OLD)
    insecure = ("--insecure-registries", host)
    control_plane.kubectl("apply", "--server-side", "-f", "-", input=once("crds").stdout)
    with Gatewright.run(control_plane, tmp_path, *insecure, policies=policies):
        pinned = f"{host}/team/shop:1@{signed}"
        assert run(control_plane, namespace, "signed", f"{host}/team/shop:1") == pinned
        denial = run(control_plane, namespace, "unsigned", f"{host}/team/evil:1")
        assert f'"{host}/team/evil:1@{unsigned}" has no signature by a key of the policy' in denial
        assert f"cosign sign --key cosign.key {host}/team/evil@{unsigned}" in denial
        other = run(control_plane, namespace, "other-key", f"{host}/team/later:1")
        assert "found: it was signed by another key" in other

        write_policies(policies, namespace, host, OLD, NEW)
        admitted = until_admitted(control_plane, namespace, f"{host}/team/later:1")
        assert admitted == f"{host}/team/later:1@{later}"
        assert run(control_plane, namespace, "both", pinned) == pinned

        real_registry.process.kill()
        assert run(control_plane, namespace, "verified-before", pinned) == pinned
        unknown = run(control_plane, namespace, "unknown", f"{host}/team/new@sha256:{'c' * 64}")
        assert f"registry {host} cannot be reached" in unknown


def until_admitted(plane: ControlPlane, namespace: str, image: str) -> str:
    """Create pods until one is admitted: the webhook reads changed files within seconds."""
    deadline = time.monotonic() + IN_FORCE_WITHIN
    number = 0
    while True:
        number += 1
        answer = run(plane, namespace, f"try-{number}", image)
        if "denied the request" not in answer or time.monotonic() > deadline:
            return answer


def write_pod(file: Path, image: str) -> str:
    """Write a manifest of a pod that runs an image; return its name."""
    pod = {"containers": [{"name": "app", "image": image}]}
    metadata = {"name": file.stem}
    file.write_text(
        yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod})
    )
    return str(file)


def test_check_verifies_with_registry_access_and_passes_nothing_without(
    real_registry: RealRegistry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Exit 3 offline; with access, a signed image passes and an unsigned one is denied."""
    host = real_registry.address
    signed, unsigned = (real_registry.push(f"team/{name}:1", name) for name in ("shop", "evil"))
    real_registry.attach("team/shop", signed, bundle(OLD, signed))
    policies = tmp_path / "policies.yaml"
    write_policies(policies, "default", host, OLD)
    manifests = [
        write_pod(tmp_path / f"{name}.yaml", f"{host}/team/{name}@{digest}")
        for name, digest in (("shop", signed), ("evil", unsigned))
    ]
    check = ("check", "--policies", str(policies), "--insecure-registries", host)
    offline = call(capsys, *check, *manifests)
    assert offline.returncode == 3
    assert (
        "image-signatures: images are not verified: only their registries know. Use "
        "--registry-access." in offline.stdout
    )
    online = call(capsys, *check, "--registry-access", *manifests)
    assert online.returncode == 1
    assert online.stdout.splitlines()[-1] == "2 objects: 1 allowed, 1 denied"
    assert "has no signature by a key of the policy" in online.stdout


def test_recorded_images_are_look_ups_of_a_case(
    real_registry: RealRegistry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """The recorded file makes a case of the same pod pass, with the registry stopped."""
    host = real_registry.address
    digest = real_registry.push("team/shop:1", "shop")
    real_registry.attach("team/shop", digest, bundle(OLD, digest))
    policies, recorded = tmp_path / "policies.yaml", tmp_path / "recorded.yaml"
    write_policies(policies, "default", host, OLD)
    image = f"{host}/team/shop:1"
    command = ("check", "--policies", str(policies), "--insecure-registries", host)
    record = ("--registry-access", "--record-images", str(recorded))
    checked = call(capsys, *command, *record, write_pod(tmp_path / "shop.yaml", image))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    real_registry.process.kill()
    case: dict[str, Any] = {
        "name": "signed and pinned",
        "object": {"kind": "Pod", "metadata": {"namespace": "default"}},
        "pod": {"containers": [{"name": "app", "image": image}]},
        **yaml.safe_load(recorded.read_text()),
        "expect": {
            "patched": {"spec": {"containers": [{"name": "app", "image": f"{image}@{digest}"}]}}
        },
    }
    cases = tmp_path / "shop.cases.yaml"
    cases.write_text(yaml.safe_dump({"policies": "policies.yaml", "cases": [case]}))
    tested = call(capsys, "test", str(cases))
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_impact_of_another_key(
    real_registry: RealRegistry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """With access, newly denied objects are listed; without access, nothing is decided (exit code 3)."""
    host = real_registry.address
    digest = real_registry.push("team/shop:1", "shop")
    real_registry.attach("team/shop", digest, bundle(OLD, digest))
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    write_policies(old, "default", host, OLD)
    write_policies(new, "default", host, NEW)
    pod = write_pod(tmp_path / "shop.yaml", f"{host}/team/shop@{digest}")
    command = ("impact", "--insecure-registries", host, str(old), str(new), pod)
    online = call(capsys, *command, "--registry-access")
    assert online.returncode == 1
    assert online.stdout.splitlines()[-1] == "1 object: 1 newly denied"
    offline = call(capsys, *command)
    assert offline.returncode == 3
    assert "images are not verified: that needs --registry-access" in offline.stderr
    other = tmp_path / "other.yaml"
    other.write_text(
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\n"
        "metadata: {name: host-ports}\nspec: {policy: host-ports}\n"
    )
    for before, after in ((other, new), (old, other)):
        compared = call(capsys, *command[:3], str(before), str(after), pod)
        assert compared.returncode == 3
        assert "Use --registry-access." in compared.stdout
