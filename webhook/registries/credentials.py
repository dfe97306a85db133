"""Credentials of registries, from a docker config file."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from webhook.engine.images import ImageReferenceError, registry_name

EXPECTED = '{"auths": {"HOST": {"auth": "base64 of USER:PASSWORD"}}}'


class RegistryConfigError(ValueError):
    """A file that is no docker config file; the text names the file."""


@dataclass(frozen=True, slots=True)
class RegistryLogin:
    """A user and its password."""

    user: str
    password: str = field(repr=False)

    @property
    def basic(self) -> str:
        """The value of an Authorization header."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


def read_logins(path: Path) -> Mapping[str, RegistryLogin]:
    """Return the logins of `auths` by registry. RegistryConfigError where the file is none.

    Credential helpers are not run.
    """
    try:
        auths = json.loads(path.read_bytes()).get("auths", {})
        logins = {_host(name): _login(entry) for name, entry in auths.items() if entry}
    except OSError as error:
        raise RegistryConfigError(f"{path}: {error.strerror} (--registry-config)") from error
    except (ValueError, AttributeError, TypeError, KeyError):
        raise RegistryConfigError(
            f"{path}: not a docker config file; expected {EXPECTED}"
        ) from None
    if not logins:
        raise RegistryConfigError(
            f"{path}: has no logins; expected {EXPECTED}. Credential helpers are not run"
        )
    return logins


def _host(name: str) -> str:
    """Return the registry of an entry: docker writes a URL for its own."""
    host = name.partition("://")[2] or name
    try:
        return registry_name(host.partition("/")[0])
    except ImageReferenceError:
        raise ValueError(name) from None


def _login(entry: Mapping[str, str]) -> RegistryLogin:
    if "auth" not in entry:
        return RegistryLogin(entry["username"], entry["password"])
    try:
        user, _, password = base64.b64decode(entry["auth"], validate=True).decode().partition(":")
    except binascii.Error:
        raise ValueError from None
    return RegistryLogin(user, password)
