"""The containers and images of an object, parsed once per request and shared by all policies."""

from typing import Any, NamedTuple

from config.quantities import Quantity
from webhook.engine.fields import Fields, WrongTypeError

CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")
EMPTY: dict[str, Any] = {}

Amounts = dict[str, Quantity]


class Container(Fields):
    """One container: its list, and the fields that most policies read.

    An absent securityContext is empty. `list` is one of CONTAINER_LISTS, or empty if the object
    itself is one container (WebApp).
    """

    __slots__ = ("_limits", "_requests", "image", "list", "name", "security_context")

    def __init__(self, value: dict[str, Any], above: Fields, step: str | tuple[str, int]) -> None:
        """Read the container at `step` below `above`.

        Raises WrongTypeError for a wrong JSON type.
        """
        self.above = above
        self.step = step
        self.list = step[0] if isinstance(step, tuple) else ""
        self.value = value
        self.name: str | None = value.get("name")
        self.image: str | None = value.get("image")
        self.security_context: dict[str, Any] = value.get("securityContext") or EMPTY
        self._limits: Amounts | None = None
        self._requests: Amounts | None = None
        if type(self.security_context) is not dict:
            self.mapping("securityContext")
        if type(self.image) is not str or type(self.name) is not str:
            self.string("name")
            self.string("image")

    @property
    def limits(self) -> Amounts:
        """Its limits, parsed when they are first read."""
        if self._limits is None:
            self._limits = self.quantities("resources.limits")
        return self._limits

    @property
    def requests(self) -> Amounts:
        """Its requests, parsed when they are first read; an absent one is the limit."""
        if self._requests is None:
            self._requests = self.limits | self.quantities("resources.requests")
        return self._requests

    @property
    def runs_once(self) -> bool:
        """Whether it is an init container that ends; a sidecar lives as long as the pod."""
        return self.list == "initContainers" and self.string("restartPolicy") != "Always"


class Image(NamedTuple):
    """One image: its reference, the record that contains it, and the field."""

    text: str
    holder: Fields
    field: str


def containers_of(pod: Fields) -> list[Container]:
    """Return all containers of a pod, list by list. Raises WrongTypeError for a wrong type."""
    containers = []
    for name in CONTAINER_LISTS:
        items = pod.value.get(name)
        if items is None:
            continue
        if type(items) is not list:
            raise WrongTypeError(pod.path(name), items, list)
        for index, item in enumerate(items):
            if type(item) is not dict:
                raise WrongTypeError(f"{pod.path(name)}[{index}]", item, dict)
            containers.append(Container(item, pod, (name, index)))
    return containers


def images_of(pod: Fields | None, containers: tuple[Container, ...]) -> list[Image]:
    """Return each image that a container or an image volume names."""
    images = [Image(each.image, each, "image") for each in containers if each.image]
    if pod is None or pod.value.get("volumes") is None:
        return images
    of_images = (volume for volume in pod.each("volumes") if volume.value.get("image") is not None)
    named = ((volume.string("image.reference"), volume) for volume in of_images)
    return images + [Image(text, volume, "image.reference") for text, volume in named if text]
