"""Exec plugins and OIDC by kubernetes_asyncio, which is imported only if they are used."""

import asyncio
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kube.endpoint import Authorization, CredentialsError, Renewed, bearer, present, read

PLUGIN_SECONDS = 60.0


async def authorization(
    files: Sequence[Path], context: str, user: str, security: ssl.SSLContext
) -> Authorization:
    """Return the authorization from a kubeconfig's plugin, which is called once now.

    Its client certificate is loaded into `security`.
    """
    # Imported here: 63 MB and 1,268 modules.
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config import ConfigException, load_kube_config

    loader: Any = None

    async def ask() -> str | None:
        """Return the plugin's token.

        Kubernetes_asyncio runs the plugin only when the last token is old.
        """
        nonlocal loader
        configuration = Configuration()
        try:
            async with asyncio.timeout(PLUGIN_SECONDS):
                if loader is None:
                    loader = await load_kube_config(
                        ":".join(map(str, files)), context, configuration
                    )
                else:
                    await loader.load_and_set(configuration)
        except TimeoutError:
            raise CredentialsError(
                f"{user}: its plugin gave no answer in {PLUGIN_SECONDS:g} s"
            ) from None
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            of = f": {error.filename}" if error.filename else ""  # not every event loop sets it
            raise CredentialsError(f"{user}: its plugin cannot run: {reason}{of}") from None
        except (ConfigException, ValueError, KeyError, TypeError) as error:
            # Error texts may quote the whole section, tokens included; only those of plugins are
            # safe.
            reason = (
                str(error)
                if str(error).startswith(("exec: process returned", "oidc: "))
                else type(error).__name__
            )
            raise CredentialsError(f"{user}: its plugin gave no credentials: {reason}") from None
        if configuration.cert_file and configuration.key_file:
            present(
                security,
                user,
                read(Path(configuration.cert_file)),
                read(Path(configuration.key_file)),
            )
        header: str | None = configuration.api_key.get("BearerToken")
        return header and bearer(header.removeprefix("Bearer "), user)

    renewed = Renewed(ask)
    await renewed()
    return renewed
