"""The changes that a plan would cause in a cluster, by server-side dry run."""

import difflib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from config.printable import printable
from controller.runtime.applied import APPLIED
from controller.runtime.apply import FIELD_MANAGER
from controller.runtime.cache import is_secret
from controller.runtime.child import with_initial
from controller.runtime.ownership import PARENT
from controller.runtime.plan import CreateOnly, Observed
from gatewright.outputs.redaction import redact
from gatewright.outputs.yaml_text import to_yaml
from gatewright.plans.children import Parent, Planned, plan_children
from gatewright.processes.planners import optional_resources
from kube.client import Client
from kube.errors import ApiError, NotFound
from kube.resource import JsonObject, Resource
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
Found = dict[tuple[Resource, str, str], list[JsonObject]]


@dataclass(frozen=True, slots=True)
class Difference:
    """One object that would be created or changed: the current one, the new one, and a note."""

    child: Planned
    before: JsonObject | None
    after: JsonObject | None
    note: str = ""

    def lines(self) -> Iterator[str]:
        """Yield a unified diff without the values of Secrets.

        Yield nothing if nothing would change.
        """
        object = self.child.object
        id = f"{self.child.parent.namespace}/{object['metadata']['name']}"
        name = printable(f"{object['apiVersion']} {object['kind']} {id}")
        before, after = _render(self.before, None), _render(self.after, self.before)
        diff = difflib.unified_diff(
            before, after, f"{name} (there)", f"{name} (planned)", lineterm=""
        )
        if self.note:
            yield from (f"# {line}" for line in f"{name}: {self.note}".splitlines())
        yield from diff


class Cluster:
    """The existing children of some parents."""

    def __init__(self, client: Client, settings: Mapping[str, Any], now: datetime) -> None:
        self._client = client
        self._settings = settings
        self._now = now
        self._served: frozenset[Resource] | None = None

    async def differences(self, parent: Parent) -> AsyncIterator[Difference]:
        """Yield the difference for each planned child of `parent`, and for their children."""
        there: dict[str, JsonObject | None] = {}
        read: dict[str, Found] = {parent.title: await self._read(parent)}
        children: dict[Id, JsonObject] = {}
        served = await self._optional()

        def observe(each: Parent) -> Observed:
            uid = _uid(there.get(each.title))
            owned = [
                current for current in children.values() if uid and _is_controlled_by(current, uid)
            ]
            return Observed(
                children=owned,
                found=read.get(each.title, {}),
                settings=self._settings,
                served=served,
            )

        for child in plan_children(parent, self._now, self._settings, observe):
            await self._look(child, there, children)
            if child.parent.title not in read:
                read[child.parent.title] = await self._read(child.parent)
        for child in plan_children(parent, self._now, self._settings, observe):
            await self._look(child, there, children)
            uid = _uid(there[child.parent.title])
            yield await self._difference(child, children.get(_id(child)), uid)

    async def _optional(self) -> frozenset[Resource]:
        """Return the optional resources that the API server serves."""
        if self._served is None:
            self._served = frozenset(
                [each for each in optional_resources() if await self._client.serves(each)]
            )
        return self._served

    async def _look(
        self, child: Planned, there: dict[str, JsonObject | None], children: dict[Id, JsonObject]
    ) -> None:
        parent = child.parent
        if parent.title not in there:
            there[parent.title] = await self._get(
                parent.kind.resource, parent.namespace, parent.object
            )
        if _id(child) not in children:
            current = await self._get(child.resource, parent.namespace, child.object)
            if current is not None:
                children[_id(child)] = current

    async def _read(self, parent: Parent) -> Found:
        """Return the objects that a planner reads besides the children.

        Secrets are not read: they do not change the plan.
        """
        kind, objects = parent.kind, Found()
        for resource, reads in kind.reads.items():
            if is_secret(resource):
                continue
            namespace = parent.namespace if resource.namespaced else None
            with suppress(NotFound):  # optional to planners
                async for object in self._client.list(resource, namespace, labels=reads.labels):
                    for index, values in reads.indexes.items():
                        for value in values(object):
                            objects.setdefault((resource, index, value), []).append(object)
        return objects

    async def _difference(self, child: Planned, current: JsonObject | None, uid: str) -> Difference:
        is_own = current is not None and uid != "" and _is_controlled_by(current, uid)
        if current is not None and not (is_own or _is_known(child, current)):
            note = f"exists and is not owned by {child.parent.title}; it is not changed"
            return Difference(child, None, None, note)
        if isinstance(child.write, CreateOnly):
            return Difference(child, None, None if current is not None else child.object)
        exactly = {} if current is None else {"uid": _uid(current)}
        object = with_initial(child.object, child.write.initial, current)
        desired = object | {"metadata": object["metadata"] | exactly}
        try:
            after = await self._client.apply(
                child.resource,
                desired,
                field_manager=FIELD_MANAGER,
                force=current is not None,
                dry_run=True,
            )
        except ApiError as error:
            if error.code == 0:
                raise  # the API server is unreachable
            return Difference(child, current, child.object, f"rejected by the API server: {error}")
        return Difference(child, current, after)

    async def _get(
        self, resource: Resource, namespace: str, object: JsonObject
    ) -> JsonObject | None:
        try:
            return await self._client.get(
                resource, object["metadata"]["name"], namespace if resource.namespaced else None
            )
        except NotFound:
            return None


def _id(child: Planned) -> Id:
    return child.resource, child.resource.key(
        child.parent.namespace, child.object["metadata"]["name"]
    )


def _uid(object: JsonObject | None) -> str:
    return "" if object is None else str(object["metadata"]["uid"])


def _is_controlled_by(object: JsonObject, uid: str) -> bool:
    owner = controller_of(object["metadata"])
    return owner is not None and owner.uid == uid


def _is_known(child: Planned, object: JsonObject) -> bool:
    """Whether an object has outlived its parent and would be adopted unchanged."""
    adopt_labels = child.write.adopt_labels if isinstance(child.write, CreateOnly) else {}
    labels = object["metadata"].get("labels") or {}
    return bool(adopt_labels) and adopt_labels.items() <= labels.items()


def _render(object: JsonObject | None, before: JsonObject | None) -> list[str]:
    """Return an object as lines of YAML, without server-set fields and secret values."""
    if object is None:
        return []
    metadata = {key: value for key, value in object["metadata"].items() if key not in SERVERS_OWN}
    annotations = dict(metadata.pop("annotations", None) or {})
    for own in (APPLIED, PARENT):
        annotations.pop(own, None)
    if annotations:
        metadata["annotations"] = annotations
    shown = {**object, "metadata": metadata}
    shown.pop("status", None)
    return to_yaml(redact(shown, before), sort_keys=True).splitlines()
