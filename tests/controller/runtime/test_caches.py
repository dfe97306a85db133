"""Where a cache looks for an object: all namespaces, one, or some."""

import pytest

from controller.runtime.caches import Cache
from controller.runtime.fake_client import FakeClient
from tests.controller.runtime.conftest import CONFIGMAP, Object


def config_map(namespace: str) -> Object:
    """Return a ConfigMap as it is stored."""
    return {"metadata": {"name": "shop", "namespace": namespace, "uid": namespace, "resourceVersion": "7"}}


@pytest.mark.parametrize("looked_at", [(), ("one",), ("one", "two")])
def test_an_object_is_found_in_whatever_namespaces_are_looked_at(looked_at: tuple[str, ...]) -> None:
    """What stands in a namespace that is looked at is found, and nothing of another one."""
    cache = Cache(FakeClient(), CONFIGMAP, namespaces=looked_at)
    for namespace, store in cache.stores.items():
        store.put(config_map(namespace or "one"))
    places = looked_at or ("one",)
    assert list(cache) == [f"{place}/shop" for place in places]
    assert [cache.get(f"{place}/shop") for place in places] == [config_map(place) for place in places]
    assert [entry.uid for place in places if (entry := cache.entry(f"{place}/shop"))] == list(places)
    assert cache.get("elsewhere/shop") is None
    assert cache.entry("elsewhere/shop") is None
