"""Write the AdmissionReview that the API server would send for an object."""

from dataclasses import dataclass
from typing import Any

import orjson

from webhook.engine import kinds

SERVER_UID = "00000000-0000-0000-0000-000000000000"
SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale"}


@dataclass(frozen=True, slots=True)
class Admission:
    """A request to the API server: an operation on an object, or on a subresource of `parent_kind`."""

    object: dict[str, Any] | None
    old_object: dict[str, Any] | None = None
    operation: str = "CREATE"
    namespace: str = ""
    subresource: str = ""
    parent_kind: tuple[str, str] | None = None  # group and kind, if they differ from the object's (Scale, exec)
    parent_name: str = ""  # for objects without a name (exec)
    username: str = "kubernetes-admin"
    groups: tuple[str, ...] = ("system:authenticated",)
    sent: tuple[str, str, str] | None = None  # group, version and kind of the request, if they differ from the object's
    resource: str = ""  # of the object, where a policy or a CustomResourceDefinition names it; else the regular plural

    @property
    def about(self) -> dict[str, Any]:
        """The object of the request; for DELETE the old one."""
        return self.object if self.object is not None else self.old_object or {}


def group_version_kind(object: dict[str, Any]) -> tuple[str, str, str]:
    """Return group, version and kind of an object."""
    group, _, version = str(object.get("apiVersion", "")).rpartition("/")
    return group, version, str(object.get("kind", ""))


def review(admission: Admission) -> bytes:
    """Return the encoded AdmissionReview of `admission`."""
    about = admission.about
    group, version, kind = group_version_kind(about)
    parent_group, parent_kind = admission.parent_kind or (group, kind)
    metadata = about.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    request = {
        "uid": SERVER_UID,
        "kind": _named(group, version, kind),
        "requestKind": _named(*(admission.sent or (group, version, kind))),
        "resource": {
            "group": parent_group,
            "version": version if admission.parent_kind is None else "v1",
            "resource": admission.resource or kinds.resource_of(parent_group, parent_kind),
        },
        "subResource": admission.subresource,
        "operation": admission.operation,
        "namespace": admission.namespace,
        "name": metadata.get("name", admission.parent_name),
        "userInfo": {"username": admission.username, "groups": list(admission.groups)},
        "object": admission.object,
        "oldObject": admission.old_object,
    }
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def _named(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}
