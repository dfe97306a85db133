"""The plan of an EcommercePlatform: tables of (spec, observed) -> plan."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller.reconcilers.ecommerceplatform import ECOMMERCE_PLATFORM
from controller.reconcilers.monitoring import PROMETHEUS_RULE, SERVICE_MONITOR
from controller.reconcilers.resources import POSTGRESQL
from controller.reconcilers.tiers import TIERS
from controller.runtime.plan import Observed, Plan, Problem
from gatewright.testing import ApiServer, reconcile
from gatewright.testing.fake_apiserver.server import NAMESPACE
from kube.resource import JsonObject
from tests.controller.reconcilers.platforms import (
    container,
    deleted,
    given,
    made,
    platform,
    ready,
    unready,
)

SAMPLES = Path(__file__).parents[3] / "config/samples"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MONITORED = frozenset({SERVICE_MONITOR, PROMETHEUS_RULE})
EVERYTHING: JsonObject = {"environment": "production", "host": "shop.example.com"}


def planned(object: JsonObject, observed: Observed | None = None) -> Plan:
    """The plan of a platform."""
    return ECOMMERCE_PLATFORM.plan(
        ECOMMERCE_PLATFORM.type.model_validate(object), observed or Observed(), NOW
    )


def test_all_of_it_is_planned_before_anything_exists() -> None:
    """Admission judges every object of every step."""
    assert list(made(planned(platform(**EVERYTHING), Observed(served=MONITORED)))) == [
        ("PostgreSQL", "shop-db"),
        ("Deployment", "shop-cache"),
        ("Service", "shop-cache"),
        ("Deployment", "shop-backend"),
        ("Service", "shop-backend"),
        ("PodDisruptionBudget", "shop-backend"),
        ("Deployment", "shop-frontend"),
        ("Service", "shop-frontend"),
        ("PodDisruptionBudget", "shop-frontend"),
        ("ServiceMonitor", "shop"),
        ("PrometheusRule", "shop"),
        ("Ingress", "shop"),
    ]


def test_each_waits_for_what_it_needs() -> None:
    """The backend for the database, the frontend for the backend, the rest for the frontend."""
    assert {
        step.name: tuple(step.depends_on) for step in planned(platform(**EVERYTHING)).steps
    } == {
        "database": (),
        "cache": (),
        "queue": (),
        "backend": ("database",),
        "frontend": ("backend",),
        "monitoring": ("frontend",),
        "ingress": ("frontend",),
    }


@pytest.mark.parametrize(
    "name", ["database", "cache", "backend", "frontend", "monitoring", "ingress"]
)
def test_each_has_a_condition_that_begins_with_what_was_being_done(name: str) -> None:
    """The message begins with the step's description."""
    (step,) = (each for each in planned(platform(**EVERYTHING)).steps if each.name == name)
    doing = "setup failed" if name in ("monitoring", "ingress") else "deployment failed"
    assert (step.condition, step.failed_to) == (
        f"{name.capitalize()}Ready",
        f"{name.capitalize()} {doing}",
    )


def test_everything_carries_the_name_of_the_platform() -> None:
    """All objects, and the pods; selectors go by something else."""
    for child in made(planned(platform(**EVERYTHING), Observed(served=MONITORED))).values():
        assert child["metadata"]["labels"]["platform"] == "shop"
        if child["kind"] == "Deployment":
            assert child["spec"]["template"]["metadata"]["labels"] == child["metadata"]["labels"]
            assert child["spec"]["selector"]["matchLabels"] == {"app": child["metadata"]["name"]}


@pytest.mark.parametrize(
    ("environment", "replicas", "storage", "backup", "spread"),
    [
        ("production", 3, "100Gi", True, True),
        ("staging", 2, "50Gi", True, False),
        ("development", 1, "10Gi", False, False),
    ],
)
def test_the_environment_decides_where_the_spec_is_silent(
    environment: str, replicas: int, storage: str, backup: bool, spread: bool
) -> None:
    """The defaults of each environment: database, backup, and protection against disruptions."""
    plan = planned(platform(environment=environment), Observed(served=MONITORED))
    objects = made(plan)
    database = objects["PostgreSQL", "shop-db"]["spec"]
    assert (database["replicas"], database["storage"]) == (replicas, storage)
    assert database["backup"] == {"enabled": backup, "schedule": "0 2 * * *", "retention": "30d"}
    backend = objects["Deployment", "shop-backend"]["spec"]
    assert backend["replicas"] == replicas
    assert ("affinity" in backend["template"]["spec"]) is spread
    assert (("PodDisruptionBudget", "shop-backend") in objects) is spread
    assert (("PrometheusRule", "shop") in objects) is spread


@pytest.mark.parametrize("environment", ["production", "staging", "development"])
@pytest.mark.parametrize("name", ["production-store", "staging-platform"])
def test_the_same_file_serves_each_environment(name: str, environment: str) -> None:
    """Backups, redundancy, sizes and alerts follow `environment` alone; what the file sets stays."""
    file = yaml.safe_load((SAMPLES / f"{name}.yaml").read_text())
    file["metadata"] |= {"namespace": "eu", "uid": "1"}
    file["spec"]["environment"] = environment
    objects, tier = made(planned(file, Observed(served=MONITORED))), TIERS[environment]
    database = objects["PostgreSQL", f"{name}-db"]["spec"]
    assert database["storage"] == file["spec"]["database"]["storage"]
    assert (database["replicas"], database["backup"]["enabled"]) == (tier.replicas, tier.backup)
    assert (("PrometheusRule", name) in objects) is tier.alerts
    for workload in ("frontend", "backend"):
        deployment = objects["Deployment", f"{name}-{workload}"]["spec"]
        assert deployment["replicas"] == file["spec"][workload]["replicas"]
        assert container(objects, f"{name}-{workload}")["resources"] == tier.workload
        assert (("PodDisruptionBudget", f"{name}-{workload}") in objects) is tier.spread


@pytest.mark.parametrize("environment", ["production", "staging", "development"])
def test_every_container_is_restricted_and_sized(environment: str) -> None:
    """The test covers every environment; a user's image may write to its own filesystem."""
    objects = made(planned(platform(environment=environment)))
    for name, read_only in (
        ("shop-cache", True),
        ("shop-backend", False),
        ("shop-frontend", False),
    ):
        found = container(objects, name)
        assert found["resources"].keys() == {"requests", "limits"}
        context = dict(found["securityContext"])
        context.pop("runAsUser", None)
        assert context == {
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": read_only,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        }


def test_the_spec_overrides_the_environment() -> None:
    """The spec takes precedence over the environment; a Ti is converted to Gi."""
    plan = planned(
        platform(
            environment="production",
            database={"version": 14, "storage": "1Ti", "replicas": 5, "backup": {"enabled": False}},
            backend={
                "image": "shop/backend:v2",
                "replicas": 40,
                "port": 3000,
                "readinessPath": "/ready",
                "resources": {"limits": {"cpu": "2"}},
                "securityContext": {"runAsUser": 101},
                "env": [{"name": "CACHE_URL", "value": "redis://elsewhere"}],
            },
            monitoring={"alerts": False},
        ),
        Observed(served=MONITORED),
    )
    objects = made(plan)
    database = objects["PostgreSQL", "shop-db"]["spec"]
    said = {key: database[key] for key in ("version", "storage", "replicas")}
    assert said == {"version": "14", "storage": "1024Gi", "replicas": 5}
    assert database["backup"]["enabled"] is False
    backend = container(objects, "shop-backend")
    assert objects["Deployment", "shop-backend"]["spec"]["replicas"] == 40
    assert backend["ports"][0]["containerPort"] == 3000
    assert backend["readinessProbe"]["httpGet"] == {"path": "/ready", "port": "http"}
    assert backend["resources"] == {"limits": {"cpu": "2"}}
    assert backend["securityContext"]["runAsUser"] == 101
    assert [each for each in backend["env"] if each["name"] == "CACHE_URL"] == [
        {"name": "CACHE_URL", "value": "redis://elsewhere"}
    ]
    assert ("PrometheusRule", "shop") not in objects


@pytest.mark.parametrize(
    ("storage", "written"),
    [
        ("1Ti", "1024Gi"),
        ("500Gi", "500Gi"),
        ("1.5Ti", "1536Gi"),
        ("500Mi", "1Gi"),
        (2**40, "1024Gi"),
        (0, "0Gi"),
    ],
)
def test_storage_is_written_in_whole_gibibytes(storage: str | int, written: str) -> None:
    """Storage is rounded up to a size that is valid for PostgreSQL, or rejected."""
    objects = made(planned(platform(database={"storage": storage})))
    assert objects["PostgreSQL", "shop-db"]["spec"]["storage"] == written


def test_a_changed_default_does_not_change_existing_children() -> None:
    """Neither another environment nor a release with other defaults shrinks volumes or changes the version."""
    database = {**DATABASE, "spec": {**DATABASE["spec"], "version": "13", "storage": "100Gi"}}
    objects = made(planned(platform(), given([database])))
    spec = objects["PostgreSQL", "shop-db"]["spec"]
    assert (spec["version"], spec["storage"]) == ("13", "100Gi")
    assert made(planned(platform()))["PostgreSQL", "shop-db"]["spec"]["storage"] == "10Gi"


def test_the_database_gets_the_settings_of_its_volumes() -> None:
    """The PostgreSQL gets the storage class, the size of the backups' claim, and the deletion policy."""
    said = {"storageClassName": "fast", "deletionPolicy": "Delete", "backup": {"storage": "1Ti"}}
    spec = made(planned(platform(database=said)))["PostgreSQL", "shop-db"]["spec"]
    assert (spec["storageClassName"], spec["deletionPolicy"]) == ("fast", "Delete")
    assert spec["backup"]["storage"] == "1024Gi"


def test_the_applications_get_the_addresses_of_the_others() -> None:
    """The backend gets the addresses of database and cache, the frontend those of backend and cache."""
    objects = made(planned(platform()))
    cache = {"name": "CACHE_URL", "value": "redis://shop-cache.eu.svc:6379"}
    assert container(objects, "shop-backend")["env"] == [
        {"name": "DATABASE_HOST", "value": "shop-db"},
        {"name": "DATABASE_PORT", "value": "5432"},
        {"name": "DATABASE_NAME", "value": "app"},
        {"name": "DATABASE_USER", "value": "app"},
        {
            "name": "DATABASE_PASSWORD",
            "valueFrom": {"secretKeyRef": {"name": "shop-db-user-app", "key": "password"}},
        },
        {
            "name": "DATABASE_URL",
            "value": "postgresql://$(DATABASE_USER):$(DATABASE_PASSWORD)@$(DATABASE_HOST):$(DATABASE_PORT)"
            "/$(DATABASE_NAME)",
        },
        cache,
    ]
    backend = {"name": "BACKEND_URL", "value": "http://shop-backend.eu.svc:8080"}
    assert container(objects, "shop-frontend")["env"] == [backend, cache]


@pytest.mark.parametrize(
    ("cache", "memory"),
    [
        ({}, ["--maxmemory", str(96 * 2**20)]),
        ({"resources": {"limits": {"memory": "4Gi"}}}, ["--maxmemory", str(3 * 2**30)]),
        ({"resources": {"limits": {"cpu": "1"}}}, ["--maxmemory", str(96 * 2**20)]),
    ],
)
def test_the_cache_keeps_within_its_limit(cache: JsonObject, memory: list[str]) -> None:
    """It evicts the least recently used keys before it exceeds its memory limit."""
    command = container(made(planned(platform(cache=cache))), "shop-cache")["command"]
    start = ["valkey-server", "--save", "", "--appendonly", "no", "--protected-mode", "no"]
    assert command == [*start, *memory, "--maxmemory-policy", "allkeys-lru"]


def test_the_registry_setting_changes_no_image_that_a_user_named() -> None:
    """The setting changes only the cache's image."""
    objects = made(planned(platform(), Observed(settings={"registry": "registry.company.com"})))
    images = {
        name: container(objects, f"shop-{name}")["image"]
        for name in ("cache", "backend", "frontend")
    }
    assert images == {
        "cache": "registry.company.com/valkey/valkey:8.1",
        "backend": "shop/backend:v2",
        "frontend": "shop/frontend:v2",
    }


def test_an_ingress_leads_to_the_frontend() -> None:
    """With a certificate it serves https; without a host there is no Ingress."""
    objects = made(
        planned(
            platform(host="shop.example.com", tlsSecretName="shop-tls", ingressClassName="public")
        )
    )
    service = {"name": "shop-frontend", "port": {"name": "http"}}
    assert objects["Ingress", "shop"]["spec"] == {
        "ingressClassName": "public",
        "tls": [{"hosts": ["shop.example.com"], "secretName": "shop-tls"}],
        "rules": [
            {
                "host": "shop.example.com",
                "http": {
                    "paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": service}}]
                },
            }
        ],
    }
    assert made(planned(platform()), "Ingress") == {}


def test_without_the_apis_of_prometheus_services_are_annotated() -> None:
    """The condition reports it, and nothing waits."""
    plan = planned(platform(environment="production", monitoring={"path": "/stats"}))
    annotations = made(plan)["Service", "shop-backend"]["metadata"]["annotations"]
    assert annotations == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "8080",
        "prometheus.io/path": "/stats",
    }
    (step,) = (each for each in plan.steps if each.name == "monitoring")
    note = "ServiceMonitor and PrometheusRule of monitoring.coreos.com not served here: Services are annotated instead"
    assert (list(step.writes), step.ready, step.note) == ([], True, note)


def test_with_the_apis_of_prometheus_services_are_selected() -> None:
    """The ServiceMonitor finds the Services of backend and frontend by their labels."""
    objects = made(planned(platform(), Observed(served=MONITORED)))
    assert objects["ServiceMonitor", "shop"]["spec"] == {
        "selector": {
            "matchLabels": {"platform": "shop"},
            "matchExpressions": [
                {
                    "key": "app.kubernetes.io/component",
                    "operator": "In",
                    "values": ["backend", "frontend"],
                }
            ],
        },
        "endpoints": [{"port": "http", "path": "/metrics", "interval": "30s"}],
    }
    assert "annotations" not in objects["Service", "shop-backend"]["metadata"]


def test_production_alerts_on_missing_replicas_and_silent_pods() -> None:
    """The alerts are limited to this platform, and use series of kube-state-metrics and Prometheus."""
    rule = made(planned(platform(environment="production"), Observed(served=MONITORED)))[
        "PrometheusRule", "shop"
    ]
    (group,) = rule["spec"]["groups"]
    deployments = '{namespace="eu",deployment=~"shop-(cache|backend|frontend)"}'
    database = '{namespace="eu",statefulset="shop-db"}'
    deployed = f"kube_deployment_status_replicas_available{deployments} < kube_deployment_spec_replicas{deployments}"
    stored = (
        f"kube_statefulset_status_replicas_ready{database} < kube_statefulset_replicas{database}"
    )
    alerts = [
        (
            "PlatformComponentUnavailable",
            deployed,
            "{{ $labels.deployment }} has fewer replicas than it should",
        ),
        (
            "PlatformDatabaseUnavailable",
            stored,
            "{{ $labels.statefulset }} has fewer instances than it should",
        ),
        (
            "PlatformTargetDown",
            'up{namespace="eu",service=~"shop-(backend|frontend)"} == 0',
            "{{ $labels.pod }} does not answer Prometheus",
        ),
    ]
    assert group == {
        "name": "platform-shop",
        "rules": [
            {
                "alert": name,
                "expr": expression,
                "for": "5m",
                "labels": {"severity": "critical"},
                "annotations": {"summary": summary, "description": f"{summary} for five minutes."},
            }
            for name, expression, summary in alerts
        ],
    }


def test_disabled_components_are_deleted_by_uid() -> None:
    """Disabled cache, monitoring and host are deleted; other components stay."""
    before = made(planned(platform(**EVERYTHING), Observed(served=MONITORED))).values()
    off = platform(cache={"enabled": False}, monitoring={"enabled": False})
    plan = planned(off, given(before, served=MONITORED))
    assert deleted(plan) == [
        "deployments/shop-cache",
        "services/shop-cache",
        "poddisruptionbudgets/shop-backend",
        "poddisruptionbudgets/shop-frontend",
        "servicemonitors/shop",
        "prometheusrules/shop",
        "ingresses/shop",
    ]
    assert [step.condition for step in plan.steps if step.condition] == [
        "DatabaseReady",
        "BackendReady",
        "FrontendReady",
    ]
    assert all(each["name"] != "CACHE_URL" for each in container(made(plan), "shop-backend")["env"])


def children(**spec: Any) -> list[JsonObject]:
    """The children of a running platform."""
    return [ready(each) for each in made(planned(platform(**spec))).values()]


def seen_without(kind: str, name: str, *more: JsonObject) -> Observed:
    """All children are ready except one, which others replace."""
    others = [
        child for child in children() if (child["kind"], child["metadata"]["name"]) != (kind, name)
    ]
    return Observed(children=[*others, *more])


RUNNING, DEPLOYING = (
    {"phase": "Running", "observedGeneration": 1},
    {"phase": "Deploying", "observedGeneration": 1},
)
DATABASE, BACKEND = (
    made(planned(platform()))[each]
    for each in (("PostgreSQL", "shop-db"), ("Deployment", "shop-backend"))
)


def condition(reason: str, message: str, **more: Any) -> JsonObject:
    """The status of a database that is not ready."""
    ready = {"type": "Ready", "status": "False", "reason": reason, "message": message}
    return unready(DATABASE, observedGeneration=1, conditions=[ready], **more)


REFUSED = "spec.version: 17; the data is of PostgreSQL 14; spec.storage: 1Gi; volumes of 2Gi cannot shrink"
UNLIKELY = "failed to grow storage: the claim is invalid: spec.resources.requests.storage: too much"
ONE_OF_BEFORE = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 1, "readyReplicas": 1}
QUOTA = {
    "type": "ReplicaFailure",
    "status": "True",
    "reason": "FailedCreate",
    "message": "exceeded quota",
}


@pytest.mark.parametrize(
    ("observed", "step", "note", "before", "phase"),
    [
        (Observed(), "backend", "waiting for database", {}, "Deploying"),
        (seen_without("PostgreSQL", "shop-db"), "database", "", {}, "Deploying"),
        (
            seen_without(
                "PostgreSQL", "shop-db", condition("Progressing", "waiting for instances")
            ),
            "database",
            "PostgreSQL shop-db: waiting for instances",
            DEPLOYING,
            "Deploying",
        ),
        (
            seen_without("PostgreSQL", "shop-db", condition("Invalid", "no room", phase="Failed")),
            "database",
            Problem("PostgreSQL shop-db: no room", "Invalid"),
            DEPLOYING,
            "Failed",
        ),
        (
            seen_without("PostgreSQL", "shop-db", condition("Refused", REFUSED, phase="Failed")),
            "database",
            Problem(REFUSED.replace("spec.", "spec.database."), "Refused"),
            DEPLOYING,
            "Failed",
        ),
        (
            seen_without("PostgreSQL", "shop-db", condition("Invalid", UNLIKELY)),
            "database",
            Problem(f"PostgreSQL shop-db: {UNLIKELY}", "Invalid"),
            RUNNING,
            "Degraded",
        ),
        (
            seen_without(
                "Deployment",
                "shop-backend",
                unready(BACKEND, observedGeneration=1, updatedReplicas=1),
            ),
            "backend",
            "0 of 1 replicas are ready",
            RUNNING,
            "Degraded",
        ),
        (
            seen_without("Deployment", "shop-backend", unready(BACKEND, **ONE_OF_BEFORE)),
            "backend",
            "1 of 1 replicas are updated, 1 of an earlier revision",
            RUNNING | {"observedGeneration": 0},
            "Deploying",
        ),
        (
            seen_without("Deployment", "shop-backend", unready(BACKEND, observedGeneration=0)),
            "backend",
            "0 of 1 replicas are ready",
            RUNNING | {"observedGeneration": 0},
            "Deploying",
        ),
        (
            seen_without("Deployment", "shop-backend", unready(BACKEND, conditions=[QUOTA])),
            "backend",
            Problem("exceeded quota", "FailedCreate"),
            RUNNING,
            "Degraded",
        ),
    ],
)
def test_missing_objects_are_reported(
    observed: Observed, step: str, note: str | Problem, before: JsonObject, phase: str
) -> None:
    """Each component's condition has the reason; the phase shows whether it was ready before."""
    plan = planned(platform() | {"status": before}, observed)
    (found,) = (each for each in plan.steps if each.name == step)
    assert (found.ready, found.note, plan.status.to_api()["phase"], plan.failing) == (
        False,
        note,
        phase,
        phase,
    )
    assert plan.requeue_after == timedelta(seconds=30)


def test_a_platform_that_runs_is_looked_at_every_ten_minutes() -> None:
    """Its status has all endpoints."""
    plan = planned(platform(), Observed(children=children()))
    assert all(step.ready for step in plan.steps)
    assert (plan.requeue_after, plan.failing) == (timedelta(minutes=10), "Deploying")
    assert plan.status.to_api() == {
        "phase": "Running",
        "endpoints": {
            "database": "postgresql://shop-db.eu.svc:5432",
            "cache": "redis://shop-cache.eu.svc:6379",
            "backend": "http://shop-backend.eu.svc:8080",
            "frontend": "http://shop-frontend.eu.svc:8080",
        },
    }


def test_a_missing_image_is_reported() -> None:
    """Ready is False with reason Incomplete; other components are created, and running ones stay."""
    plan = planned(platform(backend={}), Observed(children=children()))
    assert plan.problem == Problem(
        "Backend deployment failed: spec.backend.image: must be set", "Incomplete"
    )
    assert deleted(plan) == []
    assert ("Deployment", "shop-frontend") in made(plan)
    both = (
        "Backend deployment failed: spec.backend.image: must be set; "
        "Frontend deployment failed: spec.frontend.image: must be set"
    )
    assert planned(platform(backend={}, frontend={})).problem == Problem(both, "Incomplete")


def test_another_type_of_database_leaves_the_data_alone() -> None:
    """The existing database stays, and the condition names the remedy; the backend keeps its login."""
    plan = planned(platform(database={"type": "mysql"}), Observed(children=children()))
    wrong = (
        "it is postgresql, and spec.database.type: mysql would leave its data behind; set it back"
    )
    assert plan.problem == Problem(f"Database deployment failed: {wrong}", "TypeChanged")
    assert (deleted(plan), made(plan, "StatefulSet"), made(plan, "PostgreSQL")) == ([], {}, {})
    backend = next(each for each in children() if each["metadata"]["name"] == "shop-backend")
    assert made(plan)["Deployment", "shop-backend"]["spec"] == backend["spec"]


async def test_each_step_waits_for_the_one_before_and_then_no_write_follows(
    server: ApiServer,
) -> None:
    """On a fake client, each step is created after the one before it is ready; then no write follows."""
    server.create(NAMESPACE, {"metadata": {"name": "eu"}})
    for optional in ECOMMERCE_PLATFORM.optional:
        server.serve(optional)
    server.create(ECOMMERCE_PLATFORM.resource, platform(host="shop.example.com"))
    passes: list[list[str]] = []

    async def look() -> JsonObject:
        before = len(server.writes)
        await reconcile(ECOMMERCE_PLATFORM, server, "shop", "eu")
        passes.append(server.writes[before:])
        return dict((server.get(ECOMMERCE_PLATFORM.resource, "shop", "eu"))["status"])

    async def becomes_ready(resource: Any, name: str) -> None:
        child = server.get(resource, name, "eu")
        generation = child["metadata"].get("generation", 0)
        status = ready(child)["status"] | {"observedGeneration": generation}
        server.apply(
            resource,
            {"metadata": {"name": name, "namespace": "eu"}, "status": status},
            "test",
            "status",
        )

    status = await look()
    assert status["phase"] == "Deploying"
    told = {each["type"]: each["message"] for each in status["conditions"]}
    assert told["BackendReady"] == "waiting for database"
    assert told["Ready"] == "waiting for database, cache, backend, frontend, monitoring, ingress"
    deployments = next(each for each in ECOMMERCE_PLATFORM.owns if each.plural == "deployments")
    await becomes_ready(POSTGRESQL, "shop-db")
    await becomes_ready(deployments, "shop-cache")
    await look()
    await becomes_ready(deployments, "shop-backend")
    await look()
    await becomes_ready(deployments, "shop-frontend")
    status = await look()
    assert (status["phase"], status["conditions"][-1]["status"]) == ("Running", "True")
    await look()
    of_status = "apply ecommerceplatforms/status eu/shop"
    assert passes == [
        [
            "apply postgresqls eu/shop-db",
            "apply deployments eu/shop-cache",
            "apply services eu/shop-cache",
            of_status,
        ],
        ["apply deployments eu/shop-backend", "apply services eu/shop-backend", of_status],
        ["apply deployments eu/shop-frontend", "apply services eu/shop-frontend", of_status],
        ["apply servicemonitors eu/shop", "apply ingresses eu/shop", of_status],
        [],
    ]
    assert (server.get(POSTGRESQL, "shop-db", "eu"))["metadata"]["labels"]["platform"] == "shop"


def test_a_label_of_the_platform_does_not_replace_its_name() -> None:
    """Children have the platform's own name as label, whatever label the platform has itself."""
    labelled = platform()
    labelled["metadata"] = {**labelled["metadata"], "labels": {"platform": "other"}}
    assert {
        object["metadata"]["labels"]["platform"] for object in made(planned(labelled)).values()
    } == {"shop"}


@pytest.mark.parametrize("name", ["database", "cache", "backend", "frontend", "ingress"])
def test_every_object_has_the_origins_of_its_fields(name: str) -> None:
    """Fields that a user can set have origins, so that a denial names the platform's own field."""
    plan = planned(platform(**EVERYTHING))
    (step,) = (each for each in plan.steps if each.name == name)
    found = {source for write in step.writes for source in getattr(write, "origin", {}).values()}
    sources = {each for each in found if each.startswith("spec.")}
    of_database = (
        "version",
        "storage",
        "storageClassName",
        "replicas",
        "backup",
        "resources",
        "deletionPolicy",
    )
    wanted = {
        "database": {f"spec.database.{each}" for each in of_database} | {"spec.monitoring"},
        "cache": {"spec.cache.resources"},
        "ingress": {"spec.host", "spec.tlsSecretName", "spec.ingressClassName"},
    }
    fields = ("replicas", "image", "port", "resources", "env", "securityContext", "readinessPath")
    assert sources == wanted.get(
        name, {f"spec.{name}.{each}" for each in fields} | {"spec.environment"}
    )
