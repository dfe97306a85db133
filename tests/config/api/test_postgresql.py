from typing import Any

import pytest
from pydantic import ValidationError

from config.api.postgresql import PostgreSQL


def read(**spec: Any) -> PostgreSQL:
    """The PostgreSQL with this spec, as the API server sends it."""
    return PostgreSQL.model_validate({"metadata": {"name": "shop"}, "spec": spec})


def test_an_empty_spec_has_the_documented_defaults():
    """Nothing is required."""
    assert PostgreSQL.model_validate({"metadata": {"name": "shop"}}).spec == read().spec
    assert read().spec.to_api() == {
        "version": "17",
        "majorUpgrade": "Refused",
        "storage": "10Gi",
        "replicas": 1,
        "synchronous": "Preferred",
        "parameters": {},
        "resources": {
            "requests": {"cpu": "250m", "memory": "576Mi"},
            "limits": {"cpu": "1", "memory": "1088Mi"},
        },
        "backup": {"enabled": False, "schedule": "0 2 * * *", "retention": "30d"},
        "users": [],
        "databases": [],
        "monitoring": {"enabled": False},
        "deletionPolicy": "Retain",
    }


def test_the_published_fields_are_accepted():
    """The fields of published manifests are accepted."""
    spec = {
        "version": "12",
        "majorUpgrade": "Final",
        "storage": "500Gi",
        "replicas": 5,
        "backup": {
            "enabled": True,
            "schedule": "@daily",
            "retention": "2w",
            "destination": {
                "type": "s3",
                "bucket": "dumps",
                "prefix": "shop",
                "secretRef": {"name": "store"},
            },
        },
        "users": [{"name": "app"}],
        "databases": [{"name": "shop", "owner": "app"}, {"name": "reports", "owner": "postgres"}],
        "monitoring": {"enabled": True},
        "deletionPolicy": "Delete",
        "synchronous": "Required",
        "parameters": {"work_mem": "16MB", "max_connections": 200},
        "image": "registry.company.com/postgis:16",
    }
    assert read(**spec).spec.to_api() == {**spec, "resources": read().spec.resources.to_api()}


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": "11"},
        {"version": "19"},
        {"version": 14},
        {"storage": "10G"},
        {"storage": "1.5Gi"},
        {"replicas": 0},
        {"replicas": 6},
        {"deletionPolicy": "Keep"},
        {"backup": {"retention": "30"}},
        {"backup": {"retention": "0d"}},
        {"backup": {"retention": "1m"}},
        {"backup": {"destination": {"type": "ftp"}}},
    ],
)
def test_values_out_of_bounds_are_refused(wrong):
    """The bounds are those of the schema."""
    with pytest.raises(ValidationError):
        read(**wrong)


@pytest.mark.parametrize("storage", ["500Mi", "1Ti", "1.5Gi", ""])
def test_a_size_that_is_not_whole_gi_is_refused_in_words(storage):
    """The pattern alone would not say what to write."""
    with pytest.raises(ValidationError) as refused:
        read(storage=storage)
    (fault,) = refused.value.errors()
    assert fault["msg"] == "Value error, must be whole Gi; write it as 10Gi (1Ti is 1024Gi)"
