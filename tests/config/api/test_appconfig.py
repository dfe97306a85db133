import pytest
from pydantic import ValidationError

from config.api.appconfig import AppConfig, ConfigMapStatus


def read(spec: dict | None) -> AppConfig:
    """The AppConfig with this spec, as the API server sends it."""
    return AppConfig.model_validate(
        {"apiVersion": "config.example.com/v1", "kind": "AppConfig", "spec": spec}
    )


@pytest.mark.parametrize(
    "spec", [None, {}, {"application": None, "environment": None, "config": None}]
)
def test_unset_fields_get_defaults(spec):
    """The environment and the settings; the application has no default."""
    found = read(spec).spec
    assert (found.application, found.environment, found.config) == (None, "dev", {})


@pytest.mark.parametrize(
    "wrong", [{"environment": "production"}, {"config": {"a": 1}}, {"application": ["shop"]}]
)
def test_other_types_are_refused(wrong):
    """The bounds are those of the schema."""
    with pytest.raises(ValidationError):
        read(wrong)


def test_the_time_of_a_status_is_in_whole_seconds():
    """The API server writes whole seconds."""
    written = {
        "configMapName": "shop-config",
        "checksum": "1",
        "revision": 2,
        "lastUpdated": "2026-01-01T00:00:00Z",
    }
    assert ConfigMapStatus.model_validate(written).to_api() == written
