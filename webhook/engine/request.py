"""An admission request to be judged, read through typed getters and shared records."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from webhook.engine.containers import Container, Image, containers_of, images_of
from webhook.engine.fields import Fields, WrongTypeError
from webhook.engine.kinds import KINDS, NAMESPACES, Kind, TargetKey

NOTHING: Mapping[str, Any] = {}
# the look-up for a namespaceSelector: a dict of strings
NAMESPACE_LABELS = "namespace_labels"
# the look-up for `namespaceObject` in expressions: the stored Namespace
NAMESPACE = "namespace"
# the look-up for /scale, exec and others: the object that the subresource belongs to
PARENT = "parent"
# the look-up for mutations of custom kinds, and for rules of policy objects about custom kinds: a
# function that returns the CustomTypes
SCHEMAS = "schemas"
# there where a mutation came before: names of look-ups that policies which change objects lacked
LACKED = "lacked"
MIRROR = "kubernetes.io/config.mirror"  # the annotation of a mirror pod
NODES = "system:nodes"
GENERATED = "xxxxx"  # as long as the suffix that the API server adds to a generateName
NAME_LABEL = "kubernetes.io/metadata.name"  # the API server sets it on every Namespace
# Metadata that a deletion changes.
DELETION_METADATA = frozenset({"finalizers", "resourceVersion", "generation", "managedFields"})


class NotLookedUpError(Exception):
    """A policy needs a look-up that is missing for this request."""


class Attributes(NamedTuple):
    """The fields of an AdmissionRequest (admission.k8s.io/v1) other than its objects."""

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
    # group, version and kind of the user's request, if matchPolicy converted it
    requested: tuple[str, str, str] | None = None
    # the AdmissionRequest, for further fields that expressions read; None if unknown
    sent: Any = None

    @property
    def target(self) -> TargetKey:
        """The key for finding the policies for this request."""
        return self.resource_group, self.resource, self.subresource, self.operation


class Request(Fields):
    """One admission request: the fields of its object, and its attributes.

    `object` and `old_object` are JSON objects or None. Getters read `object`, or on DELETE, which
    has none, `old_object`. The old object of an update may be undecoded JSON, which is decoded when
    it is first read, unless it is being deleted. `looked_up` has the look-ups, under the names that
    policies declare in `needs`; a missing one is an error, never an empty answer. `excepted` is
    whether exceptions exempt some of its containers from the current policy, or change their
    parameters. `budget` is the remaining cost budget of all tenants' expressions; None before the
    first of them. `completed` are its objects as expressions see them, after the first evaluation.
    """

    __slots__ = (
        "_before", "_containers", "_images", "_kind", "_old_object", "_pod", "_pod_requests",
        "attributes", "budget", "completed", "excepted", "looked_up", "object",
    )  # fmt: skip

    def __init__(
        self,
        attributes: Attributes,
        object: dict[str, Any] | None,
        old_object: dict[str, Any] | bytes | None = None,
        looked_up: Mapping[str, Any] = NOTHING,
        kind: Kind | None = None,
    ) -> None:
        """Store the arguments without copies; `kind` is for kinds that the table lacks."""
        self._old_object = old_object
        self.value = object if object is not None else self.old_object or {}
        self.above = None
        self.step = ""
        self.attributes = attributes
        self.object = object
        self.looked_up = looked_up
        self.excepted = False
        self.budget: Any = None
        listed = kind or KINDS.get((attributes.group, attributes.kind))
        self._kind = listed or Kind(attributes.group, attributes.kind, attributes.resource)
        self._before: Request | None = None
        self.forget()

    def forget(self) -> None:
        """Clear the cached records, since the object was changed."""
        self._pod: Fields | None = None
        self._pod_requests: tuple[PodRequest, ...] | None = None
        self._containers: tuple[Container, ...] | None = None
        self._images: tuple[Image, ...] | None = None
        self.completed: tuple[dict[str, Any] | None, dict[str, Any] | None] | None = None

    @property
    def old_object(self) -> dict[str, Any] | None:
        """The object before an update or deletion. Raises WrongTypeError if it is not an object."""
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
        """The object's name. For deletecollection it comes from the object.

        With generateName it is a prefix.
        """
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
        """Return the same request with another state of its object."""
        return Request(self.attributes, object, self._old_object, self.looked_up, self._kind)

    def with_looked_up(self, looked_up: Mapping[str, Any]) -> "Request":
        """Return the same request with look-ups."""
        return Request(self.attributes, self.object, self._old_object, looked_up, self._kind)

    def of_kind(self, kind: Kind) -> "Request":
        """Return the same request for a kind that the table may lack."""
        if self._kind is kind:
            return self
        return Request(self.attributes, self.object, self._old_object, self.looked_up, kind)

    def before(self) -> "Request | None":
        """Return a request that creates the old object of an UPDATE; None for other operations."""
        if self._before is None and self.attributes.operation == "UPDATE":
            old = self.old_object
            if old is not None:
                created = self.attributes._replace(operation="CREATE")
                self._before = Request(created, old, None, self.looked_up, self._kind)
        return self._before

    @property
    def is_being_deleted(self) -> bool:
        """Whether this updates an object that is being deleted."""
        if self.attributes.operation != "UPDATE" or isinstance(self._old_object, bytes):
            return False
        metadata = (self._old_object or {}).get("metadata")
        return isinstance(metadata, dict) and metadata.get("deletionTimestamp") is not None

    @property
    def only_removes_finalizers(self) -> bool:
        """Whether an update only removes finalizers, and changes metadata that deletion changes."""
        try:
            return what_is_written(self.object) == what_is_written(self.old_object)
        except RecursionError:  # objects with a thousand levels are judged
            return False

    def lookup(self, name: str) -> Any:
        """Return the look-up `name`. Raises NotLookedUpError if it is missing."""
        try:
            return self.looked_up[name]
        except KeyError:
            raise NotLookedUpError(name) from None

    def namespace_labels(self) -> Mapping[str, str]:
        """Return the labels of its namespace; for a Namespace its own new labels."""
        if (self.attributes.resource_group, self.attributes.resource) == NAMESPACES:
            return self.texts("metadata.labels") | {NAME_LABEL: self.name}
        return self.lookup(NAMESPACE_LABELS)  # type: ignore[no-any-return]

    def selectable(self, *, of_pod: bool = False) -> Iterator[Mapping[str, Any]]:
        """Yield the labels for selectors: of the new and the old object, or of their pods.

        A subresource with its own object (/scale, exec) is selected by the labels of its parent.
        """
        metadata = (self._kind.pod_metadata or "metadata") if of_pod else "metadata"
        is_of_parent = self.attributes.subresource and self.kind != self.resource_kind
        for object in (self.lookup(PARENT),) if is_of_parent else (self.object, self.old_object):
            if object is not None:
                fields: Iterable[Fields] = (Fields(object),)
                if of_pod and self._kind.pod_specs:
                    fields = pod_templates(Fields(object), self._kind.pod_specs)
                for field in fields:
                    yield field.mapping(f"{metadata}.labels")

    @property
    def is_mirror_pod(self) -> bool:
        """Whether it is the mirror of a static pod, which runs as the file on its node says."""
        metadata = self.value.get("metadata")
        annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
        if not isinstance(annotations, dict) or MIRROR not in annotations:
            return False
        # Only nodes create mirror pods, and no update adds the annotation.
        is_update = self.attributes.operation == "UPDATE"
        return self.resource_kind == "Pod" and (is_update or NODES in self.attributes.groups)

    def pod(self) -> Fields | None:
        """Return the spec of the pod, or of the pod template; None if there is none."""
        if self._pod is None and self._kind.pod_spec is not None:
            self._pod = self.fields(self._kind.pod_spec)
        return self._pod

    def pod_metadata(self) -> Fields | None:
        """Return the metadata of the pod, or of the pod template; None if there is none."""
        path = self._kind.pod_metadata
        return None if path is None else self.fields(path)

    def each_pod(self) -> "tuple[PodRequest, ...]":
        """Return a request for each pod of a kind with several; none for other kinds."""
        if self._pod_requests is None:
            templates = pod_templates(self, self._kind.pod_specs)
            self._pod_requests = tuple([PodRequest(self, each) for each in templates])
        return self._pod_requests

    def containers(self, *, ephemeral: bool = True) -> tuple[Container, ...]:
        """Return all containers of the pod: also init and (by default) ephemeral ones.

        If the object itself is one container (WebApp), return that.
        """
        containers = self._containers
        if containers is None:
            pod, path = self.pod(), self._kind.container
            own = () if path is None else (Container(self.mapping(path), self, path),)
            if pod is not None:
                containers = (*own, *containers_of(pod))
            else:
                containers = (*own, *(one for each in self.each_pod() for one in each.containers()))
            self._containers = containers
        if ephemeral:
            return containers
        return tuple([each for each in containers if each.list != "ephemeralContainers"])

    def volumes(self) -> Iterator[Fields]:
        """Yield each volume of the pod."""
        pod = self.pod()
        if pod is not None:
            yield from pod.each("volumes")

    def images(self) -> tuple[Image, ...]:
        """Return each image that a container or a volume names."""
        if self._images is None:
            if self._pod is None and self._kind.pod_specs:
                pods = self.each_pod()
                self._images = tuple(image for each in pods for image in each.images())
            else:
                self._images = tuple(images_of(self.pod(), self.containers()))
        return self._images


class PodRequest(Request):
    """A request about one pod of an object with several pod templates."""

    __slots__ = ("_template", "_whole")

    def __init__(self, whole: Request, template: Fields) -> None:
        """Take the pod of a template."""
        super().__init__(
            whole.attributes, whole.object, whole._old_object, whole.looked_up, whole._kind
        )
        self._whole, self._template = whole, template
        self._pod = template.fields("spec")

    def pod_metadata(self) -> Fields:
        """Return the metadata of its pod template."""
        return self._template.fields("metadata")

    def before(self) -> Request | None:
        """Return a request that creates the old object of an UPDATE, about the same pod.

        It has no pod where the template is new.
        """
        before = self._whole.before()
        if before is None:
            return None
        path = self._template.path()
        return next((each for each in before.each_pod() if each._template.path() == path), before)

    def each_pod(self) -> "tuple[PodRequest, ...]":
        """Return nothing: it is about one pod."""
        return ()


def what_is_written(object: dict[str, Any] | None) -> dict[str, Any]:
    """Return an object without status, finalizers and the fields that the API server sets."""
    kept = _without(object or {}, {"status"})
    if isinstance(kept.get("metadata"), dict):
        kept["metadata"] = _without(kept["metadata"], DELETION_METADATA)
    return kept


def _without(fields: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in names}


def pod_templates(object: Fields, paths: tuple[str, ...]) -> Iterator[Fields]:
    """Yield the templates with a spec at `paths`, such as `spec.tasks[].template.spec`.

    Raises WrongTypeError for a wrong JSON type.
    """
    for path in paths:
        *lists, rest = path.split("[].")
        holders = [object]
        for container_list in lists:
            holders = [item for holder in holders for item in holder.each(container_list)]
        above = rest.removesuffix("spec").removesuffix(".")
        for holder in holders:
            template = holder.fields(above) if above else holder
            if template.value.get("spec") is not None:
                yield template
