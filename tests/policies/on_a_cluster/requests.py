"""The requests that send a case to the API server."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kube.resource import JsonObject, group_version_kind
from webhook.engine.kinds import resource_of
from webhook.harness.bases import is_cluster_scoped, smallest
from webhook.harness.reviews import Admission


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to the API server."""

    method: str
    path: str
    body: JsonObject | None = None
    query: tuple[tuple[str, str], ...] = ()


def path_of(
    object: JsonObject, name: str | None = None, namespace: str | None = None, subresource: str = ""
) -> str:
    """Return the URL path of a collection, of an object, or of a subresource."""
    group, version, kind = group_version_kind(object)
    steps = [f"/apis/{group}/{version}" if group else f"/api/{version}"]
    if namespace and not is_cluster_scoped(kind):
        steps.append(f"namespaces/{namespace}")
    steps.append(resource_of(group, kind))
    return "/".join([*steps, *([name] if name else []), *([subresource] if subresource else [])])


def creation(object: JsonObject, namespace: str | None = None) -> Ask:
    """Return the request that creates an object."""
    return Ask(
        "POST", path_of(object, namespace=namespace or object["metadata"].get("namespace")), object
    )


def request_for(admission: Admission, where: str) -> Ask:
    """Return the request that causes a review of `admission`, in the namespace `where`."""
    new, old = admission.object, admission.old_object
    if admission.operation == "CONNECT":
        assert new is not None
        return Ask(
            "POST",
            path_of(smallest("Pod"), "case", where, admission.subresource),
            query=tuple(_options(new)),
        )
    if admission.operation == "CREATE":
        assert new is not None
        return creation(new, where)
    assert old is not None
    if admission.operation == "DELETE":
        return Ask("DELETE", path_of(old, old["metadata"]["name"], where))
    about = smallest("Deployment") if admission.subresource == "scale" else old
    change = difference(old, new)
    return Ask(
        "PATCH", path_of(about, old["metadata"]["name"], where, admission.subresource), change
    )


def _options(connection: JsonObject) -> Iterator[tuple[str, str]]:
    for key, value in connection.items():
        if key not in ("apiVersion", "kind"):
            for item in value if isinstance(value, list) else [value]:
                yield key, item if isinstance(item, str) else json.dumps(item)


def difference(old: Any, new: Any) -> Any:
    """Return the merge patch (RFC 7386) from `old` to `new`."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    gone = {key: None for key, value in old.items() if value is not None and new.get(key) is None}
    kept = {key: value for key, value in new.items() if value is not None and old.get(key) != value}
    return gone | {key: difference(old.get(key), value) for key, value in kept.items()}
