"""Exemptions from one policy: objects, containers or images, until an expiry time."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from config.converters import as_stored
from config.image_references import try_parse_image
from webhook.engine.globs import Globs
from webhook.engine.images import ImagePattern
from webhook.engine.policy import Params
from webhook.engine.request import Request
from webhook.engine.violation import Record

T = TypeVar("T")
IndexKey = tuple[str | None, ...]  # kind, name and namespace
MAX_INDEXED_NAMES = 100  # of one entry; it is in the index under each
NOW = "now"  # the look-up of the current time, which exceptions need: an aware datetime


@dataclass(frozen=True, slots=True)
class Exemption:
    """One entry of a PolicyException, for one policy. A field that is None does not restrict it.

    With `params`, the policy judges with these parameters; without, it does not judge. With
    `containers` or `images`, this concerns only those containers; with `paths`, only violations in
    these fields. `title` names the exception in messages.
    """

    expires: datetime
    kinds: frozenset[str] | None = None
    names: Globs | None = None
    namespaces: Globs | None = None
    containers: Globs | None = None
    images: tuple[ImagePattern, ...] | None = None
    paths: frozenset[str] | None = None
    params: Params | None = None
    title: str = "PolicyException"
    needs: frozenset[str] = frozenset({NOW})
    """The look-ups of the policy with these parameters, and the time."""
    # Computed once, and not at each change of others.
    patterns: int = field(init=False, compare=False)
    """The number of patterns that it may compare with an object."""
    keys: tuple[IndexKey, ...] = field(init=False, compare=False)
    """The keys by which an object finds it."""

    def __post_init__(self) -> None:
        compared = (self.names, self.namespaces, self.containers, self.images)
        object.__setattr__(self, "patterns", sum(len(each or ()) for each in compared))
        fields = self.kinds, _exact(self.names), _exact(self.namespaces)
        keys = itertools.product(*((None,) if field is None else field for field in fields))
        object.__setattr__(self, "keys", tuple(keys))

    def is_about(self, request: Request) -> bool:
        """Return whether it matches this object.

        With namespaces, it matches no cluster-scoped one.
        """
        if self.kinds is not None and request.resource_kind not in self.kinds:
            return False
        namespace = request.attributes.namespace
        if self.namespaces is not None and not (namespace and self.namespaces.match(namespace)):
            return False
        return self.names is None or self.names.match(request.name)

    def records(self, request: Request) -> Iterator[Record]:
        """Yield the exempt records: the object, some containers, or records with an image."""
        images = self.images
        if self.containers is not None:
            for container in request.containers():
                is_named = self.containers.match(container.name or "")
                if is_named and (images is None or _names(images, container.image or "")):
                    yield container
        elif images is not None:
            yield from (each.holder for each in request.images() if _names(images, each.text))
        else:
            yield request


class Exemptions(tuple[Exemption, ...]):
    """The entries for one policy; there may be thousands, each for one object by name."""

    def __init__(self, _: Iterable[Exemption] = ()) -> None:
        """Index them by kind, name and namespace, if they have these."""
        self._index: dict[IndexKey, list[int]] = {}
        for index, record in enumerate(self):
            for key in record.keys:
                self._index.setdefault(key, []).append(index)

    def about(self, request: Request) -> Iterator[Exemption]:
        """Yield the entries that match an object, in order."""
        if not self:
            return  # most policies have none, and the name of the object may be malformed
        place = request.resource_kind, request.name, request.attributes.namespace
        keys = itertools.product(*((None, field) for field in place))
        for index in sorted(itertools.chain(*(self._index.get(key, ()) for key in keys))):
            if self[index].is_about(request):
                yield self[index]

    def covered_records(
        self, request: Request, *, expired: bool = False
    ) -> dict[Record, Exemption]:
        """Return each record that unexpired (or expired) entries exempt, with its first entry.

        Entries with `paths` are left out: they exempt only fields.
        """
        covered: dict[Record, Exemption] = {}
        for entry in self.about(request):
            if entry.paths is None and (request.lookup(NOW) >= entry.expires) is expired:
                for record in entry.records(request):
                    covered.setdefault(record, entry)
        return covered

    def covered_fields(self, request: Request) -> dict[str, Exemption]:
        """Return the paths that unexpired entries exempt, each with its first entry.

        They have the names of the stored version, as violations have before they are sent.
        """
        covered: dict[str, Exemption] = {}
        kind = request.attributes.group, request.attributes.kind
        for entry in self.about(request):
            if entry.paths is not None and request.lookup(NOW) < entry.expires:
                for path in entry.paths:
                    covered.setdefault(as_stored(path, *kind), entry)
        return covered


def _exact(patterns: Globs | None) -> frozenset[str] | None:
    """Return the names, if these are few and no pattern has a wildcard."""
    exact = None if patterns is None else patterns.exact
    return None if exact is None or len(exact) > MAX_INDEXED_NAMES else exact


NO_EXEMPTIONS = Exemptions()


def nearest(record: Record | None, values: Mapping[Record, T], root: Record) -> T | None:
    """Return the value of a record, or of its nearest ancestor; `root` is the last one."""
    while record is not None:
        if record in values:
            return values[record]
        record = record.above
    return values.get(root)


def _names(images: Iterable[ImagePattern], text: str) -> bool:
    """Return whether a pattern matches an image; an invalid reference matches none."""
    image = try_parse_image(text)
    return image is not None and any(each.matches(image) for each in images)
