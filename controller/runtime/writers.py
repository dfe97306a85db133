"""Who else writes a field of an object, by its managedFields, and what to do about it."""

from typing import Any, NamedTuple

from kube.resource import JsonObject

UNKNOWN = "another writer"


class Writer(NamedTuple):
    """A field manager; `is_own` if it has the name of this process's own.

    Then `lease` is the Lease of the other installation, if it is known.
    """

    manager: str
    subresource: str = ""
    is_own: bool = False
    lease: str = ""

    def __str__(self) -> str:
        """Return the name for a message."""
        if self.is_own:
            lease = f" (Lease {self.lease})" if self.lease else ""
            return f"another Gatewright controller{lease}"
        scope = f" (subresource {self.subresource})" if self.subresource else ""
        return f"{self.manager}{scope}" if self.manager else UNKNOWN


def writer_of(live: JsonObject, field: str, own: str) -> Writer:
    """Return who last wrote a field of a live object that `own` had applied.

    If the field has no owner any more, it was removed: probably by the last writer.
    """
    entries = live["metadata"].get("managedFields") or []
    others = [each for each in entries if (each["manager"], each["operation"]) != (own, "Apply")]
    owners = [each for each in others if _owns(each.get("fieldsV1") or {}, field)]
    if not owners and any(_owns(each.get("fieldsV1") or {}, field) for each in entries):
        return Writer(own, is_own=True)
    last: JsonObject = max(owners or others, key=lambda each: str(each.get("time", "")), default={})
    return Writer(last.get("manager", ""), last.get("subresource", ""))


def contest(what: str, field: str, writer: Writer, parent: str, *, has_scale: bool) -> str:
    """Return the message about a field of a child that another writer keeps changing."""
    if writer.is_own:
        remedy = "Let one installation reconcile each kind and namespace (--kinds, --namespaces)"
    elif writer.subresource == "scale":
        remedy = (
            f"Let the autoscaler target {parent}, which has a /scale"
            if has_scale
            else f"Remove the autoscaler: {parent} sets the replicas"
        )
    else:
        remedy = f"Change {parent} instead, or stop the other writer"
    return f"{what}: {_restored_message(field, writer)}. {remedy}"


def contest_of_status(field: str, writer: Writer) -> str:
    """Return the message about a field of an object's status that another writer changes."""
    return f"{_restored_message(field, writer)}. Stop the other writer"


def _restored_message(field: str, writer: Writer) -> str:
    return f"{field} is changed again and again by {writer}; it is restored once a minute"


def _owns(fields: dict[str, Any], path: str) -> bool:
    """Return whether a set of managed fields has the field at `path`, or all around it."""
    if not path or not fields:
        return True
    if path.startswith("["):
        rest = path.partition("]")[2].removeprefix(".")
        items = [each for key, each in fields.items() if key.startswith(("k:", "v:"))]
        return any(_owns(item, rest) for item in items)
    for key, inner in fields.items():
        name = key.removeprefix("f:")
        if path == name or path.startswith((f"{name}.", f"{name}[")):
            return _owns(inner, path[len(name) :].removeprefix("."))
    return False
