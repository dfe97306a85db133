"""Typed reading of an object's fields by path: null is absent, a wrong type is an error."""

from collections.abc import Iterator
from typing import Any

from config.field_paths import entry
from config.quantities import Quantity, QuantityError, parse_quantity
from kube.resource import FieldPath
from webhook.engine.violation import (
    JSON_TYPES,
    UNSET,
    Excess,
    Patch,
    Record,
    Violation,
    shown,
    steps_of,
)

SCALARS = (str, bool, int, float)
A_QUANTITY = "a quantity, such as 500m, 1.5 or 2Gi"
NUMBERS = (str, int, float)  # JSON types of a quantity


def quantity_of(value: Any) -> Quantity:
    """Return a JSON value as a quantity. Raises QuantityError if it is not one."""
    if type(value) not in NUMBERS:
        raise QuantityError("must be a number, or text")
    return parse_quantity(value if type(value) is str else repr(value))


class WrongTypeError(Exception):
    """A field has a wrong JSON type, or a text that is not a quantity."""

    def __init__(self, path: str, found: Any, *wanted: type, quantity: bool = False) -> None:
        """Take the path, the value found, and the allowed JSON types."""
        self.wanted = A_QUANTITY if quantity else " or ".join(JSON_TYPES[each] for each in wanted)
        self.fix = "correct it" if quantity else "correct its type"
        super().__init__(f"{path}: must be {self.wanted}")
        self.path = path
        of_a_type = type(found) in SCALARS and not (quantity and type(found) is str)
        self.found = f"{shown(found)} is {JSON_TYPES[type(found)]}" if of_a_type else shown(found)


class Fields(Record):
    """A record whose fields are read by dotted paths (`spec.template.spec`), without copies."""

    __slots__ = ()

    def violation(
        self,
        field: str,
        value: Any,
        rule: str,
        fix: str,
        *,
        found: str | None = None,
        excess: Excess | None = None,
        fix_value: Any = UNSET,
    ) -> Violation:
        """Return a violation of `field` with this `value`, shown as `found` if that is given."""
        return Violation(field, found, rule, fix, excess, value, self, fix_value=fix_value)

    def set(self, field: str | FieldPath, value: Any, *, overwrite: bool = False) -> Patch:
        """Return the patch that sets `field`: a dotted path, or steps if a key has a dot."""
        return Patch(steps_of(field) if isinstance(field, str) else field, value, overwrite, self)

    def is_set(self, path: str) -> bool:
        """Return whether `path` has a value of any type other than null."""
        return self._read(path) is not None

    def integer(self, path: str) -> int | None:
        """Return the integer at `path`, or None if it is absent."""
        return self._read(path, int)  # type: ignore[no-any-return]

    def string(self, path: str) -> str | None:
        """Return the string at `path`, or None if it is absent."""
        return self._read(path, str)  # type: ignore[no-any-return]

    def integer_or_string(self, path: str) -> int | str | None:
        """Return the integer or string at `path` (a port, a share), or None."""
        return self._read(path, int, str)  # type: ignore[no-any-return]

    def boolean(self, path: str) -> bool | None:
        """Return the boolean at `path`, or None if it is absent."""
        return self._read(path, bool)  # type: ignore[no-any-return]

    def mapping(self, path: str) -> dict[str, Any]:
        """Return the object at `path`; an absent one is empty."""
        return self._read(path, dict) or {}

    def texts(self, path: str) -> dict[str, str]:
        """Return the object of strings at `path` (labels); an absent one or a null is empty."""
        items = {key: item for key, item in self.mapping(path).items() if item is not None}
        for key, item in items.items():
            if type(item) is not str:
                raise WrongTypeError(f"{self.path(path)}[{key}]", item, str)
        return items

    def quantity(self, path: str) -> Quantity | None:
        """Return the quantity at `path`, text or number, or None if it is absent."""
        value = self._read(path)
        try:
            return None if value is None else quantity_of(value)
        except QuantityError:
            raise WrongTypeError(self.path(path), value, quantity=True) from None

    def quantities(self, path: str) -> dict[str, Quantity]:
        """Return the list of resources at `path` (limits, requests …) by name; a null is absent."""
        quantities = {}
        for name, value in self.mapping(path).items():
            try:
                if value is not None:
                    quantities[name] = quantity_of(value)
            except QuantityError:
                raise WrongTypeError(self.path(entry(path, name)), value, quantity=True) from None
        return quantities

    def fields(self, path: str) -> "Fields":
        """Return the fields of the object at `path`; an absent one has none."""
        return Fields(self.mapping(path), self, path)

    def strings(self, path: str) -> list[str]:
        """Return the list of strings at `path`; an absent one is empty."""
        return self._items(path, str)

    def integers(self, path: str) -> list[int]:
        """Return the list of integers at `path`; an absent one is empty."""
        return self._items(path, int)

    def each(self, path: str) -> "Iterator[Fields]":
        """Yield the fields of each object in the list at `path`; an absent list has none."""
        for index, item in enumerate(self._items(path, dict)):
            yield Fields(item, self, (path, index))

    def entries(self, path: str) -> "Iterator[tuple[str, Fields]]":
        """Yield name and fields of each object in the object at `path`; a null is absent."""
        for name, item in self.mapping(path).items():
            if item is not None:
                at = entry(path, name)
                if type(item) is not dict:
                    raise WrongTypeError(self.path(at), item, dict)
                yield name, Fields(item, self, at)

    def _items(self, path: str, wanted: type) -> list[Any]:
        items: list[Any] = self._read(path, list) or []
        for index, item in enumerate(items):
            if type(item) is not wanted:
                raise WrongTypeError(f"{self.path(path)}[{index}]", item, wanted)
        return items

    def _read(self, path: str, *wanted: type) -> Any:
        """Return the value at `path`, or None.

        Raises WrongTypeError if its type is not `wanted`.
        """
        value: Any = self.value
        steps = steps_of(path)
        for depth, step in enumerate(steps):
            if type(value) is not dict:
                if value is None:
                    return None
                raise WrongTypeError(self.path(".".join(steps[:depth])), value, dict)
            value = value.get(step)
        if value is None or not wanted or type(value) in wanted:
            return value
        raise WrongTypeError(self.path(path), value, *wanted)
