"""What is to be judged: one admission request, read through typed getters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from webhook.engine.fields import Fields
from webhook.engine.kinds import KINDS, TargetKey

NOTHING: Mapping[str, Any] = {}


class NotLookedUpError(Exception):
    """A policy needs something from the cluster that nobody looked up for this request."""


@dataclass(frozen=True, slots=True)
class About:
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

    @property
    def target(self) -> TargetKey:
        """What the policies for this request are looked up by."""
        return self.resource_group, self.resource, self.subresource


class Request(Fields):
    """One admission request: the fields of the object it is about, and what is said beside it.

    `object` and `old_object` are the decoded JSON objects, or None; reading goes to `object`, and on DELETE, which has
    none, to `old_object`. `looked_up` holds what was fetched from the cluster for it, under the names policies declare
    in `needs`; what is missing there is an error, never an empty answer.
    """

    __slots__ = ("about", "looked_up", "object", "old_object")

    def __init__(
        self,
        about: About,
        object: dict[str, Any] | None,
        old_object: dict[str, Any] | None = None,
        looked_up: Mapping[str, Any] = NOTHING,
    ) -> None:
        """Keep what was asked; nothing is copied."""
        super().__init__((old_object if object is None else object) or {})
        self.about = about
        self.object = object
        self.old_object = old_object
        self.looked_up = looked_up

    @property
    def kind(self) -> str:
        """The kind of the object: for a /scale subresource that is Scale."""
        return self.about.kind

    def with_object(self, object: dict[str, Any]) -> "Request":
        """Return the same request about another state of its object."""
        return Request(self.about, object, self.old_object, self.looked_up)

    def with_looked_up(self, looked_up: Mapping[str, Any]) -> "Request":
        """Return the same request with what was looked up for it."""
        return Request(self.about, self.object, self.old_object, looked_up)

    def lookup(self, name: str) -> Any:
        """Return what was looked up under `name`; NotLookedUpError where nobody did."""
        try:
            return self.looked_up[name]
        except KeyError:
            raise NotLookedUpError(name) from None

    def pod(self) -> Fields | None:
        """Return the spec of the pod, or of the pod template, that this object carries; None where it carries none."""
        kind = KINDS.get((self.about.group, self.about.kind))
        return self.fields(kind.pod_spec) if kind is not None and kind.pod_spec is not None else None

    def containers(self, *, ephemeral: bool = True) -> Iterator[Fields]:
        """Yield every container of the pod: containers, init containers and (unless told) ephemeral ones.

        A kind whose object is itself one container (WebApp) yields that.
        """
        kind = KINDS.get((self.about.group, self.about.kind))
        if kind is None:
            return
        if kind.container is not None:
            yield self.fields(kind.container)
        if kind.pod_spec is not None:
            pod = self.fields(kind.pod_spec)
            yield from pod.each("containers")
            yield from pod.each("initContainers")
            if ephemeral:
                yield from pod.each("ephemeralContainers")
