"""Unregister the webhooks: the API server no longer calls them."""

import logging
from collections.abc import Awaitable, Iterable

from config.crds import of_several_versions
from controller.registration.configurations import MUTATING, VALIDATING
from controller.registration.conversion import without_conversion
from kube.client import Client
from kube.errors import ApiError, NotFound
from kube.resource import Resource

log = logging.getLogger("gatewright.unregister")

CONFIGURATIONS = (VALIDATING, MUTATING)
NamedObject = tuple[Resource, str, str | None]  # an object's resource, name and namespace


async def unregister(
    client: Client, configuration: str, leftovers: Iterable[NamedObject] = ()
) -> bool:
    """Delete both webhook configurations and `leftovers`, restore the CRDs' conversion.

    Return whether all steps succeeded.

    Missing objects are skipped. An error is logged, and the remaining steps still run.
    """
    steps = [
        (f"delete {resource.plural}/{configuration}", client.delete(resource, configuration))
        for resource in CONFIGURATIONS
    ]
    steps += [
        (f"restore the conversion of {crd}", without_conversion(client, crd))
        for crd in of_several_versions()
    ]
    steps += [(f"delete {each[0].plural}/{each[1]}", client.delete(*each)) for each in leftovers]
    return all([await _is_done(description, step) for description, step in steps])


async def _is_done(description: str, step: Awaitable[None]) -> bool:
    try:
        await step
    except NotFound:
        return True
    except ApiError as error:
        log.error("%s: %s", description, error)
        return False
    log.info("%s: done", description)
    return True
