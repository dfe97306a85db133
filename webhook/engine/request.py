"""What is to be judged: one admission request, read through typed getters and shared records."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from webhook.engine.containers import Container, Image, containers_of, images_of
from webhook.engine.fields import Fields, WrongTypeError
from webhook.engine.kinds import KINDS, NAMESPACES, Kind, TargetKey

NOTHING: Mapping[str, Any] = {}
# what a namespaceSelector must have looked up: a dict of strings
NAMESPACE_LABELS = "namespace_labels"
# what expressions about `namespaceObject` have looked up: the Namespace, as it is stored
NAMESPACE = "namespace"
# what is looked up for /scale, exec and the like: the object that the subresource belongs to
PARENT = "parent"
# there where a mutation came before: names of look-ups that policies which change objects lacked
LACKED = "lacked"
GENERATED = "xxxxx"  # as long as what the API server adds to a generateName
NAME_LABEL = "kubernetes.io/metadata.name"  # which the API server gives to every Namespace
# Metadata that a deletion changes.
DELETION_METADATA = frozenset({"finalizers", "resourceVersion", "generation", "managedFields"})


class NotLookedUpError(Exception):
    """A policy needs something from the cluster that was not looked up for this request."""


class Attributes(NamedTuple):
    """An AdmissionRequest without its objects, in the words of admission.k8s.io/v1."""

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
    # group, version, kind as sent, where matchPolicy changed them
    requested: tuple[str, str, str] | None = None
    # the AdmissionRequest, for what else expressions read of it; None where it is not known
    sent: Any = None

    @property
    def target(self) -> TargetKey:
        """What the policies for this request are looked up by."""
        return self.resource_group, self.resource, self.subresource, self.operation


class Request(Fields):
    """One admission request: the fields of the object it is about, and what is said beside it.

    `object` and `old_object` are JSON objects, or None; reading goes to `object`, and on DELETE,
    which has none, to `old_object`. That of an update, unless it is being deleted, may be given as
    it was sent: it is decoded when it is first read. `looked_up` holds what was fetched from the
    cluster for it, under the names policies declare in `needs`; what is missing there is an error,
    never an empty answer. `excepted` is whether exceptions leave some of its containers to other
    parameters of the policy that is asked, or alone. `budget` is what the expressions of all
    tenants' policies may still cost; None before the first of them. `completed` are its objects as
    expressions see them, once one was asked.
    """

    __slots__ = (
        "_before", "_containers", "_images", "_kind", "_old_object", "_pod", "attributes", "budget",
        "completed", "excepted", "looked_up", "object",
    )  # fmt: skip

    def __init__(
        self,
        attributes: Attributes,
        object: dict[str, Any] | None,
        old_object: dict[str, Any] | bytes | None = None,
        looked_up: Mapping[str, Any] = NOTHING,
        kind: Kind | None = None,
    ) -> None:
        """Keep all without a copy; `kind` is for what the table of kinds does not have."""
        self._old_object = old_object
        self.value = object if object is not None else self.old_object or {}
        self.above = None
        self.step = ""
        self.attributes = attributes
        self.object = object
        self.looked_up = looked_up
        self.excepted = False
        self.budget: Any = None
        known = kind or KINDS.get((attributes.group, attributes.kind))
        self._kind = known or Kind(attributes.group, attributes.kind, attributes.resource)
        self._before: Request | None = None
        self.forget()

    def forget(self) -> None:
        """Forget the records that were parsed, since the object was changed beside them."""
        self._pod: Fields | None = None
        self._containers: tuple[Container, ...] | None = None
        self._images: tuple[Image, ...] | None = None
        self.completed: tuple[dict[str, Any] | None, dict[str, Any] | None] | None = None

    @property
    def old_object(self) -> dict[str, Any] | None:
        """The object before an update or deletion. WrongTypeError where it is none."""
        if isinstance(self._old_object, bytes):
            try:
                self._old_object = msgspec.json.decode(self._old_object, type=dict[str, Any])
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                raise WrongTypeError("oldObject", None, dict) from None
        return self._old_object

    @property
    def kind(self) -> str:
        """The kind of the object: for a /scale subresource that is Scale."""
        return self.attributes.kind

    @property
    def name(self) -> str:
        """The object's name; deletecollection names it in the object only, generateName in part."""
        if self.attributes.name:
            return self.attributes.name
        if name := self.string("metadata.name"):
            return name
        prefix = self.string("metadata.generateName")
        return f"{prefix}{GENERATED}" if prefix else ""

    @property
    def resource_kind(self) -> str:
        """The kind of the resource: Deployment, for the /scale of a Deployment."""
        return self._kind.kind

    def with_object(self, object: dict[str, Any]) -> "Request":
        """Return the same request about another state of its object."""
        return Request(self.attributes, object, self._old_object, self.looked_up, self._kind)

    def with_looked_up(self, looked_up: Mapping[str, Any]) -> "Request":
        """Return the same request with what was looked up for it."""
        return Request(self.attributes, self.object, self._old_object, looked_up, self._kind)

    def of_kind(self, kind: Kind) -> "Request":
        """Return the same request about an object of a kind that the table need not know."""
        if self._kind is kind:
            return self
        return Request(self.attributes, self.object, self._old_object, self.looked_up, kind)

    def before(self) -> "Request | None":
        """Return a request to create the object as an UPDATE found it; None for others."""
        if self._before is None and self.attributes.operation == "UPDATE":
            old = self.old_object
            if old is not None:
                created = self.attributes._replace(operation="CREATE")
                self._before = Request(created, old, None, self.looked_up, self._kind)
        return self._before

    @property
    def is_being_deleted(self) -> bool:
        """Whether an update is about an object that is being deleted already."""
        if self.attributes.operation != "UPDATE" or isinstance(self._old_object, bytes):
            return False
        metadata = (self._old_object or {}).get("metadata")
        return isinstance(metadata, dict) and metadata.get("deletionTimestamp") is not None

    @property
    def only_removes_finalizers(self) -> bool:
        """Whether an update changes nothing but what the deletion of its object needs."""
        try:
            return what_is_written(self.object) == what_is_written(self.old_object)
        except RecursionError:  # objects of a thousand levels, which are judged then
            return False

    def lookup(self, name: str) -> Any:
        """Return what was looked up under `name`. NotLookedUpError where that is missing."""
        try:
            return self.looked_up[name]
        except KeyError:
            raise NotLookedUpError(name) from None

    def namespace_labels(self) -> Mapping[str, str]:
        """Return the labels of its namespace; a Namespace has its own, as they will be."""
        if (self.attributes.resource_group, self.attributes.resource) == NAMESPACES:
            return self.texts("metadata.labels") | {NAME_LABEL: self.name}
        return self.lookup(NAMESPACE_LABELS)  # type: ignore[no-any-return]

    def selectable(self, *, of_pod: bool = False) -> Iterator[Mapping[str, Any]]:
        """Yield the labels for selectors: of the new and the old object, or of their pods.

        A subresource that is an object of its own (/scale, exec) is selected by the labels of its
        parent.
        """
        metadata = self._kind.pod_metadata if of_pod else "metadata"
        is_of_parent = self.attributes.subresource and self.kind != self.resource_kind
        for object in (self.lookup(PARENT),) if is_of_parent else (self.object, self.old_object):
            if object is not None:
                yield Fields(object).mapping(f"{metadata}.labels")

    def pod(self) -> Fields | None:
        """Return the spec of the pod, or of the pod template; None where there is none."""
        if self._pod is None and self._kind.pod_spec is not None:
            self._pod = self.fields(self._kind.pod_spec)
        return self._pod

    def pod_metadata(self) -> Fields | None:
        """Return the metadata of the pod, or of the pod template; None where there is none."""
        path = self._kind.pod_metadata
        return None if path is None else self.fields(path)

    def containers(self, *, ephemeral: bool = True) -> tuple[Container, ...]:
        """Return all containers of the pod: also init and (by default) ephemeral ones.

        A kind whose object is itself one container (WebApp) has that.
        """
        found = self._containers
        if found is None:
            pod, path = self.pod(), self._kind.container
            own = () if path is None else (Container(self.mapping(path), self, path),)
            found = self._containers = own if pod is None else (*own, *containers_of(pod))
        if ephemeral:
            return found
        return tuple([each for each in found if each.list != "ephemeralContainers"])

    def volumes(self) -> Iterator[Fields]:
        """Yield each volume of the pod."""
        pod = self.pod()
        if pod is not None:
            yield from pod.each("volumes")

    def images(self) -> tuple[Image, ...]:
        """Return each image that a container or a volume names."""
        if self._images is None:
            self._images = tuple(images_of(self.pod(), self.containers()))
        return self._images


def what_is_written(object: dict[str, Any] | None) -> dict[str, Any]:
    """Return an object without status, finalizers and what the API server writes."""
    kept = _without(object or {}, {"status"})
    if isinstance(kept.get("metadata"), dict):
        kept["metadata"] = _without(kept["metadata"], DELETION_METADATA)
    return kept


def _without(fields: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in names}
