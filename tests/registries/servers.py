"""Starts a registry, and pushes images and signatures as clients do."""

import hashlib
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.gobuild import build
from tests.controlplane.processes import Process, Reaper, free_ports
from tests.waiting import until
from tests.webhook.registries.signing import BUNDLE

MODULE = Path(__file__).parent
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
EMPTY = "application/vnd.oci.empty.v1+json"
READY_WITHIN = 60  # seconds


def registry_binary() -> Path:
    """The registries, built once."""
    return build(MODULE, ".", "registries", takes="a minute with 2 cores")


@dataclass
class RealRegistry:
    """A running registry; `kind` is "referrers" or "tags", the way in which it lists an image's referrers."""

    address: str
    kind: str
    process: Process

    def push(self, name: str, content: str) -> str:
        """Push a small image with a tag; return its digest."""
        repository, _, tag = name.partition(":")
        layer = self._blob(repository, content.encode())
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self._blob(repository, b"{}") | {"mediaType": EMPTY},
            "layers": [layer | {"mediaType": "application/vnd.oci.image.layer.v1.tar"}],
        }
        return self._put(repository, tag, MANIFEST, manifest)

    def attach(self, repository: str, digest: str, *bundles: dict[str, Any]) -> None:
        """Attach bundles to an image, like cosign v3: with a subject, and with the tag if it is needed."""
        descriptors = []
        for bundle in bundles:
            body = json.dumps(bundle).encode()
            manifest = {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "artifactType": BUNDLE,
                "config": self._blob(repository, b"{}") | {"mediaType": EMPTY},
                "layers": [self._blob(repository, body) | {"mediaType": BUNDLE}],
                "subject": {"mediaType": MANIFEST, "digest": digest, "size": 1},
            }
            size = len(json.dumps(manifest).encode())
            name = f"sha256:{hashlib.sha256(json.dumps(manifest).encode()).hexdigest()}"
            self._put(repository, name, MANIFEST, manifest)
            descriptors.append({"mediaType": MANIFEST, "digest": name, "size": size})
        if self.kind == "tags":
            index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": descriptors}
            self._put(repository, digest.replace(":", "-"), INDEX, index)

    def _blob(self, repository: str, body: bytes) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        location = self._request("POST", f"/v2/{repository}/blobs/uploads/", b"").headers[
            "Location"
        ]
        sign = "&" if "?" in location else "?"
        self._request("PUT", f"{location}{sign}digest={digest}", body)
        return {"digest": digest, "size": len(body)}

    def _put(self, repository: str, name: str, kind: str, value: dict[str, Any]) -> str:
        body = json.dumps(value).encode()
        self._request("PUT", f"/v2/{repository}/manifests/{name}", body, kind)
        return f"sha256:{hashlib.sha256(body).hexdigest()}"

    def _request(
        self, method: str, location: str, body: bytes, kind: str = "application/octet-stream"
    ) -> Any:
        url = location if "://" in location else f"http://{self.address}{location}"
        headers = {"Content-Type": kind}
        request = urllib.request.Request(url, data=body, method=method, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()
            return answer


@contextmanager
def running(kind: str, directory: Path) -> Iterator[RealRegistry]:
    """Run a registry until the context exits."""
    (port,) = free_ports(1)
    reaper = Reaper()
    address = f"127.0.0.1:{port}"
    command = [str(registry_binary()), kind, address]
    process = Process(f"registry-{kind}", command, directory / f"registry-{kind}.log", reaper)
    process.start()
    try:
        _wait_ready(process, f"http://{address}/v2/")
        yield RealRegistry(address, kind, process)
    finally:
        if not process.died:
            process.kill()
        reaper.close()


def _wait_ready(process: Process, url: str) -> None:
    def answers() -> bool:
        try:
            urllib.request.urlopen(url, timeout=60).close()
        except urllib.error.URLError:
            return False
        return True

    until(lambda: process.died or answers(), within=READY_WITHIN, problem=process.tail)
    assert not process.died, f"{url}\n{process.tail()}"
