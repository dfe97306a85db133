"""The fields of AppStack and EcommercePlatform: bounds, defaults, and common mistakes of users."""

from typing import Any

import pytest
from pydantic import ValidationError

from config.api.appstack import AppStack
from config.api.ecommerceplatform import EcommercePlatform
from config.defaulting import fill_crd_defaults


def read(**spec: Any) -> EcommercePlatform:
    """The platform with this spec."""
    return EcommercePlatform.model_validate({"metadata": {}, "spec": spec})


def test_nothing_is_required() -> None:
    """Unset fields have defaults; cache and monitoring are enabled even if their blocks are absent."""
    spec = EcommercePlatform.model_validate({"metadata": {}}).spec
    assert (spec.environment, spec.cache.enabled, spec.monitoring.enabled) == (
        "development",
        True,
        True,
    )
    assert spec == read(cache={}, monitoring={}, database={}, frontend={}, backend={}).spec


def test_the_api_server_fills_in_the_same() -> None:
    """The stored defaults of a platform without a spec, and of a stack with a cache, equal those of the types."""
    about = {"apiVersion": "platform.example.com/v1", "kind": "EcommercePlatform", "metadata": {}}
    assert fill_crd_defaults(about)["spec"]["cache"] == {"enabled": True}
    stack = {
        "apiVersion": "app.example.com/v1",
        "kind": "AppStack",
        "metadata": {},
        "spec": {"cache": {}},
    }
    assert fill_crd_defaults(stack)["spec"] == {
        "environment": "development",
        "cache": {"enabled": True},
        "services": [],
    }


def test_a_stack_has_only_the_named_components() -> None:
    """Each component is optional."""
    spec = AppStack.model_validate({"metadata": {}, "spec": {}}).spec
    assert (spec.database, spec.cache, spec.backend, spec.frontend) == (None, None, None, None)


@pytest.mark.parametrize("version", ["14", 14])
def test_a_version_needs_no_quotes(version: str | int) -> None:
    """14 and "14" are the same."""
    assert read(database={"version": version}).spec.database.version == "14"


def test_replicas_have_no_upper_bound() -> None:
    """Other than those of a WebApp."""
    assert read(frontend={"replicas": 500}).spec.frontend.replicas == 500


@pytest.mark.parametrize(
    "wrong",
    [
        {"environment": "test"},
        {"frontend": {"replicas": 0}},
        {"frontend": {"port": 65536}},
        {"frontend": {"image": ""}},
        {"database": {"type": "oracle"}},
        {"database": {"storage": "much"}},
        {"database": {"replicas": 6}},
        {"database": {"version": 14.5}},
        {"database": {"backup": {"retention": "forever"}}},
        {"monitoring": {"path": "metrics"}},
    ],
)
def test_values_out_of_bounds_are_refused(wrong: dict[str, Any]) -> None:
    """The bounds are those of the schema."""
    with pytest.raises(ValidationError):
        read(**wrong)
