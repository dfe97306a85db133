"""A platform is denied for its planned children, with the name of its own field."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from config.defaulting import fill_crd_defaults
from config.documents import parse_documents
from config.settings import Settings
from gatewright.processes.planners import planners_of
from tests.controller.reconcilers.platforms import platform, stack
from webhook.engine import NAMESPACE_LABELS, NOW, SERVED, Engine
from webhook.engine.look_ups import LOOK_UPS
from webhook.harness.reviews import Admission, ask
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import load

PRODUCTION = Path(__file__).parents[3] / "config/policies/production.yaml"
POLICIES = load(parse_documents(PRODUCTION.read_bytes(), "production.yaml"), catalogue())
ENGINE = Engine(
    POLICIES, planners_of(Settings(registry="registry.company.com"), "gatewright-system")
)
LOOKED_UP = {
    NAMESPACE_LABELS: {"environment": "production"},
    NOW: datetime(2026, 1, 1, tzinfo=UTC),
    SERVED: (),
}
LOOKED_UP |= {name: [] for name in LOOK_UPS}
SHOP: dict[str, Any] = {
    name: {"image": f"registry.company.com/{name}:v2"} for name in ("backend", "frontend")
}
MAJOR = "must be one of '12', '13', '14', '15', '16', '17' or '18'. Correct it."


REPLICAS = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: two}
spec: {policy: replica-limits, params: {minimum: 2, tier: these}}
"""


def denied(object: dict[str, Any], engine: Engine = ENGINE) -> list[str]:
    """Return the denial messages of an object in a production namespace."""
    answer = ask(engine, Admission(object=fill_crd_defaults(object), namespace="eu"), LOOKED_UP)
    return [] if answer.allowed else answer.response["status"]["message"].splitlines()[1:]


@pytest.mark.parametrize(
    "database", [{"type": "postgresql", "version": "14", "storage": "1Ti"}, {"type": "mysql"}]
)
@pytest.mark.parametrize("environment", ["production", "staging", "development"])
def test_default_choices_pass_the_production_policies(
    environment: str, database: dict[str, Any]
) -> None:
    """With images from the approved registry, no child of a platform is denied."""
    assert (
        denied(
            platform(**SHOP, environment=environment, database=database, host="shop.example.com")
        )
        == []
    )


@pytest.mark.parametrize(
    ("spec", "lines"),
    [
        (
            {"database": {"version": "14.5"}},
            [f'- postgresql-schema: spec.database.version: "14.5"; {MAJOR}'],
        ),
        (
            {"database": {"storage": "0Gi"}},
            [
                "- postgresql-rules: spec.database.storage: 0Gi; the size of a volume must be positive. "
                "Write 1Gi or more."
            ],
        ),
        (
            {"backend": {"image": "nginx:1.21", "replicas": 11, "resources": {}}},
            [
                '- image-registries: spec.backend.image: "nginx:1.21" comes from docker.io; images must come from '
                "approved registry registry.company.com. Push it there, or ask for an exception.",
                "- replica-limits: spec.backend.replicas: 11; production workloads cannot exceed 10 replicas. "
                "Set it to 10 or less.",
                "- resource-limits: spec.backend.resources.limits: cpu and memory missing; resource limits required in "
                "production. Set both.",
            ],
        ),
    ],
)
def test_a_denial_names_the_fields_of_the_platform(spec: dict[str, Any], lines: list[str]) -> None:
    """There is one message, for platforms and stacks alike."""
    assert sorted(denied(platform(**{**SHOP, **spec}))) == lines
    assert sorted(denied(stack(**{**SHOP, **spec}))) == lines


def test_an_autoscaled_workload_has_the_least_number_of_its_autoscaler() -> None:
    """Its Deployment is created with it: enough replicas are allowed, too few named by their field."""
    policies = load(parse_documents(REPLICAS.encode(), "two.yaml"), catalogue())
    engine = Engine(policies, planners_of(Settings(), "gatewright-system"))
    fix = "; these workloads need at least 2 replicas. Set it to 2 or more, or to 0."
    for least, lines in ((2, []), (1, [f"- two: spec.backend.autoscaling.min: 1{fix}"])):
        backend = {"image": "b:1", "autoscaling": {"min": least, "max": 3}}
        assert denied(stack(environment="production", backend=backend), engine) == lines
        webapp = {
            "apiVersion": "example.com/v1",
            "kind": "WebApp",
            "metadata": {"name": "shop"},
            "spec": {"replicas": 1, **backend},
        }
        assert denied(webapp, engine) == [line.replace("backend.", "") for line in lines]
