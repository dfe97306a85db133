"""Lists in consistent pages, and objects in the requested form."""

import base64
import itertools
from typing import Any

import orjson

from gatewright.testing.fake_apiserver.definitions import ServedResource
from gatewright.testing.fake_apiserver.refusals import StatusError, expired_token
from gatewright.testing.fake_apiserver.selectors import matcher
from gatewright.testing.fake_apiserver.storage import Storage
from kube.resource import JsonObject


class StorageReader:
    """Get and list on a Storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._snapshots: dict[int, tuple[int, list[JsonObject]]] = {}
        self._numbers = itertools.count(1)

    def page(self, kind: ServedResource, namespace: str, query: Any) -> JsonObject:
        """Return a page of the list; all pages have the state at the time of the first."""
        chosen = matcher(kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        if token := query.get("continue"):
            version, matching, start = self._continue(token)
            if version < self._storage.oldest:
                now = [
                    object
                    for _, object in self._storage.all(kind.bucket, namespace)
                    if chosen(object)
                ]
                rest = [object for object in now if _key(object) > _key(matching[start - 1])]
                raise expired_token(self._token(self._storage.version, rest, 0))
        else:
            matching = [
                object for _, object in self._storage.all(kind.bucket, namespace) if chosen(object)
            ]
            version, start = self._storage.version, 0
            if int(query.get("resourceVersion") or 0) > version:
                causes = [
                    {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
                ]
                raise StatusError(
                    504,
                    "Too large resource version",
                    details={"causes": causes, "retryAfterSeconds": 1},
                )
        limit = int(query.get("limit") or 0) or len(matching)
        end = start + limit
        metadata: JsonObject = {"resourceVersion": str(version)}
        if end < len(matching):
            metadata["continue"] = self._token(version, matching, end)
            metadata["remainingItemCount"] = len(matching) - end
        resource = kind.resource
        items = [self.form(kind, object) for object in matching[start:end]]
        if not kind.custom:  # like the real one: the List has the kind of its items
            items = [
                {name: item[name] for name in item if name not in ("apiVersion", "kind")}
                for item in items
            ]
        return {
            "kind": f"{resource.kind}List",
            "apiVersion": resource.api_version,
            "metadata": metadata,
            "items": items,
        }

    def _continue(self, token: str) -> tuple[int, list[JsonObject], int]:
        try:
            number, start = orjson.loads(base64.urlsafe_b64decode(token))
        except ValueError:
            raise StatusError(400, "continue key is not valid") from None
        version, matching = self._snapshots[number]
        return version, matching, start

    def _token(self, version: int, matching: list[JsonObject], start: int) -> str:
        number = next(self._numbers)
        self._snapshots[number] = (version, matching)
        return base64.urlsafe_b64encode(orjson.dumps([number, start])).decode()

    @staticmethod
    def form(kind: ServedResource, object: JsonObject) -> JsonObject:
        """Return an object in the requested version."""
        api_version = kind.resource.api_version
        return (
            object
            if object.get("apiVersion") == api_version
            else object | {"apiVersion": api_version}
        )


def _key(object: JsonObject) -> tuple[str, str]:
    return object["metadata"].get("namespace", ""), object["metadata"]["name"]


def metadata_only(object: JsonObject) -> JsonObject:
    """Return an object, or a List, as PartialObjectMetadata."""
    if "items" in object:
        items = [metadata_only(item) for item in object["items"]]
        listed = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
        return listed | {"metadata": object["metadata"], "items": items}
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    }
