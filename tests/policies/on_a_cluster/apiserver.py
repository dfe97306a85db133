"""The API server that gets the cases, and the webhook that it calls."""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import yaml

from config.documents import read_documents
from controller.registration.configurations import WebhookClientConfig, registration
from kube.resource import JsonObject
from tests.controlplane.pki import CertificateAuthority
from tests.controlplane.plane import ControlPlane
from tests.gatewright.started import Gatewright
from tests.policies.on_a_cluster.questions import SETUP_USER
from tests.policies.on_a_cluster.requests import Ask, creation, path_of
from webhook.engine import Engine
from webhook.harness.bases import smallest
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import load

AT_ONCE = 16
SECONDS = 30  # for one request on a busy machine
OURS = re.compile(
    r'admission webhook "(validate|mutate)(?:-[0-9]+)?\.gatewright\.io" denied the request: '
)


@dataclass(frozen=True, slots=True)
class Said:
    """The API server's answer."""

    code: int
    body: JsonObject
    warnings: tuple[str, ...]

    @property
    def is_ours(self) -> bool:
        """Whether Gatewright's webhook denied the request."""
        return OURS.match(self.body.get("message", "")) is not None

    @property
    def is_refused(self) -> bool:
        """Whether the API server itself rejected the object."""
        return not self.is_ours and self.code in (400, 404, 422)

    @property
    def message(self) -> str:
        """The code and the message of a failure."""
        return f"{self.code} {self.body.get('message', '')}"


@dataclass(frozen=True, slots=True)
class ApiServer:
    """Sends requests to the API server as any user."""

    session: aiohttp.ClientSession
    url: str

    async def __call__(
        self, ask: Ask, user: str = SETUP_USER, groups: Sequence[str] = (), *, dry_run: bool
    ) -> Said:
        """Send one request."""
        headers = [
            (
                "Content-Type",
                "application/merge-patch+json" if ask.method == "PATCH" else "application/json",
            )
        ]
        if user != SETUP_USER:
            headers += [
                ("Impersonate-User", user),
                *(("Impersonate-Group", group) for group in groups),
            ]
        query = {"fieldValidation": "Strict"} if ask.body else {}
        query |= {"dryRun": "All"} if dry_run else {}
        query |= dict(ask.query)
        async with self.session.request(
            ask.method,
            self.url + ask.path,
            params=query,
            headers=headers,
            data=None if ask.body is None else json.dumps(ask.body),
        ) as response:
            text = await response.text()
            warnings = tuple(_unquoted(each) for each in response.headers.getall("Warning", ()))
            body = (
                json.loads(text)
                if response.content_type == "application/json"
                else {"message": text}
            )
            return Said(response.status, body, warnings)

    async def make(self, ask: Ask) -> None:
        """Create or change an object, without dry run, unless it exists."""
        said = await self(ask, dry_run=False)
        if said.code not in (200, 201, 409):
            raise ValueError(said.message)


def _unquoted(warning: str) -> str:
    return re.sub(r"\\(.)", r"\1", warning.partition('"')[2].removesuffix('"'))


@asynccontextmanager
async def api_server(plane: ControlPlane) -> AsyncIterator[ApiServer]:
    """Yield the API server, with this many concurrent requests."""
    connector = aiohttp.TCPConnector(
        limit=AT_ONCE, ssl=ssl.create_default_context(cafile=plane.ca_file)
    )
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=SECONDS, sock_read=SECONDS),
        headers={"Authorization": f"Bearer {plane.token}"},
    ) as session:
        yield ApiServer(session, plane.url)


CANARY: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "canary"}}
CANARIES = [
    {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": f"canary-{policy}"},
        "spec": {"policy": policy, "match": {"any": [{"namespaces": ["canary"]}]}},
    }
    for policy in ("webapp-names", "webapp-labels")
]


@asynccontextmanager
async def webhook(
    plane: ControlPlane, api: ApiServer, directory: Path, policies: Sequence[JsonObject]
) -> AsyncIterator[None]:
    """Register a webhook with these policies."""
    authority = CertificateAuthority()
    for name, content in zip(("tls.crt", "tls.key"), authority.serving_certificate(), strict=True):
        (directory / name).write_bytes(content)
    file = directory / "policies.yaml"
    file.write_text(yaml.safe_dump_all([*policies, *CANARIES], sort_keys=False))
    pair = ("--tls-cert", str(directory / "tls.crt"), "--tls-key", str(directory / "tls.key"))
    unmade = (
        "--kinds",
        "Widget",
    )  # no case is about a Widget, and cases test objects without their children
    with Gatewright(
        plane, directory, "webhook", "--policies", str(file), *unmade, *pair
    ) as process:
        await asyncio.to_thread(process.start)
        await api.make(creation(CANARY))
        engine = Engine(load(read_documents(file), catalogue()))
        address = WebhookClientConfig(process.url, authority.pem)
        for configuration in registration(engine, ()).configurations("gatewright", address):
            for webhook in configuration["webhooks"]:
                webhook["timeoutSeconds"] = SECONDS
            await api.make(creation(configuration))
        await asyncio.to_thread(process.until, "asked", lambda: _is_asked(plane))
        try:
            yield
            assert process.tracebacks() == []
        finally:
            process.kill()  # on SIGTERM it would wait for the API server to close its connections


def _is_asked(plane: ControlPlane) -> bool:
    """Whether the API server has loaded both configurations."""
    path = f"{path_of(smallest('WebApp'), namespace='canary')}?dryRun=All"
    denied, _ = plane.api.request("POST", path, smallest("WebApp", "2-bad", "canary"))
    _, made = plane.api.request("POST", path, smallest("WebApp", "good", "canary"))
    return denied == 403 and b"webapp-operator" in made
