"""Reads and merges kubeconfig files, and returns the endpoint of a context."""

import base64
import binascii
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from kube import plugins
from kube.endpoint import (
    Authorization,
    CredentialsError,
    Endpoint,
    anonymous,
    present,
    read,
    static_token,
    tls,
    token_file,
)

PLUGINS = ("exec", "auth-provider", "username")


@dataclass(frozen=True, slots=True)
class Section:
    """One named cluster, user or context, and the file that defines it."""

    file: Path
    what: str
    values: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"

    def text(self, name: str) -> str | None:
        """Return a value that must be text, or None."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            raise CredentialsError(f"{self}: {name} must be text")
        return value or None

    def content(self, name: str) -> bytes | None:
        """Return the decoded `<name>-data`, else the content of the file `<name>`, or None."""
        if (data := self.text(f"{name}-data")) is not None:
            try:
                return base64.b64decode(data, validate=True)
            except binascii.Error:
                raise CredentialsError(f"{self}: {name}-data is not base64") from None
        path = self.path(name)
        return read(path) if path else None

    def path(self, name: str) -> Path | None:
        """Return the file that `name` points to, relative to the kubeconfig."""
        relative = self.text(name)
        return self.file.parent / relative if relative else None


async def endpoint(files: Sequence[Path], context: str | None = None) -> Endpoint:
    """Return the endpoint of a context (None: the current one) of these files.

    The first definition takes precedence.
    """
    documents = [(file, document(file)) for file in files]
    name = context or next(
        (each["current-context"] for _, each in documents if each.get("current-context")), None
    )
    if name is None:
        raise CredentialsError(f"{files[0]}: no current-context is set; choose one with --context")
    chosen = find(documents, "context", name)
    cluster = find(documents, "cluster", chosen.text("cluster") or "")
    user = (
        find(documents, "user", named)
        if (named := chosen.text("user"))
        else Section(files[0], "no user", {})
    )
    url = address(cluster, "server")
    verify = not cluster.values.get("insecure-skip-tls-verify")
    security = tls(
        str(cluster), authorities=cluster.content("certificate-authority"), verify=verify
    )
    if any(user.values.get(way) for way in PLUGINS):
        authorization = await plugins.authorization(files, name, str(user), security)
    else:
        authorization = own_authorization(user, security)
    return Endpoint(
        url=url,
        ssl=security if url.startswith("https://") else None,
        authorization=authorization,
        namespace=chosen.text("namespace") or "default",
        server_hostname=cluster.text("tls-server-name"),
        proxy=address(cluster, "proxy-url") if cluster.text("proxy-url") else None,
    )


def address(cluster: Section, name: str) -> str:
    """Return the address in the field `name`: of the API server, or of its proxy."""
    text = cluster.text(name) or ""
    try:
        url = urlsplit(text)
        valid = (
            url.scheme in ("http", "https") and url.hostname and (url.port is None or url.port > 0)
        )
    except ValueError:
        valid = None
    if not valid or not text.isprintable() or " " in text:
        raise CredentialsError(f"{cluster}: {name} must be an http or https address")
    return text.rstrip("/")


def own_authorization(user: Section, security: ssl.SSLContext) -> Authorization:
    """Return the authorization of a user without a plugin: by certificate, token or file."""
    certificate, key = user.content("client-certificate"), user.content("client-key")
    if certificate or key:
        if not (certificate and key):
            raise CredentialsError(f"{user}: client-certificate and client-key belong together")
        present(security, str(user), certificate, key)
    if token := user.text("token"):
        return static_token(token, str(user))
    if path := user.path("tokenFile"):
        return token_file(path)
    return anonymous


def document(file: Path) -> Mapping[str, Any]:
    """Return the YAML mapping in a kubeconfig file."""
    try:
        loaded = yaml.safe_load(read(file))
    except yaml.MarkedYAMLError as error:  # its full text would quote the file
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise CredentialsError(f"{file}{line}: not YAML: {error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        raise CredentialsError(f"{file}: not YAML") from None
    if not isinstance(loaded, dict):
        raise CredentialsError(f"{file}: not a kubeconfig: not a YAML mapping")
    return loaded


def find(documents: Sequence[tuple[Path, Mapping[str, Any]]], kind: str, name: str) -> Section:
    """Return the first context, cluster or user of this name."""
    names: list[str] = []
    for file, document in documents:
        entries = document.get(f"{kind}s") or []
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise CredentialsError(f"{file}: {kind}s must be a list of mappings")
        for entry in entries:
            values = entry.get(kind) or {}
            if entry.get("name") == name and isinstance(values, dict):
                return Section(file, f'{kind} "{name}"', values)
            names.append(str(entry.get("name")))
    files = ", ".join(str(file) for file, _ in documents)
    raise CredentialsError(
        f'{files}: {kind} "{name}" not found (available: {", ".join(names) or "none"})'
    )
