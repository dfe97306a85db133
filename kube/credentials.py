"""Where the API server is and how to prove who we are: kubeconfig files, or the Pod's own ServiceAccount."""

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path


class CredentialsError(ValueError):
    """Credentials that cannot be used; the text names the file and what is wrong with it."""


async def anonymous() -> str | None:
    """Prove nothing: a client certificate does, or nobody asks."""
    return None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One API server, and what a connection to it needs."""

    url: str
    ssl: ssl.SSLContext | None = None
    authorization: Callable[[], Awaitable[str | None]] = anonymous
    """Returns the Authorization header, asked before each request."""
    namespace: str = "default"
    server_hostname: str | None = None
    proxy: str | None = None


async def load(kubeconfig: Path | None = None, context: str | None = None) -> Endpoint:
    """Return the endpoint of `kubeconfig`, else of $KUBECONFIG, else of ~/.kube/config, else of the Pod we run in."""
    raise NotImplementedError
