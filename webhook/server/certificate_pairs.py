"""Sources of the serving pair: two files, or a watched Secret."""

import base64
import binascii
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from kube.watched import WatchedObject

CERTIFICATE, KEY = "tls.crt", "tls.key"


class PairFiles(NamedTuple):
    """A certificate and its key in files that another program maintains."""

    certificate: Path
    key: Path

    def __str__(self) -> str:
        return str(self.certificate)

    def read(self) -> tuple[bytes, bytes]:
        """Return certificate and key. Raises OSError if a file cannot be read."""
        return self.certificate.read_bytes(), self.key.read_bytes()

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Do nothing: files have no change events."""


class PairSecret(NamedTuple):
    """A certificate and its key in a watched Secret, without the kubelet's delay."""

    secret: WatchedObject

    def __str__(self) -> str:
        return str(self.secret)

    def read(self) -> tuple[bytes, bytes]:
        """Return certificate and key. Raises ValueError if the Secret has none."""
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
