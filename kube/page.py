"""A page of a collection: one List of the API server, whose objects are decoded one at a time."""

from collections.abc import Iterator
from typing import Any

import msgspec

from kube.errors import ServerError
from kube.resource import Resource
from kube.transport import decode


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    token: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _Metadata
    kind: str = ""
    items: list[msgspec.Raw] | None = None


LIST = msgspec.json.Decoder(_List)


class ListPage:
    """One List as JSON; each object is decoded when it is read, to save memory."""

    def __init__(self, resource: Resource, body: bytes) -> None:
        """Take the response of a list request. Raises ServerError if it is not a List."""
        try:
            found = LIST.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ServerError(200, "NotAList", f"the response is not a List: {error}") from None
        if not found.kind.endswith("List") or found.kind == "List":
            raise ServerError(
                200,
                "NotAList",
                f'the response is no list of {resource.plural}: kind "{found.kind}"',
            )
        self.version = int(found.metadata.resource_version or 0)
        self.token = found.metadata.token
        """The continue token of the next page; empty on the last one."""
        self._resource, self._items = resource, found.items or []

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Decode each object.

        Add its apiVersion and kind, which the List of a built-in kind omits.
        """
        defaults = {"apiVersion": self._resource.api_version, "kind": self._resource.kind}
        for item in self._items:
            object = decode(memoryview(item))
            if object is None:
                raise ServerError(200, "NotAList", "an item of the List is not a JSON object")
            yield defaults | object
