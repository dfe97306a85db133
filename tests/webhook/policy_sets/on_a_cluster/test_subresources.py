"""A policy can name the subresources and operations that a real API server has, and no others."""

import json
from typing import Any

import pytest

from config.schemas import resources
from tests.controlplane.plane import ControlPlane
from webhook.engine.kinds import CONNECTED
from webhook.policy_sets.kind_names import kinds_named
from webhook.policy_sets.rule_resources import OPERATIONS_OF, operations_of

pytestmark = pytest.mark.controlplane

BY_VERB = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE", "delete": "DELETE"}


def test_each_subresource_of_each_kind_has_the_operations_of_the_api_server(
    control_plane: ControlPlane,
) -> None:
    """A clause of `match` with another one can match nothing."""
    api = control_plane.api

    def served(api_version: str) -> list[Any]:
        prefix = "apis" if "/" in api_version else "api"
        return list(json.loads(api.request("GET", f"/{prefix}/{api_version}")[1])["resources"])

    published, known = {}, {}
    for name, (plural, _) in resources().items():
        api_version, _, kind = name.rpartition("/")
        (found,) = kinds_named(name)
        verbs = {each["name"]: each["verbs"] for each in served(api_version)}
        for subresource in OPERATIONS_OF:
            path = f"{plural}/{subresource}" if subresource else plural
            operations = {BY_VERB[verb] for verb in verbs.get(path, ()) if verb in BY_VERB}
            is_connected = subresource in CONNECTED and operations
            published[api_version, path] = {"CONNECT"} if is_connected else operations
            known[api_version, path] = {*operations_of(found, subresource)}
        others = {path.partition("/")[2] for path in verbs if path.startswith(f"{plural}/")}
        assert others <= {*OPERATIONS_OF, "log"}, kind
    assert known == published
