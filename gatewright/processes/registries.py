"""Open the look-ups of images in registries, by the settings."""

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import aiohttp
from prometheus_client import CollectorRegistry

from config.settings import Settings
from controller.audit.listing import RateLimit
from kube.session import new_session
from webhook.registries.cache import ImageLookUps, RegistryMetrics
from webhook.registries.client import RegistryClient
from webhook.registries.credentials import RegistryConfigError, read_logins
from webhook.registries.reader import RegistryReader


@asynccontextmanager
async def image_look_ups(
    settings: Settings,
    registry: CollectorRegistry | None = None,
    qps: float | None = None,
) -> AsyncIterator[ImageLookUps]:
    """Enter the look-ups; nothing is connected before a policy needs an image.

    At most `qps` requests per second are sent.

    Raises RegistryConfigError if a file of the settings cannot be used.
    """
    for host in settings.insecure_registries:
        if "/" in host:
            text = f"--insecure-registries {host}: expected HOST:PORT, without a scheme or path"
            raise RegistryConfigError(text)
    logins = read_logins(settings.registry_config) if settings.registry_config else {}
    async with new_session({"User-Agent": "gatewright"}, _limits(qps)) as session:
        client = RegistryClient(
            session, logins, frozenset(settings.insecure_registries), _load_trust(settings)
        )
        yield ImageLookUps(RegistryReader(client), RegistryMetrics(registry or CollectorRegistry()))


def _limits(qps: float | None) -> Sequence[aiohttp.ClientMiddlewareType]:
    if qps is None:
        return ()
    limit = RateLimit(qps)

    async def in_turn(
        request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        return await limit.send(partial(send, request))

    return (in_turn,)


def _load_trust(settings: Settings) -> ssl.SSLContext | bool:
    if settings.registry_ca is None:
        return True
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(settings.registry_ca)
    except ssl.SSLError as error:
        text = f"{settings.registry_ca}: has no certificate in PEM (--registry-ca)"
        raise RegistryConfigError(text) from error
    except OSError as error:
        text = f"{settings.registry_ca}: {error.strerror} (--registry-ca)"
        raise RegistryConfigError(text) from error
    return context
