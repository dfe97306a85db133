"""Finding the API server, and errors in kubeconfig files."""

import base64
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.credentials import load
from kube.endpoint import CredentialsError, token_file
from kube.errors import Unauthorized
from tests.kube.conftest import NAMESPACE
from tests.kube.tls import serving

CANARY = "canary-token"


def kubeconfig(file: Path, user: dict[str, Any] | None = None, **changes: Any) -> Path:
    """Write a kubeconfig with one context, `prod`; `changes` replace sections."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "prod",
        "contexts": [
            {"name": "prod", "context": {"cluster": "prod", "user": "me", "namespace": "shop"}}
        ],
        "clusters": [{"name": "prod", "cluster": {"server": "http://127.0.0.1:8001"}}],
        "users": [{"name": "me", "user": {"token": CANARY} if user is None else user}],
    }
    file.write_text(
        yaml.safe_dump(content | {name.replace("_", "-"): value for name, value in changes.items()})
    )
    return file


def cluster(**fields: Any) -> list[dict[str, Any]]:
    """Return the clusters of a kubeconfig."""
    return [{"name": "prod", "cluster": {"server": "https://127.0.0.1:6443", **fields}}]


def script(file: Path, text: str) -> str:
    """Write an exec plugin."""
    file.write_text(f"#!{sys.executable}\n{text}")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def plugin(command: str) -> dict[str, Any]:
    """Return the user of an exec plugin."""
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": command,
            "interactiveMode": "Never",
        }
    }


async def test_a_kubeconfig_has_address_token_and_namespace(tmp_path: Path) -> None:
    """Address, token and namespace come from the current context."""
    endpoint = await load(kubeconfig(tmp_path / "config"))
    assert (endpoint.url, endpoint.namespace, endpoint.ssl) == (
        "http://127.0.0.1:8001",
        "shop",
        None,
    )
    assert await endpoint.authorization() == f"Bearer {CANARY}"


async def test_a_context_can_be_chosen(tmp_path: Path) -> None:
    """`context` counts more than current-context."""
    contexts = [
        {"name": "prod", "context": {"cluster": "absent", "user": "me"}},
        {"name": "test", "context": {"cluster": "prod", "user": "me"}},
    ]
    endpoint = await load(kubeconfig(tmp_path / "config", contexts=contexts), "test")
    assert endpoint.namespace == "default"


async def test_files_are_merged(tmp_path: Path) -> None:
    """The first of $KUBECONFIG's files with a value wins; missing files are skipped."""
    first = kubeconfig(tmp_path / "first", clusters=[], users=[])
    second = kubeconfig(tmp_path / "second", current_context="other", contexts=[])
    listed = os.pathsep.join(map(str, (tmp_path / "absent", first, second)))
    endpoint = await load(environment={"KUBECONFIG": listed})
    assert (endpoint.url, endpoint.namespace) == ("http://127.0.0.1:8001", "shop")


async def test_the_home_directory_is_last(tmp_path: Path) -> None:
    """~/.kube/config is used if nothing else is set, also in a Pod."""
    (tmp_path / ".kube").mkdir()
    kubeconfig(tmp_path / ".kube" / "config")
    endpoint = await load(
        environment={"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    )
    assert endpoint.url == "http://127.0.0.1:8001"


async def test_a_kubeconfig_trusts_and_names(tmp_path: Path) -> None:
    """Authority (a file relative to the kubeconfig, or data), server name, proxy and insecure mode are read."""
    _, authority = serving(tmp_path, "127.0.0.1")
    data = base64.b64encode(authority.read_bytes()).decode()
    for trust in ({"certificate-authority": "ca.crt"}, {"certificate-authority-data": data}):
        clusters = cluster(
            **trust, **{"tls-server-name": "api.example.test", "proxy-url": "http://proxy:3128"}
        )
        endpoint = await load(kubeconfig(tmp_path / "config", clusters=clusters))
        assert endpoint.ssl
        assert [each["subject"] for each in endpoint.ssl.get_ca_certs()] == [
            ((("commonName", "test"),),)
        ]
        assert (endpoint.server_hostname, endpoint.proxy) == (
            "api.example.test",
            "http://proxy:3128",
        )
    endpoint = await load(
        kubeconfig(tmp_path / "config", clusters=cluster(**{"insecure-skip-tls-verify": True}))
    )
    assert endpoint.ssl
    assert not endpoint.ssl.check_hostname


async def test_a_client_certificate_is_presented(tmp_path: Path) -> None:
    """A certificate and its key are loaded; the error for an invalid pair has the file and the user."""
    serving(tmp_path, "127.0.0.1")
    user = {"client-certificate": "tls.crt", "client-key": "tls.key"}
    endpoint = await load(kubeconfig(tmp_path / "config", user, clusters=cluster()))
    assert await endpoint.authorization() is None
    for bad in ({"client-key": "ca.crt"}, {"client-key": None}):
        with pytest.raises(CredentialsError, match=r'config: user "me": .*client.certificate'):
            await load(kubeconfig(tmp_path / "config", user | bad, clusters=cluster()))


async def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    """A token that is renewed in its file is used within a minute."""
    file = tmp_path / "token"
    file.write_text("first\n")
    now = 0.0
    token = token_file(file, lambda: now)
    assert await token() == "Bearer first"
    file.write_text("second")
    now = 59.0
    assert await token() == "Bearer first"
    now = 60.0
    assert await token() == "Bearer second"


async def test_a_token_file_that_cannot_be_read_leaves_the_last_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A failed read keeps the cached token, with a warning, and is retried within a minute; at first it is an error."""
    file, now = tmp_path / "token", 0.0
    token = token_file(file, lambda: now)
    with pytest.raises(CredentialsError, match="no such file"):
        await token()
    file.write_text("first")
    assert await token() == "Bearer first"
    file.write_text("")
    now = 60.0
    assert [await token(), await token()] == ["Bearer first"] * 2
    assert caplog.messages == [f"using the cached token: {file}: not a valid token"]
    file.write_text("second")
    now = 120.0
    assert await token() == "Bearer second"


async def test_a_token_file_of_a_kubeconfig(tmp_path: Path) -> None:
    """`tokenFile` is seen from the kubeconfig."""
    (tmp_path / "token").write_text("from-file")
    endpoint = await load(kubeconfig(tmp_path / "config", {"tokenFile": "token"}))
    assert await endpoint.authorization() == "Bearer from-file"


async def test_a_pod_has_its_own(tmp_path: Path) -> None:
    """In a Pod, the ServiceAccount's files and the environment are used, for IPv6 too."""
    _, authority = serving(tmp_path, "127.0.0.1")
    (tmp_path / "token").write_text(CANARY)
    (tmp_path / "namespace").write_text("ops")
    for host, url in (("10.0.0.1", "https://10.0.0.1:6443"), ("fd00::1", "https://[fd00::1]:6443")):
        environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "6443"}
        endpoint = await load(environment=environment, service_account=authority.parent)
        assert (endpoint.url, endpoint.namespace) == (url, "ops")
        assert await endpoint.authorization() == f"Bearer {CANARY}"


async def test_nowhere(tmp_path: Path) -> None:
    """Without any of these, the error lists the searched sources."""
    with pytest.raises(
        CredentialsError,
        match=r"no --kubeconfig, no \$KUBECONFIG, no ~/.kube/config, .* not running in a Pod",
    ):
        await load(environment={"HOME": str(tmp_path)})
    with pytest.raises(CredentialsError, match=r"\$KUBECONFIG: /absent: no such file"):
        await load(environment={"KUBECONFIG": "/absent"})
    with pytest.raises(CredentialsError, match=r"ca\.crt: no such file or directory"):
        await load(environment={"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, service_account=tmp_path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not a kubeconfig"),
        ("[]", "not a kubeconfig"),
        (f"users: [{{user: {{token: {CANARY}}}}}\nx: :", r":2: not YAML"),
        ("\x00", "not YAML"),
        ("clusters: []", "no current-context is set"),
        ("current-context: a", r'context "a" not found \(available: none\)'),
        ("current-context: a\ncontexts: {}", r'context "a" not found'),
        ("current-context: a\ncontexts: 7", "contexts must be a list"),
    ],
)
async def test_a_bad_file_is_named(tmp_path: Path, text: str, problem: str) -> None:
    """The error has the file and the fault, and does not quote the file."""
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(CredentialsError, match=problem) as caught:
        await load(file)
    assert str(file) in str(caught.value)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"clusters": []}, r'cluster "prod" not found \(available: none\)'),
        ({"clusters": [{"name": "other"}]}, r"available: other"),
        ({"users": []}, r'user "me" not found'),
        (
            {"clusters": [{"name": "prod", "cluster": {}}]},
            "server must be an http or https address",
        ),
        ({"clusters": cluster(server="ftp://x")}, "server must be an http or https address"),
        ({"clusters": cluster(server="https://")}, "server must be an http or https address"),
        ({"clusters": cluster(server="https://x:port")}, "server must be an http or https address"),
        ({"clusters": cluster(**{"certificate-authority": "absent"})}, "absent: no such file"),
        (
            {"clusters": cluster(**{"certificate-authority-data": "*"})},
            "certificate-authority-data is not base64",
        ),
        (
            {"clusters": cluster(**{"certificate-authority-data": "AAAA"})},
            "authority is not a PEM certificate",
        ),
        ({"users": [{"name": "me", "user": {"token": 7}}]}, r'user "me": token must be text'),
        (
            {"users": [{"name": "me", "user": {"token": "a\r\nX: admin"}}]},
            r'config: user "me": not a valid token$',
        ),
    ],
)
async def test_a_faulty_file_is_reported_with_section_and_key(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    """The error has the file, the section and the key."""
    file = kubeconfig(tmp_path / "config", **changes)
    with pytest.raises(CredentialsError, match=problem) as caught:
        await load(file)
    assert str(tmp_path) in str(caught.value)


async def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    """The error reports a missing file or a directory."""
    with pytest.raises(CredentialsError, match="absent: no such file or directory"):
        await load(tmp_path / "absent")
    with pytest.raises(CredentialsError, match="is a directory"):
        await load(tmp_path)


@pytest.mark.long  # imports kubernetes_asyncio
async def test_the_token_of_an_exec_plugin_is_used(tmp_path: Path) -> None:
    """The token of an exec plugin is used."""
    answer = {"token": "from-plugin", "expirationTimestamp": "2100-01-01T00:00:00Z"}
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": answer,
    }
    command = script(tmp_path / "plugin", f"import json; print(json.dumps({credential!r}))")
    async with FakeApiServer(token="from-plugin") as server:
        clusters = [{"name": "prod", "cluster": {"server": server.url}}]
        endpoint = await load(kubeconfig(tmp_path / "config", plugin(command), clusters=clusters))
        async with Client(endpoint) as client:
            assert await client.get(NAMESPACE, "default")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import sys; sys.exit('log in first')", "exec: process returned 1. log in first"),
        (f"print('{CANARY}')", "its plugin gave no credentials"),
        (None, "its plugin cannot run: no such file or directory$"),
    ],
)
async def test_a_plugin_that_fails_is_named(tmp_path: Path, text: str | None, problem: str) -> None:
    """The error has the file, the user and the plugin's stderr, but never its output."""
    command = script(tmp_path / "plugin", text) if text else str(tmp_path / "absent")
    with pytest.raises(CredentialsError, match=problem) as caught:
        await load(kubeconfig(tmp_path / "config", plugin(command)))
    assert 'config: user "me"' in str(caught.value)
    assert CANARY not in str(caught.value)


def test_kubernetes_asyncio_is_imported_only_for_plugins() -> None:
    """kubernetes_asyncio, which takes 63 MB, is imported only if a kubeconfig needs a plugin."""
    import subprocess

    code = "import sys, kube.credentials, kube.watch; sys.exit('kubernetes_asyncio' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.controlplane
async def test_a_real_server_accepts_the_credentials(control_plane: Any) -> None:
    """A token and a client certificate of a kubeconfig are good; a token that is wrong is Unauthorized."""
    for file in (
        control_plane.kubeconfig,
        control_plane.certificate_kubeconfig("root", "system:masters"),
    ):
        async with Client(await load(file)) as client:
            assert await client.get(NAMESPACE, "default")
    wrong = yaml.safe_load(control_plane.kubeconfig.read_text())
    wrong["users"][0]["user"] = {"token": "wrong"}
    file = control_plane.kubeconfig.with_name("wrong.kubeconfig")
    file.write_text(yaml.safe_dump(wrong))
    async with Client(await load(file)) as client:
        with pytest.raises(Unauthorized):
            await client.get(NAMESPACE, "default")
