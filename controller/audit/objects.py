"""Reads what an audit judges: the objects in its scope, kind by kind."""

from collections.abc import AsyncIterator, Callable, Iterable

from controller.audit.listing import Lister, Object
from controller.audit.scope import Scope
from kube.errors import ApiError, NotFound, Unreachable
from kube.resource import Resource
from webhook.engine.kinds import Kind
from webhook.engine.planners import Served


def resource_of(kind: Kind) -> Resource:
    """Return where the objects of a kind are listed, in its newest version."""
    return Resource(kind.group, kind.versions[-1], kind.plural, kind.kind, namespaced=kind.namespaced)


async def objects(
    lister: Lister, scope: Scope, refused: Callable[[Kind, ApiError], None]
) -> AsyncIterator[tuple[Kind, Object]]:
    """Yield the objects in `scope`; of kinds that the API server does not have there are none.

    `refused` is called for each kind that cannot be listed. Unreachable where the API server cannot be reached.
    """
    versions = await lister.versions()
    for kind in scope.kinds:
        resource = resource_of(kind)
        if resource.api_version not in versions:
            continue
        try:
            async for object in lister.objects(resource):
                if scope.includes(kind, object):
                    yield kind, object
        except NotFound:
            continue  # its CRD is not installed
        except Unreachable:
            raise
        except ApiError as error:
            refused(kind, error)


async def served(lister: Lister, optional: Iterable[Resource]) -> Served:
    """Return which of the optional resources the API server has."""
    return frozenset([(each.group, each.plural) for each in optional if await lister.serves(each)])
