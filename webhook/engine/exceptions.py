"""Exceptions from policies, compiled: what they cover, and until when."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from config.api.policy import PolicyExceptionSpec
from webhook.engine.fields import Fields
from webhook.engine.globs import Globs
from webhook.engine.images import ImageReferenceError, parse_image
from webhook.engine.policy import Params
from webhook.engine.request import Request

NOW = "now"  # what must be looked up where there are exceptions: the time, an aware datetime


@dataclass(frozen=True, slots=True)
class BoundException:
    """A PolicyException as it was written; the namespace is None for one from a file."""

    namespace: str | None
    spec: PolicyExceptionSpec
    name: str = ""

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"PolicyException {self.name if self.namespace is None else f'{self.namespace}/{self.name}'}"


@dataclass(frozen=True, slots=True)
class Exempt:
    """One entry of a PolicyException, for one policy: what is None does not restrict.

    With `params` the policy judges by those instead, else it is not asked at all; with `containers` or `images` that
    holds for what concerns those containers only. `title` names the exception in messages.
    """

    expires: datetime
    kinds: frozenset[str] | None = None
    names: Globs | None = None
    namespaces: Globs | None = None
    containers: Globs | None = None
    images: Globs | None = None
    params: Params | None = None
    title: str = "PolicyException"

    @property
    def is_whole(self) -> bool:
        """Whether it is about the whole object, not about some of its containers."""
        return self.containers is None and self.images is None

    def covers(self, request: Request) -> bool:
        """Return whether it is still in force, and about this request's object."""
        return not self.is_expired(request) and self.is_about(request)

    def is_expired(self, request: Request) -> bool:
        """Return whether its time is over."""
        return bool(request.lookup(NOW) >= self.expires)

    def is_about(self, request: Request) -> bool:
        """Return whether it is about this request's object; one for namespaces covers nothing outside of them."""
        if self.kinds is not None and request.resource_kind not in self.kinds:
            return False
        namespace = request.attributes.namespace
        if self.namespaces is not None and not (namespace and self.namespaces.match(namespace)):
            return False
        return self.names is None or self.names.match(request.name)

    def records(self, request: Request) -> Iterator[Fields]:
        """Yield the containers it is about, and the image volumes where it is about images."""
        for container in request.containers():
            if (self.containers is None or self.containers.match(container.name or "")) and (
                self.images is None or _names(self.images, container.image or "")
            ):
                yield container
        if self.containers is None and self.images is not None:
            for image in request.images():
                if image.field != "image" and _names(self.images, image.text):
                    yield image.holder


def _names(images: Globs, text: str) -> bool:
    """Return whether a glob matches an image as it is written, or with the registry that denials name."""
    if images.match(text):
        return True
    try:
        return images.match(str(parse_image(text)))
    except ImageReferenceError:
        return False
