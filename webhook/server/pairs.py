"""Where the serving pair comes from: two files, or a Secret that is watched."""

import base64
import binascii
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kube.watched import WatchedObject

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


class PairSecret(NamedTuple):
    """A certificate and its key in a Secret: no kubelet delays a change."""

    secret: WatchedObject

    def __str__(self) -> str:
        return str(self.secret)

    def read(self) -> tuple[bytes, bytes]:
        """Return certificate and key; ValueError where the Secret has none."""
        data = self.secret.get().get("data") or {}
        if missing := [name for name in (CERTIFICATE, KEY) if not data.get(name)]:
            raise ValueError(f"{self}: has no {' and no '.join(missing)}")
        try:
            return base64.b64decode(data[CERTIFICATE]), base64.b64decode(data[KEY])
        except binascii.Error as error:
            raise ValueError(f"{self}: {error}") from None

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call `callback` after each change of the Secret."""
        self.secret.subscribe(callback)
