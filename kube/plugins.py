"""Exec plugins, OIDC and the like, by way of kubernetes_asyncio, which is imported only where one is used."""

import asyncio
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kube.endpoint import TOKEN_SECONDS, Authorization, CredentialsError, present, read

PLUGIN_SECONDS = 60.0


async def authorization(files: Sequence[Path], context: str, user: str, security: ssl.SSLContext) -> Authorization:
    """Return the authorization that a kubeconfig's plugin gives, asked once already; certificates go to `security`."""
    plugin = Plugin(files, context, user, security)
    await plugin()
    return plugin


class Plugin:
    """A plugin's token or client certificate: asked for again each minute, renewed when the plugin finds it old."""

    def __init__(
        self,
        files: Sequence[Path],
        context: str,
        user: str,
        security: ssl.SSLContext,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files = ":".join(str(file) for file in files)
        self._context = context
        self._user = user
        self._security = security
        self._monotonic = monotonic
        self._asked_at = float("-inf")
        self._header: str | None = None
        self._loader: Any = None
        self._lock = asyncio.Lock()

    async def __call__(self) -> str | None:
        """Return the Authorization header, or None where the plugin gives a certificate."""
        async with self._lock:
            if self._monotonic() - self._asked_at >= TOKEN_SECONDS:
                self._header = await self._ask()
                self._asked_at = self._monotonic()
        return self._header

    async def _ask(self) -> str | None:
        from kubernetes_asyncio.client import Configuration  # 63 MB and 1,268 modules: only where a plugin is used
        from kubernetes_asyncio.config import ConfigException, load_kube_config

        configuration = Configuration()
        try:
            async with asyncio.timeout(PLUGIN_SECONDS):
                if self._loader is None:
                    self._loader = await load_kube_config(self._files, self._context, configuration)
                else:
                    await self._loader.load_and_set(configuration)
        except TimeoutError:
            raise CredentialsError(f"{self._user}: its plugin gave no answer in {PLUGIN_SECONDS:g} s") from None
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            of = f": {error.filename}" if error.filename else ""  # which not every event loop knows
            raise CredentialsError(f"{self._user}: its plugin cannot run: {reason}{of}") from None
        except (ConfigException, ValueError, KeyError, TypeError) as error:
            # Their texts may quote the whole section, tokens included; only the plugins' own are safe.
            reason = str(error) if str(error).startswith(("exec: process returned", "oidc: ")) else type(error).__name__
            raise CredentialsError(f"{self._user}: its plugin gave no credentials: {reason}") from None
        if configuration.cert_file and configuration.key_file:
            present(self._security, self._user, read(Path(configuration.cert_file)), read(Path(configuration.key_file)))
        header: str | None = configuration.api_key.get("BearerToken")
        return header
