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


PAGE = 500  # objects of a page at most
# Bytes of a page at most, except for a page of one object: whatever others have stored, a list
# needs this much memory.
MAX_PAGE_BYTES = 2 * 1024 * 1024

LIST = msgspec.json.Decoder(_List)


class ListPage:
    """One List as JSON; each object is decoded when it is read, to save memory."""

    def __init__(self, resource: Resource, body: bytes | bytearray) -> None:
        """Take the response of a list request. Raises ServerError if it is not a List."""
        try:
            decoded = LIST.decode(body)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ServerError(200, "NotAList", f"the response is not a List: {error}") from None
        if not decoded.kind.endswith("List") or decoded.kind == "List":
            raise ServerError(
                200,
                "NotAList",
                f'the response is no list of {resource.plural}: kind "{decoded.kind}"',
            )
        self.version = int(decoded.metadata.resource_version or 0)
        self.token = decoded.metadata.token
        """The continue token of the next page; empty on the last one."""
        self._resource, self._items = resource, decoded.items or []
        average = max(1, len(body) // max(1, len(self._items)))
        self.next_limit = min(PAGE, max(1, MAX_PAGE_BYTES // 2 // average))
        """How many objects of this size are half a page: the limit for the next one."""

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


def smaller(limit: int) -> int:
    """Return the next limit to try after a page of `limit` objects (0: all) was too large."""
    return max(1, limit // 8) if limit else PAGE
