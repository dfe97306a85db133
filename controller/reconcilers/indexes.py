"""Indexes of the resources that kinds own and read."""

from collections.abc import Callable, Iterator

from kube.resource import JsonObject


def by_name(object: JsonObject) -> Iterator[str]:
    """Yield an object's name."""
    yield object["metadata"]["name"]


def by_label(label: str) -> Callable[[JsonObject], Iterator[str]]:
    """Return the index by the value of a label; objects without the label are not indexed."""

    def read_label(object: JsonObject) -> Iterator[str]:
        if value := object["metadata"].get("labels", {}).get(label):
            yield value

    return read_label


def keep_metadata(object: JsonObject, *more: str) -> JsonObject:
    """Return labels, owners and `more` fields of the metadata, all that a planner reads of it."""
    about = object["metadata"]
    read = ("labels", "ownerReferences", *more)
    return {"metadata": {key: about[key] for key in read if key in about}}


def nothing(object: JsonObject) -> JsonObject:
    """Return no field: a planner reads only whether the object exists."""
    del object
    return {}
