"""The changes that a plan would cause in a cluster, by server-side dry run."""

import difflib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from controller.runtime.apply import APPLIED, FIELD_MANAGER
from controller.runtime.cache import is_secret
from controller.runtime.plan import CreateOnly, Object, Observed
from gatewright.hidden import hidden
from gatewright.planning import optional_resources
from gatewright.plans import Parent, Planned, planned
from gatewright.written import written
from kube.client import Client
from kube.errors import ApiError, NotFound
from kube.resource import Resource
from kube.store import controller_of

SERVERS_OWN = (
    "creationTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)
Id = tuple[Resource, str]
Found = dict[tuple[Resource, str, str], list[Object]]


@dataclass(frozen=True, slots=True)
class Difference:
    """One object that would be made or changed: as it is, as it would be, and what else is to be said."""

    made: Planned
    before: Object | None
    after: Object | None
    note: str = ""

    def lines(self) -> Iterator[str]:
        """Yield a unified diff, with nothing of what a Secret holds; nothing where nothing would change."""
        object = self.made.object
        name = f"{object['apiVersion']} {object['kind']} {self.made.parent.namespace}/{object['metadata']['name']}"
        before, after = _shown(self.before, None), _shown(self.after, self.before)
        found = difflib.unified_diff(before, after, f"{name} (there)", f"{name} (planned)", lineterm="")
        if self.note:
            yield from (f"# {line}" for line in f"{name}: {self.note}".splitlines())
        yield from found


class Cluster:
    """What is there of the children of some parents."""

    def __init__(self, client: Client, settings: Mapping[str, Any], now: datetime) -> None:
        self._client = client
        self._settings = settings
        self._now = now
        self._served: frozenset[Resource] | None = None

    async def differences(self, parent: Parent) -> AsyncIterator[Difference]:
        """Yield what would come of each object that is planned for `parent`, and of what is planned for those."""
        there: dict[str, Object | None] = {}
        read: dict[str, Found] = {}
        children: dict[Id, Object] = {}
        served = await self._optional()
        nothing = Observed(settings=self._settings, served=served)
        for made in planned(parent, self._now, self._settings, lambda _: nothing):
            await self._look(made, there, children)
            if made.parent.title not in read:
                read[made.parent.title] = await self._read(made.parent)

        def observed(each: Parent) -> Observed:
            uid = _uid(there.get(each.title))
            ours = [child for child in children.values() if uid and _is_made_by(child, uid)]
            return Observed(children=ours, found=read.get(each.title, {}), settings=self._settings, served=served)

        for made in planned(parent, self._now, self._settings, observed):
            await self._look(made, there, children)
            uid = _uid(there[made.parent.title])
            yield await self._difference(made, children.get(_id(made)), uid)

    async def _optional(self) -> frozenset[Resource]:
        """Return what the API server has of what it may be without."""
        if self._served is None:
            self._served = frozenset([each for each in optional_resources() if await self._client.serves(each)])
        return self._served

    async def _look(self, made: Planned, there: dict[str, Object | None], children: dict[Id, Object]) -> None:
        parent = made.parent
        if parent.title not in there:
            there[parent.title] = await self._get(parent.kind.resource, parent.namespace, parent.object)
        if _id(made) not in children:
            child = await self._get(made.resource, parent.namespace, made.object)
            if child is not None:
                children[_id(made)] = child

    async def _read(self, parent: Parent) -> Found:
        """Return what a planner finds beside the children; whether a Secret is there changes nothing that is made."""
        kind, found = parent.kind, Found()
        for resource, reads in kind.reads.items():
            if is_secret(resource):
                continue
            namespace = parent.namespace if resource.namespaced else None
            with suppress(NotFound):  # an API that planners can do without
                async for each in self._client.list(resource, namespace, labels=reads.labels):
                    for index, values in reads.indexes.items():
                        for value in values(each):
                            found.setdefault((resource, index, value), []).append(each)
        return found

    async def _difference(self, made: Planned, current: Object | None, uid: str) -> Difference:
        if current is not None and not (uid and _is_made_by(current, uid)) and not _is_known(made, current):
            return Difference(made, None, None, f"is there and was not made by {made.parent.title}: it stays as it is")
        if isinstance(made.write, CreateOnly):
            return Difference(made, None, None) if current is not None else Difference(made, None, made.object)
        exactly = {} if current is None else {"uid": _uid(current)}
        wanted = made.object | {"metadata": made.object["metadata"] | exactly}
        try:
            after = await self._client.apply(
                made.resource, wanted, field_manager=FIELD_MANAGER, force=current is not None, dry_run=True
            )
        except ApiError as error:
            if error.code == 0:
                raise  # the API server is unreachable
            return Difference(made, current, made.object, f"the API server refuses it: {error}")
        return Difference(made, current, after)

    async def _get(self, resource: Resource, namespace: str, object: Object) -> Object | None:
        try:
            return await self._client.get(
                resource, object["metadata"]["name"], namespace if resource.namespaced else None
            )
        except NotFound:
            return None


def _id(made: Planned) -> Id:
    return made.resource, made.resource.key(made.parent.namespace, made.object["metadata"]["name"])


def _uid(object: Object | None) -> str:
    return "" if object is None else str(object["metadata"]["uid"])


def _is_made_by(object: Object, uid: str) -> bool:
    owner = controller_of(object["metadata"])
    return owner is not None and owner.uid == uid


def _is_known(made: Planned, object: Object) -> bool:
    """Whether it is one that outlived its parent, and is taken as it is."""
    adopt_labels = made.write.adopt_labels if isinstance(made.write, CreateOnly) else {}
    labels = object["metadata"].get("labels") or {}
    return bool(adopt_labels) and adopt_labels.items() <= labels.items()


def _shown(object: Object | None, before: Object | None) -> list[str]:
    """Return an object as lines of YAML: without what is the server's own, and without what is secret."""
    if object is None:
        return []
    metadata = {key: value for key, value in object["metadata"].items() if key not in SERVERS_OWN}
    if annotations := {
        key: value for key, value in (metadata.pop("annotations", None) or {}).items() if key != APPLIED
    }:
        metadata["annotations"] = annotations
    shown = {key: value for key, value in object.items() if key != "status"} | {"metadata": metadata}
    return written(hidden(shown, before), sort_keys=True).splitlines()
