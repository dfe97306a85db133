"""Where the serving pair comes from: two files, or a Secret that is watched."""

import base64
import binascii
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Never

from kube.client import Client
from kube.resource import Resource
from kube.store import Change, Store
from kube.watch import Watch

SECRET = Resource("", "v1", "secrets", "Secret")
CERTIFICATE, KEY = "tls.crt", "tls.key"


class PairFiles(NamedTuple):
    """A certificate and its key in files, which something else keeps."""

    certificate: Path
    key: Path

    def __str__(self) -> str:
        return str(self.certificate)

    def read(self) -> tuple[bytes, bytes]:
        """Return certificate and key; OSError where a file cannot be read."""
        return self.certificate.read_bytes(), self.key.read_bytes()

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Do nothing: no event says that a file changed."""


class PairSecret:
    """A certificate and its key in one Secret, which is watched: no kubelet delays a change."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self._key = SECRET.key(namespace, name)
        self._store = Store(SECRET)
        self._watch = Watch(
            client, SECRET, self._store, namespace=namespace, fields=f"metadata.name={name}"
        )

    def __str__(self) -> str:
        return f"Secret {self._key}"

    def read(self) -> tuple[bytes, bytes]:
        """Return certificate and key; ValueError where the Secret has none."""
        secret = self._store.get(self._key)
        if secret is None:
            raise ValueError(f"{self}: {self._absence()}")
        data = secret.get("data") or {}
        if missing := [name for name in (CERTIFICATE, KEY) if not data.get(name)]:
            raise ValueError(f"{self}: has no {' and no '.join(missing)}")
        try:
            return base64.b64decode(data[CERTIFICATE]), base64.b64decode(data[KEY])
        except binascii.Error as error:
            raise ValueError(f"{self}: {error}") from None

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call `callback` after each change of the Secret."""

        def on_change(_: Change) -> None:
            callback()

        self._store.subscribers.append(on_change)

    async def run(self) -> Never:
        """Watch the Secret until cancelled."""
        await self._watch.run()

    def _absence(self) -> str:
        if self._watch.problem is not None:
            return self._watch.problem
        return "does not exist yet" if self._store.synced.is_set() else "not read yet"
