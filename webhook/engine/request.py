"""What is to be judged: one admission request, read through typed getters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.engine.fields import Fields
from webhook.engine.kinds import KINDS, Kind, TargetKey

NOTHING: Mapping[str, Any] = {}
NAMESPACE_LABELS = "namespace_labels"  # what a namespaceSelector must have looked up: a dict of strings
GENERATED = "xxxxx"  # as long as what the API server adds to a generateName
NAME_LABEL = "kubernetes.io/metadata.name"  # which the API server gives to every Namespace
DELETION_METADATA = frozenset({"finalizers", "resourceVersion", "generation", "managedFields"})  # may change


class NotLookedUpError(Exception):
    """A policy needs something from the cluster that nobody looked up for this request."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """What an AdmissionRequest says beside its objects, in the API's own words (admission.k8s.io/v1)."""

    uid: str
    operation: str
    group: str
    version: str
    kind: str
    resource_group: str
    resource: str
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    username: str = ""
    groups: tuple[str, ...] = ()
    dry_run: bool = False
    requested: tuple[str, str, str] | None = None  # group, version, kind as sent, where matchPolicy changed them

    @property
    def target(self) -> TargetKey:
        """What the policies for this request are looked up by."""
        return self.resource_group, self.resource, self.subresource, self.operation


class Request(Fields):
    """One admission request: the fields of the object it is about, and what is said beside it.

    `object` and `old_object` are the decoded JSON objects, or None; reading goes to `object`, and on DELETE, which has
    none, to `old_object`. `looked_up` holds what was fetched from the cluster for it, under the names policies declare
    in `needs`; what is missing there is an error, never an empty answer.
    """

    __slots__ = ("_kind", "attributes", "looked_up", "object", "old_object")

    def __init__(
        self,
        attributes: Attributes,
        object: dict[str, Any] | None,
        old_object: dict[str, Any] | None = None,
        looked_up: Mapping[str, Any] = NOTHING,
        kind: Kind | None = None,
    ) -> None:
        """Keep what was asked; nothing is copied. `kind` says where pods stand, if the table does not know."""
        super().__init__((old_object if object is None else object) or {})
        self.attributes = attributes
        self.object = object
        self.old_object = old_object
        self.looked_up = looked_up
        self._kind = kind or KINDS.get((attributes.group, attributes.kind))

    @property
    def kind(self) -> str:
        """The kind of the object: for a /scale subresource that is Scale."""
        return self.attributes.kind

    @property
    def name(self) -> str:
        """The object's name, or one such as it will get where the API server is still to generate it."""
        prefix = None if self.attributes.name else self.string("metadata.generateName")
        return f"{prefix}{GENERATED}" if prefix else self.attributes.name

    @property
    def resource_kind(self) -> str:
        """The kind of the resource it is about: for the /scale of a Deployment that is Deployment."""
        return self._kind.kind if self._kind is not None else self.attributes.kind

    def with_object(self, object: dict[str, Any]) -> "Request":
        """Return the same request about another state of its object."""
        return Request(self.attributes, object, self.old_object, self.looked_up, self._kind)

    def with_looked_up(self, looked_up: Mapping[str, Any]) -> "Request":
        """Return the same request with what was looked up for it."""
        return Request(self.attributes, self.object, self.old_object, looked_up, self._kind)

    def of_kind(self, kind: Kind) -> "Request":
        """Return the same request about an object of a kind that the table need not know."""
        return (
            self if self._kind is kind else Request(self.attributes, self.object, self.old_object, self.looked_up, kind)
        )

    def before(self) -> "Request | None":
        """Return a request about the object as it was before an UPDATE; None where there was none."""
        if self.attributes.operation != "UPDATE" or self.old_object is None:
            return None
        return Request(self.attributes, self.old_object, None, self.looked_up, self._kind)

    @property
    def is_being_deleted(self) -> bool:
        """Whether an update is about an object that is being deleted already."""
        metadata = (self.old_object or {}).get("metadata")
        is_deleted = isinstance(metadata, dict) and metadata.get("deletionTimestamp") is not None
        return is_deleted and self.attributes.operation == "UPDATE"

    @property
    def only_removes_finalizers(self) -> bool:
        """Whether an update of an object that is being deleted changes nothing but what its deletion needs."""
        try:
            return self.is_being_deleted and _without_deletion_fields(self.object) == _without_deletion_fields(
                self.old_object
            )
        except RecursionError:  # objects of a thousand levels, which are judged then
            return False

    def lookup(self, name: str) -> Any:
        """Return what was looked up under `name`; NotLookedUpError where nobody did."""
        try:
            return self.looked_up[name]
        except KeyError:
            raise NotLookedUpError(name) from None

    def namespace_labels(self) -> Mapping[str, str]:
        """Return the labels of its namespace; a Namespace is its own, as it is going to be."""
        if (self.attributes.resource_group, self.attributes.resource) == ("", "namespaces"):
            return {NAME_LABEL: self.attributes.name} | self.texts("metadata.labels")
        return self.lookup(NAMESPACE_LABELS)  # type: ignore[no-any-return]

    def pod(self) -> Fields | None:
        """Return the spec of the pod, or of the pod template, that this object carries; None where it carries none."""
        path = self._kind.pod_spec if self._kind is not None else None
        return None if path is None else self.fields(path)

    def pod_metadata(self) -> Fields | None:
        """Return the metadata that the pod of this object has, or its pods get; None where it carries none."""
        path = self._kind.pod_metadata if self._kind is not None else None
        return None if path is None else self.fields(path)

    def containers(self, *, ephemeral: bool = True, run_once: bool = True) -> Iterator[Fields]:
        """Yield every container of the pod: containers, init containers and (unless told) ephemeral ones.

        A kind whose object is itself one container (WebApp) yields that. Without those that `run_once`, the only init
        containers are sidecars, which live as long as the pod.
        """
        if self._kind is not None and self._kind.container is not None:
            yield self.fields(self._kind.container)
        pod = self.pod()
        if pod is not None:
            yield from pod.each("containers")
            for container in pod.each("initContainers"):
                if run_once or container.string("restartPolicy") == "Always":
                    yield container
            if ephemeral:
                yield from pod.each("ephemeralContainers")

    def images(self) -> Iterator[tuple[Fields, str]]:
        """Yield each place that may name an image, every container and volume, with the path of the name there."""
        for container in self.containers():
            yield container, "image"
        pod = self.pod()
        if pod is not None:
            for volume in pod.each("volumes"):
                yield volume, "image.reference"


def _without_deletion_fields(object: dict[str, Any] | None) -> dict[str, Any]:
    """Return an object without its status and what changes while it is being deleted."""
    kept = {key: value for key, value in (object or {}).items() if key != "status"}
    if isinstance(kept.get("metadata"), dict):
        kept["metadata"] = {key: value for key, value in kept["metadata"].items() if key not in DELETION_METADATA}
    return kept
