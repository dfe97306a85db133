"""Credentials of registries, from a docker config file."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from config.image_references import ImageReferenceError, registry_name

EXPECTED = '{"auths": {"HOST": {"auth": "base64 of USER:PASSWORD"}}}'


class RegistryConfigError(ValueError):
    """A file is not a docker config file; the message names the file."""


def read_logins(path: Path) -> Mapping[str, str]:
    """Return the Authorization headers by registry. Raises RegistryConfigError if invalid.

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
    """Return the registry of an entry, which for Docker Hub is a URL."""
    host = name.partition("://")[2] or name
    try:
        return registry_name(host.partition("/")[0])
    except ImageReferenceError:
        raise ValueError(name) from None


def _login(entry: Mapping[str, str]) -> str:
    if "auth" not in entry:
        both = f"{entry['username']}:{entry['password']}"
        return f"Basic {base64.b64encode(both.encode()).decode()}"
    base64.b64decode(entry["auth"], validate=True)
    return f"Basic {entry['auth']}"
