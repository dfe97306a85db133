"""Objects of built-in kinds get the defaults and zero values of the API server, without one."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from config.built_in_defaults import with_api_defaults
from config.quantities import QuantityError
from config.schemas import resources
from kube.resource import JsonObject
from tests.config.filled_in import Asked, asked_before_admission
from tests.policies.trials import FILES, trials_of
from tests.webhook.policy_sets.on_a_cluster.mutating import SPECS
from webhook.engine.fields import quantity_of

# Fields that the API server sets, and that admission plugins set before webhooks are called (and pod-level resources
# that follow from those of containers).
OF_THE_SERVER = ("uid", "creationTimestamp", "managedFields", "generation")
OF_PLUGINS = (
    "resources",
    "serviceAccount",
    "serviceAccountName",
    "tolerations",
    "priority",
    "preemptionPolicy",
)


def objects() -> Iterator[JsonObject]:
    """Yield the built-in objects of all cases of policies, and those of the mutations."""
    seen = set()
    for file in FILES:
        for trial in trials_of(file):
            object = trial.admission.object or {}
            name = f"{object.get('apiVersion')}/{object.get('kind')}"
            if name in resources() and "deletionTimestamp" not in object["metadata"]:
                if str(object) not in seen:
                    yield copy.deepcopy(object)
                seen.add(str(object))
    for (path, kind), fields in SPECS.items():
        api_version = path.rpartition("/")[0]
        if f"{api_version}/{kind}" in resources():
            yield {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **fields}


def compared(object: JsonObject) -> JsonObject:
    """Return an object without the fields that the API server sets after decoding."""
    dropped = {*OF_THE_SERVER, "name", "generateName", "namespace", "selfLink"}
    metadata = {key: each for key, each in object["metadata"].items() if key not in dropped}
    found = copy.deepcopy(object) | {"metadata": metadata}
    for field in OF_PLUGINS if object["kind"] == "Pod" else ():
        found.get("spec", {}).pop(field, None)
    if object["kind"].startswith("PersistentVolume"):
        metadata.pop("finalizers", None)
    return found


def differences(mine: Any, real: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of fields that differ; a quantity may be written in another way."""
    if isinstance(mine, dict) and isinstance(real, dict):
        for key in sorted(mine.keys() | real.keys()):
            yield from differences(mine.get(key, "-"), real.get(key, "-"), f"{path}.{key}")
    elif isinstance(mine, list) and isinstance(real, list) and len(mine) == len(real):
        for index, pair in enumerate(zip(mine, real, strict=True)):
            yield from differences(*pair, f"{path}[{index}]")
    elif type(mine) is not type(real) or (mine != real and not is_same_quantity(mine, real)):
        yield f"{path}: {mine!r}, there {real!r}"


def is_same_quantity(one: Any, other: Any) -> bool:
    """Whether two texts are the same amount."""
    try:
        return quantity_of(one).millis == quantity_of(other).millis
    except QuantityError:
        return False


@pytest.mark.controlplane
def test_an_object_has_the_fields_that_the_api_server_gives_it(empty_plane):
    """Over 1,000 objects are compared with the objects that the API server sends to a mutating webhook."""
    wrong, count = [], 0
    with asked_before_admission(empty_plane) as ask:
        for object in objects():
            plural, namespaced = resources()[f"{object['apiVersion']}/{object['kind']}"]
            metadata = {
                key: each
                for key, each in object["metadata"].items()
                if key not in ("namespace", "name", "generateName")
            }
            kind = f"{object['apiVersion']}/{object['kind']}"
            real = ask(Asked(kind, plural, namespaced, object | {"metadata": metadata}))
            if real is None:  # malformed, or never sent to webhooks
                continue
            count += 1
            mine = compared(
                with_api_defaults(object | {"metadata": {"name": "sample", **metadata}})
            )
            wrong += (f"{object}: {each}" for each in differences(mine, compared(real)))
    assert wrong == []
    assert count > 1000
