"""A write, and the checks of the API server before the object is stored."""

from dataclasses import dataclass

from gatewright.testing.fake_apiserver.definitions import ServedResource
from gatewright.testing.fake_apiserver.ownership import FieldManager
from gatewright.testing.fake_apiserver.refusals import StatusError, conflict, invalid
from gatewright.testing.fake_apiserver.storage import ObjectKey
from kube.resource import JsonObject


@dataclass(frozen=True)
class WriteRequest:
    """The target and the options of a write."""

    kind: ServedResource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    manager: str = "unknown"
    dry_run: bool = False

    @property
    def key(self) -> ObjectKey:
        """The key of the written object."""
        return (self.namespace, self.name)

    def by(self, operation: str) -> FieldManager:
        """Return the field manager of the write."""
        return FieldManager(
            self.manager, operation, self.kind.resource.api_version, self.subresource
        )


def check_version(write: WriteRequest, old: JsonObject, required: JsonObject) -> None:
    """Reject a write with another resourceVersion."""
    if required.get("resourceVersion") not in (None, "", old["metadata"]["resourceVersion"]):
        why = (
            "the object has been modified; please apply your changes to the latest version "
            "and try again"
        )
        raise conflict(write.kind.resource.plural, write.name, why)


def check_uid(write: WriteRequest, old: JsonObject, required: JsonObject) -> None:
    """Reject a precondition with another uid."""
    uid = old["metadata"]["uid"]
    if required.get("uid") not in (None, "", uid):
        precondition = f"UID in precondition: {required['uid']}, UID in object meta: {uid}"
        why = f"Precondition failed: {precondition}"
        raise conflict(write.kind.resource.plural, write.name, why)


def check_immutable(write: WriteRequest, old: JsonObject, required: JsonObject) -> None:
    """Reject a change of the uid, which is immutable."""
    if required.get("uid") not in (None, "", old["metadata"]["uid"]):
        cause = ("metadata.uid", f'Invalid value: "{required["uid"]}": field is immutable')
        raise invalid(write.kind.resource.kind, write.name, cause)


def check_identity(write: WriteRequest, new: JsonObject) -> None:
    """Reject an object that is not the one in the URL."""
    metadata = new["metadata"]
    if metadata.get("name") != write.name or metadata.get("namespace", "") != write.namespace:
        raise StatusError(400, "the name or namespace of the object does not match the URL")


def check_finalizers(write: WriteRequest, old: JsonObject, required: JsonObject) -> None:
    """Reject a finalizer that is added to an object in deletion."""
    added = set(required.get("finalizers") or []) - set(old["metadata"].get("finalizers") or [])
    if "deletionTimestamp" in old["metadata"] and added:
        why = "Forbidden: no new finalizers can be added if the object is being deleted"
        raise invalid(write.kind.resource.kind, write.name, ("metadata.finalizers", why))
