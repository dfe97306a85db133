"""Lists the objects of a cluster that policies judge, and those that policies look up."""

from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from typing import NamedTuple

from controller.audit.judge import ObjectJudge
from controller.audit.listing import Lister
from kube.resource import GroupKind, JsonObject, Resource
from webhook.engine import Engine
from webhook.engine.kinds import KINDS, NAMESPACES, Kind
from webhook.engine.look_ups import LOOK_UPS
from webhook.known import Known

NAMESPACE = KINDS["", "Namespace"].resource


class Existing(NamedTuple):
    """An object of a cluster; `is_owned` if its owner is judged instead."""

    kind: Kind
    object: JsonObject
    is_owned: bool


async def existing(
    lister: Lister, judges: Sequence[ObjectJudge], excluded: Collection[str] = ()
) -> AsyncIterator[Existing]:
    """Yield each object of a cluster that must be judged.

    Objects that are being deleted, and those in `excluded` namespaces, are skipped. So are objects
    whose owner is judged instead by all judges, unless a policy judges owned objects too.
    """
    kinds = frozenset[Kind]().union(*(judge.kinds for judge in judges))
    when_owned = frozenset[Kind]().union(*(judge.kinds_judged_when_owned for judge in judges))
    for kind in sorted(kinds, key=lambda each: (each.group, each.kind)):
        async for object in lister.objects(kind.resource):
            metadata = object["metadata"]
            is_namespace = (kind.group, kind.plural) == NAMESPACES
            namespace = metadata["name"] if is_namespace else metadata.get("namespace")
            if namespace in excluded or "deletionTimestamp" in metadata:
                continue
            is_owned = all(judge.owner_answers(kind, object) for judge in judges)
            if not is_owned or kind in when_owned:
                yield Existing(kind, object, is_owned)


async def look_up(lister: Lister, *engines: Engine) -> Known:
    """Return the namespaces, and the look-ups of policies and planners, except `unread` ones."""
    data = Known()
    async for object in lister.objects(NAMESPACE):
        data.set_labels(object["metadata"]["name"], object["metadata"].get("labels"), object)
    needed = {name for engine in engines for bound in engine.policies for name in bound.needs}
    for name in sorted(needed & LOOK_UPS.keys()):
        resources = LOOK_UPS[name].resources
        for resource in resources:
            async for object in lister.objects(resource):
                data.add(object, object["metadata"].get("namespace", ""))
        if not lister.unread.keys().isdisjoint(resources):
            data.forget(name)
    optional = {
        kind.resource
        for engine in engines
        for planner in engine.planners
        for kind in planner.optional
    }
    data.served = frozenset(
        [
            (resource.group, resource.plural)
            for resource in sorted(optional)
            if await lister.has(resource) and await lister.client.serves(resource)
        ]
    )
    return data


def kinds_of(resources: Iterable[Resource]) -> list[Kind]:
    """Return the kinds of a cluster that the table of kinds lacks, with all served versions.

    The first version in `resources` is the preferred one; it becomes the last of the kind.
    """
    served: dict[GroupKind, list[Resource]] = {}
    for resource in resources:
        served.setdefault((resource.group, resource.kind), []).append(resource)
    return [
        Kind(
            *group_kind,
            preferred.plural,
            versions=(*(each.version for each in others), preferred.version),
            namespaced=preferred.namespaced,
        )
        for group_kind, (preferred, *others) in served.items()
        if group_kind not in KINDS
    ]
