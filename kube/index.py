"""An index of a store: the keys of objects by the values that a function finds in them."""

import logging
from collections.abc import Callable, Iterable

from kube.resource import JsonObject

LOG = logging.getLogger("gatewright.kube.index")

IndexFunction = Callable[[JsonObject], Iterable[str]]


class StoreIndex:
    """The keys of objects by the values that a function finds in them."""

    def __init__(self, function: IndexFunction) -> None:
        self.found: dict[str, set[str]] = {}
        self._function = function
        self._values: dict[str, frozenset[str]] = {}  # only of keys that have values

    def put(self, key: str, object: JsonObject) -> None:
        """Index an object under its current values."""
        self.remove(key)
        if values := values_of(self._function, object):
            self._values[key] = values
        for value in values:
            self.found.setdefault(value, set()).add(key)

    def remove(self, key: str) -> None:
        """Remove an object from the index."""
        for value in self._values.pop(key, ()):
            self.found[value].discard(key)
            if not self.found[value]:
                del self.found[value]


def values_of(function: IndexFunction, object: JsonObject) -> frozenset[str]:
    """Return the index values of an object.

    Empty if the function raises: the reader of a malformed object reports it.
    """
    try:
        return frozenset(function(object))
    except Exception as error:  # any error of an index function concerns only this object
        metadata = object["metadata"]
        fields = {"name": metadata["name"], "namespace": metadata.get("namespace")}
        LOG.warning(
            "malformed %s: not found by an index",
            object.get("kind"),
            extra={"fields": fields},
            exc_info=error,
        )
        return frozenset()
