"""Opens the look-ups of images in registries, as the settings say."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from config.settings import Settings
from kube.session import new_session
from webhook.registries.cache import ImageLookUps, RegistryMetrics
from webhook.registries.client import RegistryClient
from webhook.registries.credentials import RegistryConfigError, read_logins
from webhook.registries.reader import RegistryReader


@asynccontextmanager
async def image_look_ups(
    settings: Settings, registry: CollectorRegistry | None = None
) -> AsyncIterator[ImageLookUps]:
    """Enter the look-ups; nothing is connected before a policy needs an image.

    RegistryConfigError where a file of the settings cannot be used.
    """
    logins = read_logins(settings.registry_config) if settings.registry_config else {}
    async with new_session({"User-Agent": "gatewright"}) as session:
        client = RegistryClient(
            session, logins, frozenset(settings.insecure_registries), _trusted(settings)
        )
        yield ImageLookUps(RegistryReader(client), RegistryMetrics(registry or CollectorRegistry()))


def _trusted(settings: Settings) -> ssl.SSLContext | bool:
    if settings.registry_ca is None:
        return True
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(settings.registry_ca)
    except OSError as error:  # ssl.SSLError is one
        reason = error.strerror or str(error)
        raise RegistryConfigError(f"{settings.registry_ca}: {reason}") from error
    return context
