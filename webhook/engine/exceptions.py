"""Exceptions from policies, compiled: what they cover, and until when."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from config.api.policy import PolicyExceptionSpec
from webhook.engine.globs import Globs
from webhook.engine.policy import Params
from webhook.engine.request import Request

NOW = "now"  # what must be looked up where there are exceptions: the time, an aware datetime


@dataclass(frozen=True, slots=True)
class BoundException:
    """A PolicyException as it was written; None as a namespace is a file's."""

    namespace: str | None
    spec: PolicyExceptionSpec


@dataclass(frozen=True, slots=True)
class Exempt:
    """One entry of a PolicyException, for one policy: what is None does not restrict.

    With `params` the policy judges by those instead, else it is not asked at all; with `containers` or `images` that
    holds for what concerns those containers only.
    """

    expires: datetime
    kinds: frozenset[str] | None = None
    names: Globs | None = None
    namespaces: Globs | None = None
    containers: Globs | None = None
    images: Globs | None = None
    params: Params | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is about the whole object, not about some of its containers."""
        return self.containers is None and self.images is None

    def covers(self, request: Request) -> bool:
        """Return whether it is still in force, and about this request's object."""
        attributes = request.attributes
        if request.lookup(NOW) >= self.expires:
            return False
        if self.kinds is not None and request.resource_kind not in self.kinds:
            return False
        if self.namespaces is not None and not self.namespaces.match(attributes.namespace):
            return False
        return self.names is None or self.names.match(request.name)

    def paths(self, request: Request) -> Iterator[str]:
        """Yield the paths of the containers it is about, and of the image volumes where it is about images."""
        for holder, path in request.images():
            is_volume = path != "image"
            name, image = holder.string("name") or "", holder.string(path) or ""
            if (self.containers is None or (not is_volume and self.containers.match(name))) and (
                self.images is None or self.images.match(image)
            ):
                yield f"{holder.path()}."
