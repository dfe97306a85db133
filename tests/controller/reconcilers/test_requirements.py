"""Compute resources of containers whose image Gatewright chooses."""

from typing import Any

import pytest

from config.api.core import ResourceRequirements
from controller.reconcilers.requirements import complete_requirements

DEFAULT = {
    "requests": {"cpu": "100m", "memory": "128Mi"},
    "limits": {"cpu": "500m", "memory": "512Mi"},
}


@pytest.mark.parametrize(
    ("given", "requests", "limits"),
    [
        (None, ("100m", "128Mi"), ("500m", "512Mi")),
        ({}, ("100m", "128Mi"), ("500m", "512Mi")),
        ({"requests": {"cpu": "200m"}}, ("200m", "128Mi"), ("500m", "512Mi")),
        ({"limits": {"memory": "1Gi"}}, ("100m", "128Mi"), ("500m", "1Gi")),
        ({"requests": {"cpu": 2}}, (2, "128Mi"), (2, "512Mi")),
        ({"limits": {"memory": "64Mi"}}, ("100m", "64Mi"), ("500m", "64Mi")),
        (
            {"requests": {"cpu": "0.5"}, "limits": {"cpu": "400m"}},
            ("0.5", "128Mi"),
            ("400m", "512Mi"),
        ),
    ],
)
def test_unset_amounts_get_defaults(
    given: dict[str, Any] | None, requests: tuple[Any, Any], limits: tuple[Any, Any]
) -> None:
    """Defaults apply per amount; they never contradict set amounts, and set amounts never change."""
    said = None if given is None else ResourceRequirements.model_validate(given)
    assert complete_requirements(said, DEFAULT) == {
        "requests": dict(zip(("cpu", "memory"), requests, strict=True)),
        "limits": dict(zip(("cpu", "memory"), limits, strict=True)),
    }


def test_other_resources_stay() -> None:
    """Resources without defaults are copied unchanged."""
    given = ResourceRequirements.model_validate(
        {"limits": {"example.com/gpu": 1}, "claims": [{"name": "a"}]}
    )
    found = complete_requirements(given, DEFAULT)
    assert found["claims"] == [{"name": "a"}]
    assert found["limits"] == {"cpu": "500m", "memory": "512Mi", "example.com/gpu": 1}
