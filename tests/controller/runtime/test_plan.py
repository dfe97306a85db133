"""The values that planners work with."""

from datetime import UTC, datetime
from typing import Any

import pytest

from controller.runtime.plan import Apply, Observed, Plan, Step
from tests.controller.runtime.conftest import NAMESPACE, Status, Thing, configmap, kind_of

NOW = datetime(2026, 11, 28, tzinfo=UTC)


class NoStatus:
    def to_api(self) -> dict[str, Any]:
        """Return an empty status."""
        return {}


def test_a_step_may_only_depend_on_earlier_ones() -> None:
    """Cycles and misspelt names are errors when the plan is built."""
    with pytest.raises(ValueError, match="step a depends on b, which does not precede it"):
        Plan((Step("a", [], depends_on=["b"]), Step("b", [])), NoStatus())


def test_the_message_describes_the_step_that_failed() -> None:
    """Without a description, the message is that the step failed to create its name."""
    assert Step("service", []).failed_to == "failed to create service"
    assert (
        Step("secret", [], doing="failed to create credentials").failed_to
        == "failed to create credentials"
    )


def test_a_child_in_another_namespace_than_its_parent_is_an_error() -> None:
    """Owner references cannot cross namespaces, so the plan is none; its own namespace may be named."""

    def plan(thing: Thing, observed: Observed, now: datetime) -> Plan:
        del observed, now
        elsewhere = configmap("copy")
        elsewhere["metadata"]["namespace"] = "production" if thing.spec.size > 1 else NAMESPACE
        return Plan((Step("copy", [Apply(elsewhere)]),), Status())

    def thing(size: int) -> Thing:
        metadata = {"name": "thing", "namespace": NAMESPACE}
        return Thing.model_validate({"metadata": metadata, "spec": {"size": size}})

    assert kind_of(plan).plan(thing(1), Observed(), NOW).steps
    with pytest.raises(
        ValueError, match=r"ConfigMap copy: metadata.namespace: production; the chi"
    ):
        kind_of(plan).plan(thing(2), Observed(), NOW)
