"""Captures objects as the API server decodes and defaults them, by a mutating webhook that rejects everything."""

import base64
import json
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.controlplane.pki import CertificateAuthority
from tests.controlplane.plane import ControlPlane
from tests.waiting import until

HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


@dataclass(frozen=True)
class Asked:
    """An object of a kind, `apiVersion/kind`, to be created."""

    kind: str
    plural: str
    namespaced: bool
    fields: Any

    @property
    def path(self) -> str:
        """Where it is created."""
        group_version = self.kind.rpartition("/")[0]
        root = f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"
        return f"{root}{'/namespaces/default' if self.namespaced else ''}/{self.plural}"

    @property
    def object(self) -> dict[str, Any]:
        """The complete object."""
        version, _, kind = self.kind.rpartition("/")
        metadata = {"name": "sample", **self.fields.get("metadata", {})}
        return {**self.fields, "apiVersion": version, "kind": kind, "metadata": metadata}


@contextmanager
def asked_before_admission(plane: ControlPlane) -> Iterator[Callable[[Asked], Any]]:
    """Yield a function that returns an object as mutating webhooks receive it; None if they do not."""
    sent: dict[str, Any] = {}

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Store and reject the object of a dry run; allow other requests, which are the API server's own."""
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            request = review["request"]
            is_asked = request.get("dryRun", False)
            if is_asked:
                sent["object"] = request["object"]
            response = {"uid": request["uid"], "allowed": not is_asked}
            body = json.dumps(
                {
                    "apiVersion": review["apiVersion"],
                    "kind": review["kind"],
                    "response": response,
                }
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    authority = CertificateAuthority()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as directory:
        files = [Path(directory) / name for name in ("tls.crt", "tls.key")]
        for file, content in zip(files, authority.serving_certificate(), strict=True):
            file.write_bytes(content)
        context.load_cert_chain(*files)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    api = plane.api
    api.request("POST", HOOKS, _configuration(server.server_port, authority.pem))

    def ask(asked: Asked) -> Any:
        sent.clear()
        api.request("POST", f"{asked.path}?dryRun=All", asked.object)
        return sent.get("object")

    try:
        until(lambda: ask(Asked("v1/ConfigMap", "configmaps", True, {})) is not None)
        yield ask
    finally:
        api.request("DELETE", f"{HOOKS}/captures.example.com")
        server.shutdown()
        server.server_close()


def _configuration(port: int, ca: str) -> dict[str, Any]:
    rule = {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": ["*"],
    }
    bundle = base64.b64encode(ca.encode() if isinstance(ca, str) else ca).decode()
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "captures.example.com"},
        "webhooks": [
            {
                "name": "captures.example.com",
                "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": bundle},
                "rules": [rule],
                "matchPolicy": "Exact",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }
