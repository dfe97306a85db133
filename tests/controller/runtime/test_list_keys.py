"""The runtime's short table of keyed lists, beside the API server's schemas."""

from collections.abc import Iterator

import pytest

from config.schemas import fields_of, parse_type, resources, root_type
from controller.runtime.list_keys import GROUPS, list_key
from kube.resource import group_version


def lists_of(type: str, seen: set[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each list of objects below a type, with the keys of its items, but nothing of a status."""
    if type in seen:
        return
    seen.add(type)
    for field, code in fields_of(type).items():
        if field == "status":  # no plan writes it
            continue
        inner = parse_type(code)
        while inner.shape in ("list", "map"):
            item = parse_type(inner.inner)
            if inner.shape == "list" and item.shape == "struct":
                yield field, inner.keys
            inner = item
        if inner.shape == "struct":
            yield from lists_of(inner.inner, seen)


def kinds() -> list[tuple[str, str]]:
    """Return apiVersion and kind of each built-in kind of the table's groups."""
    names = [name.rpartition("/") for name in resources()]
    return [
        (api_version, kind)
        for api_version, _, kind in names
        if group_version(api_version)[0] in GROUPS
    ]


@pytest.mark.parametrize(("api_version", "kind"), kinds())
def test_a_list_has_the_keys_of_the_schema(api_version: str, kind: str) -> None:
    """A list with keys has the same ones, and no other list has any."""
    root = root_type(api_version, kind)
    assert root is not None
    differing = [
        (field, keys)
        for field, keys in lists_of(root, set())
        if list_key(field, dict.fromkeys(keys, "x")) != ((*keys[:1], *"x" * len(keys)) or None)
    ]
    assert differing == []
