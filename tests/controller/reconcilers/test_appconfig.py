"""The plan of an AppConfig."""

from datetime import UTC, datetime
from typing import Any

import pytest

from config.api.appconfig import AppConfig
from controller.reconcilers.appconfig import APPCONFIG, by_config_map
from controller.reconcilers.resources import NAMESPACE
from controller.reconcilers.rolling import checksum_of
from controller.runtime.plan import Apply, Observed, Plan, Problem

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def planned(
    status: Any = None, observed: Observed | None = None, namespace: str = "sales", **spec: Any
) -> Plan:
    """The plan of an AppConfig."""
    metadata = {
        "name": "settings",
        "namespace": namespace,
        "uid": "1",
        "labels": {"platform": "store", "team": "a"},
    }
    object = {"metadata": metadata, "spec": spec} | ({"status": status} if status else {})
    return APPCONFIG.plan(AppConfig.model_validate(object), observed or Observed(), NOW)


def test_it_makes_one_configmap() -> None:
    """It has the rendered values and the platform's labels; no workload is restarted."""
    plan = planned(
        application="shop",
        environment="staging",
        config={"url": "http://{{ application }}.{{ namespace }}"},
    )
    (step,) = plan.steps
    (write,) = step.writes
    assert isinstance(write, Apply)
    data = {"url": "http://shop.sales"}
    assert write.object == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "shop-config",
            "namespace": "sales",
            "labels": {"platform": "store", "team": "a"},
            "annotations": {
                "checksum.gatewright.io/data": checksum_of(data),
                "checksum.gatewright.io/revision": "1",
            },
        },
        "data": data,
    }
    assert {each: write.origin[each] for each in ("metadata.name", "data")} == {
        "metadata.name": "spec.application",
        "data": "spec.config",
    }
    assert not step.ready
    assert plan.status.to_api() == {}


def test_the_status_describes_the_stored_configmap() -> None:
    """The status changes only after the ConfigMap has the data; its time changes only with the data."""
    checksum = checksum_of({"a": "1"})
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "shop-config",
            "annotations": {"checksum.gatewright.io/data": checksum},
        },
    }
    observed = Observed(children=[child])
    status = planned(observed=observed, application="shop", config={"a": "1"}).status.to_api()
    assert status == {
        "configMapName": "shop-config",
        "checksum": checksum,
        "revision": 1,
        "lastUpdated": "2026-01-01T00:00:00Z",
        "environment": "dev",
    }
    before = status | {
        "lastUpdated": "2025-01-01T00:00:00Z",
        "conditions": [],
        "observedGeneration": 1,
    }
    again = planned(before, observed, application="shop", config={"a": "1"}).status.to_api()
    assert again == status | {"lastUpdated": "2025-01-01T00:00:00Z"}
    assert planned(before, observed, application="shop", config={"a": "2"}).status.to_api() == again
    assert planned(before, application="other", config={"a": "1"}).status.to_api() == {}


VALUES: dict[str, dict[str, str]] = {
    "LOG_LEVEL": {"default": "info", "dev": "debug"},
    "HOST": {"prod": "{{ application }}.example.com", "staging": "staging.{{ application }}.test"},
}
FROM_NAMESPACE: dict[str, Any] = {
    "application": "shop",
    "environment": "from-namespace",
    "values": VALUES,
}


@pytest.mark.parametrize(
    ("environment", "data"),
    [
        ("staging", {"LOG_LEVEL": "info", "HOST": "staging.shop.test"}),
        ("prod", {"LOG_LEVEL": "info", "HOST": "shop.example.com"}),
    ],
)
def test_values_are_those_of_the_environment(environment: str, data: dict[str, str]) -> None:
    """Or else the default; beside the values that are the same everywhere."""
    plan = planned(application="shop", environment=environment, config={"a": "1"}, values=VALUES)
    ((write,),) = (step.writes for step in plan.steps)
    assert isinstance(write, Apply)
    assert write.object["data"] == data | {"a": "1"}
    assert write.origin["data.HOST"] == "spec.values.HOST"


@pytest.mark.parametrize(
    ("namespace", "label", "host"),
    [
        ("sales", "prod", "shop.example.com"),
        ("sales", "production", "shop.example.com"),
        ("sales", "staging", "staging.shop.test"),
        ("production", None, "shop.example.com"),
        ("staging", "production", "shop.example.com"),
    ],
)
def test_the_namespace_tells_the_environment(namespace: str, label: str | None, host: str) -> None:
    """By its label `environment`, or else by its name, as namespaces are chosen by presets."""
    labels = {"environment": label} if label else {}
    stored = {"metadata": {"name": namespace, "labels": labels}}
    observed = Observed(found={(NAMESPACE, "namespace", namespace): [stored]})
    plan = planned(observed=observed, namespace=namespace, **FROM_NAMESPACE)
    ((write,),) = (step.writes for step in plan.steps)
    assert isinstance(write, Apply)
    assert write.object["data"]["HOST"] == host


@pytest.mark.parametrize("label", [None, "test"])
def test_a_namespace_that_tells_no_environment_is_a_problem(label: str | None) -> None:
    """The message says what to do, and nothing is written."""
    labels = {"environment": label} if label else {}
    stored = {"metadata": {"name": "sales", "labels": labels}}
    plan = planned(
        observed=Observed(found={(NAMESPACE, "namespace", "sales"): [stored]}), **FROM_NAMESPACE
    )
    assert (plan.steps, plan.problem) == (
        (),
        Problem(
            "spec.environment is from-namespace, and namespace sales tells none: label it "
            "environment=ENVIRONMENT (one of dev, staging, prod, development, production), or name "
            "the environment in spec.environment",
            "EnvironmentUnknown",
        ),
    )


TOO_LONG = "the ConfigMap's name would have 254 characters; the limit is 253"


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        ({}, "Incomplete", "spec.application: must be set"),
        (
            {"application": "shop", "config": {"a": "{{ secret }}"}},
            "Invalid",
            'spec.config[a]: line 1: undefined variable "secret"; known variables: application, environment, namespace',
        ),
        (
            {"application": "shop", "config": {"a/b": ""}},
            "Invalid",
            "spec.config[a/b]: a key of a ConfigMap has letters, digits, '-', '_' and '.', 253 at most",
        ),
        (
            {"application": "shop", "config": {"..data": ""}},
            "Invalid",
            "spec.config[..data]: a key of a ConfigMap has letters, digits, '-', '_' and '.', 253 at most",
        ),
        ({"application": "a" * 247}, "Invalid", f"spec.application: {TOO_LONG}"),
        (
            {"application": "Sh"},
            "Invalid",
            "spec.application: the ConfigMap's name, Sh-config, may only contain lower-case letters, digits, '-' "
            "and '.'",
        ),
        (
            {"application": "shop", "config": {"a": "ä" * 524_288, "b": "1"}},
            "Invalid",
            "spec.config: the ConfigMap would hold 1048577 bytes; the limit is 1048576",
        ),
        (
            {"application": "shop", "values": VALUES},
            "Invalid",
            "spec.values[HOST]: no value for environment dev, and no default; add one of them",
        ),
        (
            {"application": "shop", "config": {"a": ""}, "values": {"a": {"default": ""}}},
            "Invalid",
            "spec.values[a]: spec.config has this key too; keep one of them",
        ),
        (
            {"application": "shop", "values": {"a": {"dev": "", "prod": "{{ secret }}"}}},
            "Invalid",
            'spec.values[a].prod: line 1: undefined variable "secret"; known variables: application, environment, '
            "namespace",
        ),
        (
            {"application": "shop", "values": {"a b": {"default": ""}}},
            "Invalid",
            "spec.values[a b]: a key of a ConfigMap has letters, digits, '-', '_' and '.', 253 at most",
        ),
    ],
)
def test_an_impossible_child_is_a_problem(spec: Any, reason: str, message: str) -> None:
    """Nothing is written, observed fields of the status stay, and the error names the field."""
    status = {
        "configMapName": "shop-config",
        "checksum": "1",
        "lastUpdated": "2025-01-01T00:00:00Z",
    }
    plan = planned(status | {"conditions": []}, **spec)
    assert (plan.steps, plan.status.to_api()) == ((), status)
    assert plan.problem is not None
    assert (plan.problem.reason, plan.problem.message) == (reason, message)


def test_many_faults_are_truncated() -> None:
    """Three faults are reported, with the number of the others."""
    problem = planned(application="shop", config=dict.fromkeys("abcde", "{{ 1 }}")).problem
    assert problem is not None
    assert problem.message.endswith(
        "spec.config[c]: line 1: Const is not allowed; use only variables, filters with text arguments, and choices by a variable; and 2 more"
    )


def test_it_is_found_by_its_configmap() -> None:
    """The index has the name that workloads use."""
    assert list(by_config_map({"spec": {"application": "shop"}})) == ["shop-config"]
    assert list(by_config_map({"spec": {}})) == []
