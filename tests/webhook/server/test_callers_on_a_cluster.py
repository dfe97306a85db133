"""Client certificates on a real API server, with the admission configuration of docs/running.md."""

import asyncio

import pytest
import yaml

from controller.registration.configurations import VALIDATING, WebhookClientConfig, registration
from controller.registration.probe import ProbeError, probe
from kube.client import Client
from kube.credentials import load
from kube.errors import ApiError, ServerError
from kube.resource import Resource
from tests.controlplane.pki import CertificateAuthority
from tests.waiting import WITHIN
from tests.webhook.server.conftest import ENGINE
from webhook.server.callers import Callers

POD = Resource("", "v1", "pods", "Pod")
GROUP = "apiserver.config.k8s.io/v1"


def admission_configuration(directory, ca, address, name):
    """Write the API server's client credentials for the webhook's address, and return the flag."""
    certificate, key = ca.client_certificate(name)
    (directory / "client.crt").write_bytes(certificate)
    (directory / "client.key").write_bytes(key)
    user = {
        "client-certificate": str(directory / "client.crt"),
        "client-key": str(directory / "client.key"),
    }
    kubeconfig = {"apiVersion": "v1", "kind": "Config", "users": [{"name": address, "user": user}]}
    (directory / "webhooks.yaml").write_text(yaml.safe_dump(kubeconfig))
    plugin = {
        "name": "ValidatingAdmissionWebhook",
        "configuration": {
            "apiVersion": GROUP,
            "kind": "WebhookAdmissionConfiguration",
            "kubeConfigFile": str(directory / "webhooks.yaml"),
        },
    }
    file = directory / "admission.yaml"
    file.write_text(
        yaml.safe_dump({"apiVersion": GROUP, "kind": "AdmissionConfiguration", "plugins": [plugin]})
    )
    return f"--admission-control-config-file={file}"


def pod(name):
    """Return a Pod that only the webhook judges."""
    containers = [{"name": "app", "image": "a"}]
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": containers}}


@pytest.mark.controlplane
async def test_the_api_server_shows_its_certificate(
    own_control_plane, authority, start, tmp_path, pair
):
    """With the right name it gets verdicts; without a certificate, the webhook's error; the probe is answered."""
    ca = CertificateAuthority()
    (tmp_path / "clients.crt").write_bytes(ca.pem)
    names = Callers(["kube-apiserver"])
    async with start(callers=names, certificate={"client_ca": tmp_path / "clients.crt"}) as webhook:
        url = f"https://127.0.0.1:{webhook.port}"
        await probe(url, authority.certificate)
        with pytest.raises(ProbeError):
            await probe(url, ca.pem)
        denials = {}
        for name in ("kube-apiserver", "someone", None):
            flags = (
                []
                if name is None
                else [admission_configuration(tmp_path, ca, f"127.0.0.1:{webhook.port}", name)]
            )
            parts = ("etcd", "kube-apiserver")
            plane = await asyncio.to_thread(own_control_plane, parts=parts, api_server_flags=flags)
            async with Client(await load(plane.kubeconfig)) as client:
                at = WebhookClientConfig(url, authority.certificate)
                configuration, _ = registration(ENGINE, []).configurations("callers", at)
                await client.create(VALIDATING, configuration)
                async with asyncio.timeout(WITHIN):
                    while name not in denials:
                        try:
                            await client.create(POD, pod("bad"), dry_run=True)
                            await asyncio.sleep(0.1)  # the API server does not call it yet
                        except (ApiError, ServerError) as error:
                            denials[name] = str(error)
                if name == "kube-apiserver":
                    await client.create(POD, pod("good"), dry_run=True)
            plane.close()
    assert "objects must be good" in denials["kube-apiserver"]
    assert '"someone" of the client certificate is not among --client-names' in denials["someone"]
    assert "reviews need a client certificate" in denials[None]
