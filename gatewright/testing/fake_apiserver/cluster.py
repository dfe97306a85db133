"""Controllers of every cluster: garbage collection, deletion of namespaces, kinds of CRDs."""

import asyncio

from gatewright.testing.fake_apiserver.definitions import ServedResource, built_in, from_crd
from gatewright.testing.fake_apiserver.refusals import not_found
from gatewright.testing.fake_apiserver.storage import Storage
from gatewright.testing.fake_apiserver.write_request import WriteRequest
from gatewright.testing.fake_apiserver.writes import CRDS, NAMESPACES, Writes
from kube.resource import JsonObject


class FakeCluster:
    """The served kinds, and the controllers that every cluster has."""

    def __init__(self, storage: Storage, writes: Writes) -> None:
        self._storage = storage
        self._writes = writes
        self._kinds = {self._place(kind): kind for kind in built_in()}
        self._uids: set[str] = set()
        self._collecting = False
        writes.on_stored = self._follow_write
        writes.on_removed = self._follow_removal

    def kind(self, group: str, version: str, plural: str) -> ServedResource:
        """Return the definition of a resource. Raises StatusError if it is not served."""
        if (kind := self._kinds.get((group, version, plural))) is None:
            raise not_found(plural, "")
        return kind

    def kinds(self, group: str, version: str) -> list[ServedResource]:
        """Return the kinds served under one group and version."""
        return [kind for place, kind in self._kinds.items() if place[:2] == (group, version)]

    def groups(self) -> dict[str, list[str]]:
        """Return the served versions of each named group."""
        served: dict[str, list[str]] = {}
        for group, version, _ in self._kinds:
            if group and version not in served.setdefault(group, []):
                served[group].append(version)
        return served

    def define(self, crd: JsonObject) -> None:
        """Serve the versions that a CRD defines, and no longer those of its previous definition."""
        self._undefine(crd)
        self._kinds |= {self._place(kind): kind for kind in from_crd(crd)}

    @staticmethod
    def _place(kind: ServedResource) -> tuple[str, str, str]:
        return (kind.resource.group, kind.resource.version, kind.resource.plural)

    def _undefine(self, crd: JsonObject) -> None:
        group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
        self._kinds = {
            place: kind
            for place, kind in self._kinds.items()
            if (place[0], place[2]) != (group, plural)
        }

    def _follow_write(self, kind: ServedResource, object: JsonObject) -> None:
        self._uids.add(object["metadata"]["uid"])
        if kind.resource.kind == "CustomResourceDefinition":
            self.define(object)
        if self._is_orphan(object) or (
            kind.bucket in (CRDS, NAMESPACES) and "deletionTimestamp" in object["metadata"]
        ):
            self._collect_soon()

    def _follow_removal(self, kind: ServedResource, object: JsonObject) -> None:
        self._uids.discard(object["metadata"]["uid"])
        if kind.resource.kind == "CustomResourceDefinition":
            self._delete_objects(object)
            self._undefine(object)
        self._collect_soon()

    def _delete_objects(self, crd: JsonObject) -> None:
        for kind in from_crd(crd):
            for (namespace, name), _ in self._storage.all(kind.bucket):
                self._writes.delete(WriteRequest(kind, namespace, name), {})

    def _is_orphan(self, object: JsonObject) -> bool:
        owners = object["metadata"].get("ownerReferences")
        return bool(owners) and not any(owner["uid"] in self._uids for owner in owners)

    def _collect_soon(self) -> None:
        if not self._collecting:
            self._collecting = True
            asyncio.get_running_loop().call_soon(self._collect)

    def _collect(self) -> None:
        """Delete objects whose owners are gone, and objects of terminating namespaces and CRDs.

        Then delete those namespaces and CRDs.
        """
        self._collecting = False
        for key, crd in self._storage.all(CRDS):
            if "deletionTimestamp" in crd["metadata"]:
                self._delete_objects(crd)
                if not any(self._storage.all(kind.bucket) for kind in from_crd(crd)):
                    self._storage.commit(CRDS, key, None)
                    self._undefine(crd)
        kinds = {kind.bucket: kind for kind in self._kinds.values()}
        namespaces = self._storage.all(NAMESPACES)
        ending = {name for (_, name), each in namespaces if "deletionTimestamp" in each["metadata"]}
        for bucket, (namespace, name), object in self._storage.everything():
            doomed = self._is_orphan(object) or namespace in ending
            if doomed and bucket in kinds and "deletionTimestamp" not in object["metadata"]:
                self._writes.delete(WriteRequest(kinds[bucket], namespace, name), {})
        inhabited = {namespace for _, (namespace, _), _ in self._storage.everything()}
        for name in ending - inhabited:
            self._uids.discard(
                self._storage.commit(NAMESPACES, ("", name), None)["metadata"]["uid"]
            )
