"""The plan of a PostgreSQL: tables of (spec, observed) -> plan."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from config.api.postgresql import PostgreSQL
from controller.reconcilers.claims import READS_CLASSES
from controller.reconcilers.postgresql import POSTGRESQL
from controller.reconcilers.postgresql_members import keep_pod
from controller.reconcilers.postgresql_patroni import keep_annotations
from controller.reconcilers.resources import (
    CLAIM,
    ENDPOINT_SLICE,
    ENDPOINTS,
    JOB,
    POD,
    SERVICE,
    STORAGE_CLASS,
)
from controller.runtime.plan import (
    Apply,
    ApplyFields,
    CreateOnly,
    Delete,
    Observed,
    Plan,
    Problem,
    Random,
    Write,
)
from gatewright.testing import ApiServer, reconcile
from kube.resource import JsonObject

NOW = datetime(2026, 1, 1, tzinfo=UTC)
APP = {"users": [{"name": "app"}], "databases": [{"name": "shop", "owner": "app"}]}
LOCAL = {"backup": {"enabled": True}}
REMOTE = {
    "backup": {"enabled": True, "destination": {"bucket": "dumps", "secretRef": {"name": "store"}}}
}
LABELS = {"app.kubernetes.io/instance": "shop", "app.kubernetes.io/component": "database"}


def planned(
    *,
    children: Sequence[JsonObject] = (),
    found: Sequence[JsonObject] = (),
    metadata: JsonObject | None = None,
    status: JsonObject | None = None,
    reads_classes: bool = True,
    **spec: Any,
) -> Plan:
    """The plan of a PostgreSQL `shop` with these children, claims, pods, Jobs and classes.

    With `reads_classes=False`, the controller may not read StorageClasses.
    """
    about = {
        "name": "shop",
        "namespace": "default",
        "uid": "1",
        "generation": 1,
        **(metadata or {}),
    }
    database = PostgreSQL.model_validate(
        {"metadata": about, "spec": {"version": "14", **spec}, "status": status or {}}
    )
    look_ups: dict[Any, list[JsonObject]] = {}
    for object in found:
        resource = {
            "Pod": POD,
            "Endpoints": ENDPOINTS,
            "EndpointSlice": ENDPOINT_SLICE,
            "Service": SERVICE,
            "Job": JOB,
            "PersistentVolumeClaim": CLAIM,
            "StorageClass": STORAGE_CLASS,
        }[object["kind"]]
        indexes = (
            READS_CLASSES.indexes if resource == STORAGE_CLASS else {"instance": lambda _: ["shop"]}
        )
        for index, by in indexes.items():
            for value in by(object):
                look_ups.setdefault((resource, index, value), []).append(object)
    return POSTGRESQL.plan(
        database,
        Observed(
            children=children,
            found=look_ups,
            settings={"registry": "r.example"},
            served=frozenset([STORAGE_CLASS] if reads_classes else []),
        ),
        NOW,
    )


def step_of(plan: Plan, name: str) -> Any:
    """One step of a plan."""
    return next(step for step in plan.steps if step.name == name)


def writes(plan: Plan, step: str) -> list[Write]:
    """The writes of a step."""
    return list(step_of(plan, step).writes)


def made(plan: Plan, kind: str) -> list[JsonObject]:
    """The objects of a kind that a plan makes."""
    objects = [
        write.object
        for step in plan.steps
        for write in step.writes
        if isinstance(write, Apply | CreateOnly)
    ]
    return [each for each in objects if each["kind"] == kind]


def holding(plan: Plan) -> list[str]:
    """The fulfilled steps."""
    return [step.name for step in plan.steps if step.ready]


def child(kind: str, name: str, **fields: Any) -> JsonObject:
    """A child in its stored form."""
    versions = {
        "StatefulSet": "apps/v1",
        "Job": "batch/v1",
        "CronJob": "batch/v1",
        "Backup": "backup.example.com/v1",
    }
    about = {
        "name": name,
        "namespace": "default",
        "uid": f"{name}-uid",
        "resourceVersion": "7",
        "generation": 1,
    }
    return {"apiVersion": versions.get(kind, "v1"), "kind": kind, "metadata": about, **fields}


def stateful_set(ready: int = 1, storage: str = "1Gi", version: str = "14") -> JsonObject:
    """Return the StatefulSet with this many ready instances."""
    labels = {**LABELS, "app.kubernetes.io/version": version}
    claims = [{"metadata": {"name": "data", "labels": labels}, "spec": asked(storage)}]
    status = {
        "observedGeneration": 1,
        "replicas": ready,
        "readyReplicas": ready,
        "updatedReplicas": ready,
    }
    return child("StatefulSet", "shop", spec={"volumeClaimTemplates": claims}, status=status)


def asked(storage: str) -> JsonObject:
    """The requested size of a claim."""
    return {"resources": {"requests": {"storage": storage}}, "storageClassName": "fast"}


def claim(
    storage: str = "1Gi",
    *,
    ordinal: int = 0,
    component: str = "database",
    phase: str = "Bound",
    requested: str | None = None,
) -> JsonObject:
    """A stored claim; `requested` is the size that the spec requested last, where another was first."""
    annotations = {"gatewright.io/requested-storage": requested} if requested else {}
    found = child("PersistentVolumeClaim", f"data-shop-{ordinal}", spec=asked(storage))
    labels = {**LABELS, "app.kubernetes.io/component": component, "app.kubernetes.io/version": "14"}
    return {
        **found,
        "metadata": {**found["metadata"], "labels": labels, "annotations": annotations},
        "status": {"phase": phase, "capacity": {"storage": storage}},
    }


def pod(
    ready: str = "True", name: str = "shop-0", account: str = "shop-gatewright-patroni"
) -> JsonObject:
    """An instance; those of an earlier release have the account `default`."""
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    found = child("Pod", name, spec={"serviceAccountName": account}, status=status)
    return {**found, "metadata": {**found["metadata"], "labels": LABELS}}


def endpoints(name: str = "shop", **annotations: str) -> JsonObject:
    """Endpoints in which Patroni keeps its state."""
    found = child("Endpoints", name)
    return {**found, "metadata": {**found["metadata"], "annotations": annotations}}


LED = endpoints(leader="shop-0")


def expandable(allowed: bool = True) -> JsonObject:
    """The storage class of the claims."""
    return {"kind": "StorageClass", "metadata": {"name": "fast"}, "allowVolumeExpansion": allowed}


ALL_THERE = [
    child("Secret", "shop-credentials"),
    stateful_set(),
    child("Service", "shop", spec={}),
    child("Service", "shop-headless", spec={}),
    child("Service", "shop-read", spec={}),
]


@pytest.mark.parametrize(
    ("children", "found", "holds", "phase"),
    [
        ([], [], [], "Pending"),
        (ALL_THERE[:1], [], ["credentials"], "Pending"),
        ([*ALL_THERE[:1], stateful_set(0)], [pod("False")], ["credentials"], "Deploying"),
        (ALL_THERE[:2], [pod()], ["credentials", "instances"], "Deploying"),
        (ALL_THERE[:2], [pod(), LED], ["credentials", "database", "instances"], "Running"),
        (ALL_THERE, [pod(), LED], ["credentials", "database", "service", "instances"], "Running"),
    ],
)
def test_each_step_waits_for_the_one_before(
    children: list[JsonObject], found: list[JsonObject], holds: list[str], phase: str
) -> None:
    """Credentials, the database once it has them, Services once the primary answers, then the rest."""
    plan = planned(children=children, found=found, storage="1Gi")
    nothing_to_do = ["upgrade", "storage", "restore", "users and databases", "backups"]
    nothing_to_do += ["removal of volumes"]
    assert sorted(holding(plan)) == sorted([*holds, *nothing_to_do])
    assert plan.status.to_api()["phase"] == phase
    assert plan.requeue_after == timedelta(minutes=5)
    assert {step.name: (step.depends_on, step.failed_to) for step in plan.steps} == {
        "credentials": ((), "failed to create credentials"),
        "upgrade": (("credentials",), "failed to upgrade"),
        "database": (("credentials",), "failed to create database"),
        "service": (("database",), "failed to create service"),
        "storage": (("service",), "failed to grow storage"),
        "instances": (("service",), "failed to create instances"),
        "restore": (("service",), "failed to restore"),
        "users and databases": (("service", "restore"), "failed to create users and databases"),
        "backups": (("instances", "restore"), "failed to setup backups"),
        "removal of volumes": ((), "failed to remove volumes"),
    }


def test_passwords_are_generated_once_and_never_planned() -> None:
    """The passwords of the superuser and the standbys are in one Secret, those of each user in another."""
    own, user = writes(planned(**APP), "credentials")
    assert isinstance(own, CreateOnly)
    assert isinstance(user, CreateOnly)
    assert (own.object["metadata"]["name"], own.object["stringData"], own.generate) == (
        "shop-credentials",
        {"username": "postgres", "replication-username": "replicator"},
        {"data.password": Random(32), "data.replication-password": Random(32)},
    )
    assert (user.object["metadata"]["name"], user.object["stringData"], user.generate) == (
        "shop-user-app",
        {"username": "app"},
        {"data.password": Random(32)},
    )


def test_the_instances_are_a_stateful_set() -> None:
    """Its first container is postgres; versions, sizes and replicas are those of the spec."""
    plan = planned(replicas=3, storage="5Gi", storageClassName="fast")
    (object,) = made(plan, "StatefulSet")
    spec, template = object["spec"], object["spec"]["template"]["spec"]
    assert (spec["replicas"], spec["serviceName"]) == (3, "shop-headless")
    assert spec["persistentVolumeClaimRetentionPolicy"] == {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",
    }
    assert spec["volumeClaimTemplates"][0]["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "5Gi"}},
        "storageClassName": "fast",
    }
    (container,) = template["containers"]
    assert (container["name"], container["image"]) == (
        "postgres",
        "r.example/gatewright-postgresql:14",
    )
    environment = {
        variable["name"]: variable.get("value") or variable["valueFrom"]
        for variable in container["env"]
    }
    assert environment["PGDATA"] == "/var/lib/postgresql/data/pgdata"
    assert environment["POSTGRES_PASSWORD"] == {
        "secretKeyRef": {"name": "shop-credentials", "key": "password"}
    }
    assert container["command"] == ["bash", "/etc/gatewright/start.sh"]
    assert container["livenessProbe"]["httpGet"] == {"path": "/liveness", "port": "patroni"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readiness", "port": "patroni"}
    (drains,) = made(plan, "PodDisruptionBudget")
    assert drains["spec"] == {
        "maxUnavailable": 1,
        "selector": object["spec"]["selector"],
    }
    assert container["resources"] == {
        "requests": {"cpu": "250m", "memory": "576Mi"},
        "limits": {"cpu": "1", "memory": "1088Mi"},
    }
    assert template["securityContext"]["runAsUser"] == template["securityContext"]["fsGroup"] == 999
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert template["automountServiceAccountToken"] is False


def test_a_recreated_secret_restarts_the_instances() -> None:
    """The restart makes the new passwords effective; without a Secret there is no restart."""
    annotated = {"database.example.com/credentials": "earlier-uid"}
    stored = stateful_set()
    stored["spec"]["template"] = {"metadata": {"annotations": annotated}}
    for children, expected in (
        ([stored], annotated),
        (
            [stored, child("Secret", "shop-credentials")],
            {"database.example.com/credentials": "shop-credentials-uid"},
        ),
    ):
        template = made(planned(children=children), "StatefulSet")[0]["spec"]["template"]
        assert template["metadata"]["annotations"] == expected


def test_only_the_database_container_has_a_token() -> None:
    """It is the token of an account that may do what Patroni does, on objects of these names."""
    plan = planned(monitoring={"enabled": True})
    template = made(plan, "StatefulSet")[0]["spec"]["template"]["spec"]
    assert (template["serviceAccountName"], template["automountServiceAccountToken"]) == (
        "shop-gatewright-patroni",
        False,
    )
    mounting = [
        container["name"]
        for container in template["containers"]
        if any(each["name"] == "token" for each in container["volumeMounts"])
    ]
    assert mounting == ["postgres"]
    (role,), (binding,) = made(plan, "Role"), made(plan, "RoleBinding")
    stores = ["shop", "shop-config", "shop-failover", "shop-sync"]
    pods = [f"shop-{ordinal}" for ordinal in range(5)]
    assert [
        (rule["resources"], rule["verbs"], rule.get("resourceNames")) for rule in role["rules"]
    ] == [
        (["endpoints"], ["list", "watch"], None),
        (["endpoints"], ["get", "patch"], stores),
        (["pods"], ["list", "watch"], None),
        (["pods"], ["patch"], pods),
    ]
    assert (binding["roleRef"]["name"], binding["subjects"][0]["name"]) == (
        "shop-gatewright-patroni",
        "shop-gatewright-patroni",
    )


def test_the_state_of_patroni_outlives_the_object() -> None:
    """Each Endpoints but the primary's has a Service of its name, without which it is garbage."""
    plan = planned(children=ALL_THERE, found=[endpoints("shop-config", config="{}")])
    kept = [
        (write.object["kind"], write.object["metadata"]["name"])
        for write in writes(plan, "database")
        if isinstance(write, CreateOnly) and write.adopt_labels
    ]
    stores = ("config", "failover", "sync")
    assert kept == [
        ("Endpoints", "shop"),
        *((kind, f"shop-{name}") for name in stores for kind in ("Service", "Endpoints")),
    ]
    (patch,) = (each for each in writes(plan, "database") if isinstance(each, ApplyFields))
    settings = json.loads(patch.fields["metadata"]["annotations"]["config"])
    assert (settings["ttl"], settings["failsafe_mode"], settings["synchronous_mode"]) == (
        20,
        True,
        True,
    )
    assert settings["postgresql"]["parameters"] == {
        "max_wal_size": "1024MB",
        "wal_keep_size": "512MB",
        "wal_sender_timeout": "15s",
        "wal_receiver_timeout": "15s",
    }


def settings_of(**spec: Any) -> JsonObject:
    """The settings that Patroni reads from the Endpoints."""
    plan = planned(found=[endpoints("shop-config", config="{}")], **spec)
    (patch,) = (each for each in writes(plan, "database") if isinstance(each, ApplyFields))
    settings: JsonObject = json.loads(patch.fields["metadata"]["annotations"]["config"])
    return settings


def test_parameters_and_strict_commits_are_settings_of_patroni() -> None:
    """A parameter of the spec replaces that of the controller; no pod restarts for them."""
    own = {"work_mem": "16MB", "max_connections": 200, "max_wal_size": "2GB"}
    changed = {"replicas": 3, "synchronous": "Required", "parameters": own}
    settings = settings_of(**changed)
    assert settings["postgresql"]["parameters"].items() >= own.items()
    assert settings["synchronous_mode_strict"] is True
    assert "synchronous_mode_strict" not in settings_of(replicas=3)
    (before,), (after,) = (
        made(planned(**spec), "StatefulSet") for spec in ({"replicas": 3}, changed)
    )
    assert before == after


def test_the_image_of_a_user_is_used_by_all_pods() -> None:
    """It is not taken from the registry, and start.sh compares its version with that of the spec."""
    image = "registry.company.com/postgis:14"
    plan = planned(image=image, **APP, **LOCAL)
    (instances,), (job,), (dumps,) = (
        made(plan, kind) for kind in ("StatefulSet", "Job", "CronJob")
    )
    templates = (
        instances["spec"]["template"],
        job["spec"]["template"],
        dumps["spec"]["jobTemplate"]["spec"]["template"],
    )
    for template in templates:
        assert {each["image"] for each in template["spec"]["containers"]} == {image}
    (instance,) = instances["spec"]["template"]["spec"]["containers"]
    assert {"name": "VERSION", "value": "14"} in instance["env"]
    (usual,) = made(planned(), "StatefulSet")
    assert "VERSION" not in str(usual["spec"]["template"]["spec"]["containers"][0]["env"])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"parameters": {"work_memory": "16MB"}},
            'spec.parameters[work_memory]: "16MB"; PostgreSQL has no such parameter',
        ),
        (
            {"synchronous": "Required", "replicas": 2},
            'spec.synchronous: "Required"; with fewer than three instances, writes would stop with '
            "one instance",
        ),
    ],
)
def test_impossible_settings_are_reported(spec: JsonObject, message: str) -> None:
    """What admission denies is reported where it was admitted without the webhook, or by /scale.

    Running instances are not changed.
    """
    for children in ([], [stateful_set(3)]):
        plan = planned(children=children, **spec)
        assert plan.problem == Problem(message, "Invalid")
        assert [write for step in plan.steps for write in step.writes] == []


def member(name: str, **status: Any) -> JsonObject:
    """A pod as the cache keeps it, with what Patroni writes into its annotation."""
    stored = pod(name=name)
    stored["metadata"]["annotations"] = {"status": json.dumps(status)}
    kept = keep_pod(stored)
    return stored | kept | {"metadata": {**kept["metadata"], "name": name}}


def reported(plan: Plan, type: str) -> list[tuple[str, str, str]]:
    """A condition's status, reason and message; nothing without the condition."""
    conditions = plan.status.to_api().get("conditions") or []
    return [
        (condition["status"], condition["reason"], condition["message"])
        for condition in conditions
        if condition["type"] == type
    ]


def test_a_pending_restart_is_reported() -> None:
    """The condition names the instances, the parameters and the command; without one, there is none."""
    waits = {"pending_restart_reason": {"max_connections": {}, "x" * 1000: {}, "a b": {}}}
    found = [member("shop-0", **waits), member("shop-1"), LED]
    message = "shop-0 must restart for max_connections: kubectl rollout restart statefulset/shop"
    plan = planned(children=ALL_THERE, found=found)
    assert reported(plan, "RestartPending") == [("True", "ParametersChanged", message)]
    found = [member("shop-0", pending_restart_reason="text"), pod(name="shop-1"), LED]
    assert reported(planned(children=ALL_THERE, found=found), "RestartPending") == []


@pytest.mark.parametrize(
    ("spec", "leading", "condition"),
    [
        (
            {"replicas": 3},
            "shop-0",
            ("True", "StandbySynchronous", "shop-1, shop-2 has every acknowledged transaction"),
        ),
        (
            {"replicas": 3},
            "shop-1",
            (
                "False",
                "NoSynchronousStandby",
                "no standby has every acknowledged transaction: shop-0 commits alone, and its "
                "loss stops writes until it is back",
            ),
        ),
        (
            {"replicas": 3, "synchronous": "Required"},
            "shop-1",
            (
                "False",
                "NoSynchronousStandby",
                "no standby has every acknowledged transaction: commits wait for a standby",
            ),
        ),
        ({"replicas": 1}, "shop-1", None),
    ],
)
def test_a_missing_synchronous_standby_is_reported(
    spec: JsonObject, leading: str, condition: tuple[str, str, str] | None
) -> None:
    """What Patroni kept under an earlier primary counts for nothing."""
    known = endpoints("shop-sync", leader=leading, sync_standby="shop-1,shop-2")
    plan = planned(children=ALL_THERE, found=[member("shop-0"), known, LED], **spec)
    assert reported(plan, "Synchronous") == ([condition] if condition else [])


def test_instances_that_do_not_run_are_reported_with_their_state() -> None:
    """Words that Patroni does not write are not repeated."""
    found = [
        member("shop-0", state="running", role="replica"),  # the leader has yet to report its role
        member("shop-1", state="creating replica"),
        member("shop-2", state="bought by nobody"),
        member("shop-3", state="running", role="replica", replication_state="in archive recovery"),
        member("shop-4", state="running", role="replica", replication_state="streaming"),
        LED,
    ]
    plan = planned(children=[*ALL_THERE[:1], stateful_set(1)], found=found, replicas=3)
    assert step_of(plan, "instances").note == (
        "1 of 3 replicas are ready; shop-1: creating replica, shop-3: not streaming"
    )


def test_a_full_volume_is_reported() -> None:
    """What an instance reported that is no longer there counts for nothing."""
    marks = {f"database.example.com/full-shop-{ordinal}": "yes" for ordinal in (1, 7)}
    known = keep_annotations(endpoints("shop-config", **marks))
    known = endpoints("shop-config", **known["metadata"]["annotations"])
    found = [member("shop-0"), member("shop-1"), LED]
    plan = planned(children=ALL_THERE, found=[*found, endpoints("shop-config")])
    assert (step_of(plan, "storage").ready, plan.status.to_api()["phase"]) == (True, "Running")
    plan = planned(children=ALL_THERE, found=[*found, known])
    message = "less than 64 MB are free on the volume of shop-1: increase spec.storage"
    assert step_of(plan, "storage").note == Problem(message, "VolumeFull")
    assert plan.status.to_api()["phase"] == "Deploying"


def test_slices_of_the_earlier_selector_are_deleted() -> None:
    """No controller deletes them, and they would lead to an instance that is no primary."""

    def slice_of(name: str, **labels: str) -> JsonObject:
        found = child("EndpointSlice", name)
        return {**found, "metadata": {**found["metadata"], "labels": labels}}

    managed, service = "endpointslice.kubernetes.io/managed-by", "kubernetes.io/service-name"
    by_selector = "endpointslice-controller.k8s.io"
    by_mirror = "endpointslicemirroring-controller.k8s.io"
    slices = [
        slice_of("stale", **{managed: by_selector, service: "shop"}),
        slice_of("mirrored", **{managed: by_mirror, service: "shop"}),
        slice_of("pods", **{managed: by_selector, service: "shop-headless"}),
    ]
    for spec, names in (({"selector": {"a": "b"}}, []), ({}, ["stale"])):
        plan = planned(children=[child("Service", "shop", spec=spec)], found=slices)
        deletes = [each for each in writes(plan, "service") if isinstance(each, Delete)]
        assert [each.reference.name for each in deletes] == names


@pytest.mark.parametrize("replicas", [1, 3])
def test_the_services_lead_to_all_to_the_primary_and_to_standbys(replicas: int) -> None:
    """The primary's has no selector, since Patroni writes its address; one instance serves reads, too."""
    services = {
        object["metadata"]["name"]: object["spec"]
        for object in made(planned(replicas=replicas), "Service")
    }
    of_all, reads = services["shop-headless"], services["shop-read"]
    assert (of_all["clusterIP"], of_all["publishNotReadyAddresses"]) == ("None", True)
    standbys = {"database.example.com/role": "replica"} if replicas > 1 else {}
    assert reads["selector"] == {**of_all["selector"], **standbys}
    assert services["shop"] == {
        "ports": [{"name": "postgresql", "port": 5432, "targetPort": 5432, "protocol": "TCP"}]
    }


def test_monitoring_is_an_exporter_beside_each_instance() -> None:
    """It connects by the socket, as a role that can read only statistics."""
    plan = planned(monitoring={"enabled": True})
    template = made(plan, "StatefulSet")[0]["spec"]["template"]
    assert template["metadata"]["annotations"] == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "9187",
    }
    _, exporter = template["spec"]["containers"]
    assert exporter["image"] == "r.example/postgres-exporter:v0.17.1"
    assert exporter["env"] == [
        {
            "name": "DATA_SOURCE_NAME",
            "value": "host=/var/run/postgresql user=exporter dbname=postgres sslmode=disable",
        }
    ]
    (headless,) = (
        object for object in made(plan, "Service") if object["metadata"]["name"] == "shop-headless"
    )
    assert [each["name"] for each in headless["spec"]["ports"]] == [
        "postgresql",
        "metrics",
    ]


def test_labels_are_on_everything() -> None:
    """Pods, claims, Jobs and grandchildren have them too; labels in selectors do not change."""
    given = {"platform": "store", "app.kubernetes.io/name": "mine", "helm.sh/chart": "shop-1"}
    plan = planned(metadata={"labels": given}, **APP, **LOCAL)
    objects = [
        write.object
        for step in plan.steps
        for write in step.writes
        if isinstance(write, Apply | CreateOnly)
    ]
    stateful, job, cron = (
        made(plan, kind)[0]["spec"] for kind in ("StatefulSet", "Job", "CronJob")
    )
    nested = [
        stateful["template"],
        *stateful["volumeClaimTemplates"],
        job["template"],
        cron["jobTemplate"],
    ]
    for object in (*objects, *nested, cron["jobTemplate"]["spec"]["template"]):
        assert object["metadata"]["labels"]["platform"] == "store"
        assert object["metadata"]["labels"]["app.kubernetes.io/name"] == "postgresql"
        assert "helm.sh/chart" not in object["metadata"]["labels"]


# What there is already


@pytest.mark.parametrize(
    ("spec", "children", "found", "refused"),
    [
        ({"storage": "1Gi"}, ALL_THERE, [claim()], None),
        ({"storage": "2Gi"}, ALL_THERE, [claim(), expandable()], None),
        (
            {"storage": "2Gi"},
            ALL_THERE,
            [claim(), expandable(allowed=False)],
            "spec.storage: 2Gi; volumes of storage class fast do not grow. Set it back to 1Gi",
        ),
        ({"storage": "2Gi"}, ALL_THERE, [claim("3Gi")], None),
        (
            {"storage": "2Gi"},
            ALL_THERE,
            [claim("5Gi", requested="3Gi")],
            "spec.storage: 2Gi; volumes of 3Gi cannot shrink. Set it to 3Gi or more",
        ),
        (
            {"storage": "2Gi"},
            [stateful_set(storage="4Gi")],
            [],
            "spec.storage: 2Gi; volumes of 4Gi cannot shrink. Set it to 4Gi or more",
        ),
        (
            {"version": "15"},
            [],
            [claim("10Gi")],
            "spec.version: 15; the data is of PostgreSQL 14, and spec.majorUpgrade is Refused. Set it back to 14, or "
            "set spec.majorUpgrade to Reversible for an upgrade in place, or restore a Backup into a new PostgreSQL by "
            "spec.restoreFrom",
        ),
        (
            {"storage": "1Gi", "storageClassName": "slow"},
            ALL_THERE,
            [claim()],
            "spec.storageClassName: slow; the volumes' class is fast and cannot change. Set it back",
        ),
    ],
)
def test_changes_that_volumes_do_not_allow_are_rejected(
    spec: JsonObject, children: list[JsonObject], found: list[JsonObject], refused: str | None
) -> None:
    """The condition names the field; the StatefulSet keeps its version and its template of claims."""
    plan = planned(children=children, found=found, **spec)
    assert (plan.problem and (plan.problem.reason, plan.problem.message)) == (
        ("Refused", refused) if refused else None
    )
    (object,) = made(plan, "StatefulSet")
    assert (
        object["spec"]["template"]["spec"]["containers"][0]["image"]
        == "r.example/gatewright-postgresql:14"
    )
    if children:
        template = next(each for each in children if each["kind"] == "StatefulSet")["spec"][
            "volumeClaimTemplates"
        ][0]
        assert object["spec"]["volumeClaimTemplates"][0]["spec"] == {
            "accessModes": ["ReadWriteOnce"],
            **template["spec"],
        }


def test_claims_grow_one_by_one() -> None:
    """Each bound claim that is too small grows, those of later instances too; unbound claims are waited for."""
    found = [claim("2Gi"), claim(ordinal=1), claim(ordinal=2, phase="Pending"), expandable()]
    plan = planned(children=ALL_THERE, found=found, storage="2Gi")
    grown, growing, pending = writes(plan, "storage")
    assert isinstance(growing, ApplyFields)
    assert isinstance(pending, ApplyFields)
    assert growing.reference.uid == "data-shop-1-uid"
    assert growing.fields["spec"] == {"resources": {"requests": {"storage": "2Gi"}}}
    assert isinstance(grown, ApplyFields)
    for patch in (grown, growing):
        assert patch.fields["metadata"]["annotations"] == {"gatewright.io/requested-storage": "2Gi"}
    assert pending.fields["spec"] == {"resources": {"requests": {"storage": "1Gi"}}}
    assert not step_of(plan, "storage").ready


DEFAULT = {
    "kind": "StorageClass",
    "metadata": {
        "name": "standard",
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    },
}
ABSENT = 'StorageClass "fast" does not exist, and claim data-shop-0 waits for it. Create it'
NO_DEFAULT = (
    "no StorageClass is the default, and claim data-shop-0 names none. Make one the default"
)


@pytest.mark.parametrize(
    ("class_name", "phase", "classes", "said"),
    [
        ("fast", "Pending", [DEFAULT], ABSENT),
        ("fast", "Pending", [expandable()], None),
        ("fast", "Bound", [], None),
        ("", "Pending", [], None),
        (None, "Pending", [expandable()], NO_DEFAULT),
        (None, "Pending", [DEFAULT], None),
    ],
)
def test_a_missing_storage_class_is_reported(
    class_name: str | None, phase: str, classes: list[JsonObject], said: str | None
) -> None:
    """A claim that waits for the class is reported; one that binds with its pod (WaitForFirstConsumer) is not."""
    waiting = claim(phase=phase)
    waiting["spec"] = {**asked("1Gi"), "storageClassName": class_name}
    plan = planned(
        children=[*ALL_THERE[:1], stateful_set(0)], found=[pod("False"), waiting, *classes]
    )
    of_database, of_instances = (step_of(plan, name).problem for name in ("database", "instances"))
    if said is None:
        assert (of_database, of_instances) == (None, None)
    else:
        assert of_database == Problem(f"failed to create database: {said}", "StorageClassNotFound")
        assert of_instances == Problem(
            f"failed to create instances: {said}", "StorageClassNotFound"
        )


def test_a_storage_class_that_is_not_there_keeps_backups_from_being_made() -> None:
    """The CronJob may exist already; without backups, or with a destination, the class does not matter."""
    found = [pod(), claim(), claim(component="backup", phase="Pending")]
    children = [*ALL_THERE, child("CronJob", "shop-backup")]
    told = Problem(f"failed to setup backups: {ABSENT}", "StorageClassNotFound")
    for spec, problem, holds in ((LOCAL, told, False), (REMOTE, None, False), ({}, None, True)):
        step = step_of(planned(children=children, found=found, **spec), "backups")
        assert (step.problem, step.ready) == (problem, holds)
    there = step_of(planned(children=children, found=[*found, expandable()], **LOCAL), "backups")
    assert (there.problem, there.ready) == (None, True)


def test_without_rights_on_storage_classes_the_api_server_decides_about_volumes() -> None:
    """A claim is neither reported as waiting for a class, nor as one that cannot grow."""
    waiting = claim(phase="Pending")
    plan = planned(children=[stateful_set(0)], found=[waiting], reads_classes=False)
    assert step_of(plan, "instances").problem is None
    plan = planned(children=ALL_THERE, found=[claim()], reads_classes=False, storage="2Gi")
    (patch,) = writes(plan, "storage")
    assert isinstance(patch, ApplyFields)
    assert (plan.problem, patch.fields["spec"]) == (
        None,
        {"resources": {"requests": {"storage": "2Gi"}}},
    )


@pytest.mark.parametrize(
    ("count", "said"), [(None, "0 of 3 replicas are ready"), (1, "1 of 3 replicas are ready")]
)
def test_the_number_of_ready_instances_is_reported(count: int | None, said: str) -> None:
    """The number does not count the primary, which has its own condition."""
    children = [] if count is None else [stateful_set(count)]
    assert step_of(planned(children=children, replicas=3), "instances").note == said


def test_a_lost_primary_is_reported() -> None:
    """A condition reports it as long as it lasts, and one event."""
    available = {
        "type": "PrimaryAvailable",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "Ready",
    }
    for status, count in (("True", 1), ("False", 0)):
        stored = {
            "phase": "Running",
            "observedGeneration": 1,
            "conditions": [{**available, "status": status, "message": ""}],
        }
        plan = planned(children=ALL_THERE, found=[pod("False"), LED], status=stored)
        note = (
            "pod shop-0, the primary, is not ready: nothing can be written until it is ready, or "
            "another is the primary"
        )
        assert (step_of(plan, "database").condition, step_of(plan, "database").note) == (
            "PrimaryAvailable",
            note,
        )
        assert plan.status.to_api()["phase"] == "Degraded"
        assert [(each.reason, each.note, each.type) for each in plan.events] == [
            ("PrimaryLost", note, "Warning")
        ] * count


@pytest.mark.parametrize(
    ("found", "replicas", "note"),
    [
        (
            [LED, member("shop-1", state="running")],
            3,
            "pod shop-0, the primary, does not exist: shop-1 becomes the primary within 25 s",
        ),
        (
            [LED, member("shop-1", state="starting"), member("shop-2", state="running")],
            3,
            "pod shop-0, the primary, does not exist: nothing can be written until shop-0 or "
            "shop-1 runs, as all others miss transactions",
        ),
        (
            [endpoints(), member("shop-2", state="running")],
            3,
            "no instance is the primary: nothing can be written until shop-0 or shop-1 runs, as "
            "all others miss transactions",
        ),
        (
            [LED],
            2,
            "pod shop-0, the primary, does not exist: nothing can be written until shop-0 or "
            "shop-1 runs",
        ),
        (
            [endpoints(), member("shop-0", state="running")],
            3,
            "no instance is the primary: shop-0 becomes the primary within 25 s",
        ),
    ],
)
def test_the_instance_that_may_take_the_place_of_a_primary_is_named(
    found: list[JsonObject], replicas: int, note: str
) -> None:
    """Only an instance with every acknowledged transaction becomes the primary by itself."""
    known = endpoints("shop-sync", leader="shop-0", sync_standby="shop-1")
    plan = planned(children=ALL_THERE, found=[known, *found], replicas=replicas)
    assert step_of(plan, "database").note == note


def test_a_single_instance_is_awaited() -> None:
    """Nothing takes its place."""
    known = endpoints("shop-sync", leader="shop-0", sync_standby="")
    plan = planned(children=ALL_THERE, found=[known, LED, pod("False")], replicas=1)
    assert step_of(plan, "database").note == (
        "pod shop-0, the primary, is not ready: nothing can be written until shop-0 runs"
    )


# Users and databases


def test_users_and_databases_are_created_by_a_job() -> None:
    """Passwords are files, and databases lines; the command contains no values of a user."""
    (job,) = made(planned(**APP), "Job")
    template = job["spec"]["template"]["spec"]
    (container,) = template["containers"]
    assert container["command"] == ["bash", "/etc/gatewright/roles.sh"]
    assert template["restartPolicy"] == "Never"
    assert {each["name"]: each.get("value") for each in container["env"]} == {
        "PGHOST": "shop",
        "PGPORT": "5432",
        "PGUSER": "postgres",
        "PGCONNECT_TIMEOUT": "10",
        "PGPASSWORD": None,
        "DATABASES": "shop app",
    }
    users = next(each for each in template["volumes"] if each["name"] == "users")
    assert users["projected"]["sources"] == [
        {"secret": {"name": "shop-user-app", "items": [{"key": "password", "path": "app"}]}}
    ]


def test_a_change_makes_another_job() -> None:
    """A change of the lists or of a Secret creates a new Job and deletes the old one."""
    plans = [
        planned(**APP),
        planned(**{**APP, "databases": []}),
        planned(children=[child("Secret", "shop-user-app")], **APP),
    ]
    names = {made(plan, "Job")[0]["metadata"]["name"] for plan in plans}
    assert len(names) == 3
    assert {name.startswith("shop-roles-") and len(name) for name in names} == {
        len("shop-roles-") + 8
    }
    old = child("Job", "shop-roles-00000000")
    old["metadata"]["labels"] = {"app.kubernetes.io/component": "roles"}
    of_backup = child("Job", "shop-backup-1")
    of_backup["metadata"]["labels"] = {"app.kubernetes.io/component": "backup"}
    plan = planned(children=[old, of_backup], found=[old, of_backup], **APP)
    (removed,) = (each for each in writes(plan, "users and databases") if isinstance(each, Delete))
    assert removed.reference.uid == "shop-roles-00000000-uid"


@pytest.mark.parametrize(
    ("conditions", "holds", "said"),
    [
        ([], False, ""),
        ([{"type": "Complete", "status": "True"}], True, ""),
        (
            [
                {
                    "type": "Failed",
                    "status": "True",
                    "message": "Job has reached the specified backoff limit",
                }
            ],
            False,
            "failed to create users and databases: Job has reached the specified backoff limit: see the log of job/{}, "
            "and delete it to try again",
        ),
    ],
)
def test_the_job_must_come_to_its_end(conditions: list[JsonObject], holds: bool, said: str) -> None:
    """While it fails, the condition names its log."""
    name = made(planned(**APP), "Job")[0]["metadata"]["name"]
    step = step_of(
        planned(children=[child("Job", name, status={"conditions": conditions})], **APP),
        "users and databases",
    )
    assert (step.ready, step.problem and step.problem.message) == (holds, said.format(name) or None)


def test_invalid_names_are_reported() -> None:
    """Invalid names are reported; nothing is created or deleted."""
    plan = planned(users=[{"name": "App"}, {"name": "app"}])
    assert plan.problem is not None
    assert plan.problem.reason == "Invalid"
    assert plan.problem.message.startswith(
        'spec.users[0].name: "App"; a user\'s name is at most 63 lower-case letters'
    )
    assert [each["metadata"]["name"] for each in made(plan, "Secret")] == [
        "shop-credentials",
        "shop-user-app",
    ]
    assert writes(plan, "users and databases") == []


@pytest.mark.parametrize(
    ("ttl", "is_there", "remembered", "runs"),
    [
        (None, True, False, True),
        (None, False, False, True),
        (5, True, False, False),
        (5, True, True, False),
        (5, False, True, False),
        (5, False, False, True),
    ],
)
def test_a_job_that_its_time_to_live_deletes_does_not_run_again(
    ttl: int | None, is_there: bool, remembered: bool, runs: bool
) -> None:
    """The status has its name; one without a time to live stays, and runs again if it is deleted."""
    (job,) = made(planned(**APP), "Job")
    name = job["metadata"]["name"]
    done = [{"type": "Complete", "status": "True"}]
    stored = child("Job", name, spec={"ttlSecondsAfterFinished": ttl}, status={"conditions": done})
    status = {"rolesJob": name} if remembered else {}
    plan = planned(children=[stored] if is_there else [], status=status, **APP)
    assert bool(made(plan, "Job")) is runs
    assert plan.status.to_api().get("rolesJob") == (None if runs else name)
    assert step_of(plan, "users and databases").ready is (is_there or not runs)


# Backups


def test_without_a_destination_backups_go_to_a_claim_of_their_own() -> None:
    """The claim outlives the object, and grows; the CronJob runs one Job at a time."""
    plan = planned(
        children=ALL_THERE, found=[claim(component="backup"), expandable()], storage="3Gi", **LOCAL
    )
    once, growing, cron = writes(plan, "backups")
    assert isinstance(once, CreateOnly)
    assert once.object["metadata"]["name"] == "shop-backup"
    assert once.adopt_labels == {
        "app.kubernetes.io/name": "postgresql",
        "app.kubernetes.io/instance": "shop",
        "app.kubernetes.io/component": "backup",
    }
    assert isinstance(growing, ApplyFields)
    assert growing.fields["spec"] == {"resources": {"requests": {"storage": "3Gi"}}}
    assert isinstance(cron, Apply)
    spec = cron.object["spec"]
    assert (spec["schedule"], spec["timeZone"], spec["concurrencyPolicy"]) == (
        "0 2 * * *",
        "Etc/UTC",
        "Forbid",
    )
    template = spec["jobTemplate"]["spec"]["template"]["spec"]
    assert template["restartPolicy"] == "OnFailure"
    assert template["containers"][0]["command"] == ["bash", "/etc/gatewright/backup.sh"]
    assert {"name": "RETENTION", "value": "30d"} in template["containers"][0]["env"]


def test_with_a_destination_backups_are_a_backup() -> None:
    """Its spec has the address of the database and the fields of `destination`.

    Missing fields are reported with their path in the PostgreSQL.
    """
    (backup,) = made(planned(**REMOTE), "Backup")
    assert backup["spec"] == {
        "source": {
            "type": "postgresql",
            "connection": {"host": "shop", "port": 5432, "secretRef": {"name": "shop-credentials"}},
        },
        "destination": {
            "type": "s3",
            "bucket": "dumps",
            "prefix": "",
            "secretRef": {"name": "store"},
        },
        "schedule": "0 2 * * *",
        "retention": "30d",
    }
    problem = planned(backup={"enabled": True, "destination": {}}).problem
    assert problem is not None
    assert (problem.reason, problem.message) == (
        "Incomplete",
        "spec.backup.destination.bucket: must be set",
    )


@pytest.mark.parametrize(
    ("ready", "holds", "said"),
    [
        (None, False, ""),
        ({"status": "True", "reason": "AllReady", "message": ""}, True, ""),
        (
            {"status": "False", "reason": "Progressing", "message": "waiting for Secret store"},
            False,
            "Backup shop-backup: waiting for Secret store",
        ),
        (
            {"status": "False", "reason": "Incomplete", "message": "no bucket"},
            False,
            Problem("Backup shop-backup: no bucket", "Incomplete"),
        ),
    ],
)
def test_a_backup_that_is_not_ready_is_reported(
    ready: JsonObject | None, holds: bool, said: str | Problem
) -> None:
    """The condition has the message of the Backup, whether it waits or fails."""
    conditions = [{"type": "Ready", **ready}] if ready else []
    step = step_of(
        planned(
            children=[child("Backup", "shop-backup", status={"conditions": conditions})], **REMOTE
        ),
        "backups",
    )
    assert (step.ready, step.note) == (holds, said)


@pytest.mark.parametrize(
    ("spec", "removed"), [({}, ["Backup", "CronJob"]), (LOCAL, ["Backup"]), (REMOTE, ["CronJob"])]
)
def test_disabled_backups_are_removed_but_not_their_claim(
    spec: JsonObject, removed: list[str]
) -> None:
    """Never the claim with the dumps."""
    children = [child("Backup", "shop-backup"), child("CronJob", "shop-backup")]
    plan = planned(children=children, found=[claim(component="backup")], **spec)
    found = [
        write.reference.resource.kind
        for step in plan.steps
        for write in step.writes
        if isinstance(write, Delete)
    ]
    assert sorted(found) == removed


ENDING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def removal(policy: str, *, status: JsonObject | None = None) -> tuple[bool, list[str]]:
    """Return whether the finalizer of a deleted database is removed, and the writes before."""
    children = []
    if status is not None:
        spec = {"replicas": status.get("replicas", 0), "volumeClaimTemplates": [claim()]}
        stored = child("StatefulSet", "shop", spec=spec, status=status)
        stored["metadata"]["generation"] = 2
        children.append(stored)
    state = [endpoints("shop-config"), child("Service", "shop-config"), child("Service", "shop")]
    found = [claim(), claim(ordinal=1, component="backup"), *state]
    plan = planned(metadata=ENDING, children=children, found=found, deletionPolicy=policy, **LOCAL)
    step = next(each for each in plan.steps if each.name == "removal of volumes")
    written = [f"{type(each).__name__} {each.reference.name}" for each in step.writes]  # type: ignore[union-attr]
    return plan.finalized, written


def test_volumes_and_dumps_are_deleted_only_on_request() -> None:
    """From its creation, a finalizer keeps the object until they are deleted."""
    state = ["Delete shop-config"] * 2
    deletes = ["Delete data-shop-0", "Delete data-shop-1", *state]
    stop, gone = "ApplyFields shop", {"observedGeneration": 2, "replicas": 0}
    assert removal("Retain") == (True, [])
    assert removal("Retain", status=gone) == (True, [])
    assert removal("Delete", status={"observedGeneration": 2, "replicas": 1}) == (False, [stop])
    assert removal("Delete", status={"observedGeneration": 1, "replicas": 0}) == (False, [stop])
    assert removal("Delete", status={}) == (False, [stop])
    assert removal("Delete", status=gone) == (False, [stop, *deletes])
    assert removal("Delete") == (False, deletes)
    assert not planned(deletionPolicy="Delete").finalized
    assert planned(metadata=ENDING, deletionPolicy="Delete").finalized
    for policy in ("Delete", "Retain"):
        (made_set,) = made(planned(deletionPolicy=policy), "StatefulSet")
        retention = made_set["spec"]["persistentVolumeClaimRetentionPolicy"]
        assert retention == {"whenDeleted": policy, "whenScaled": "Retain"}


# With the runtime


async def test_the_steps_follow_each_other(server: ApiServer) -> None:
    """Each object is written once, in order; a second reconcile writes nothing."""
    server.create(
        POSTGRESQL.resource, {"metadata": {"name": "shop", "namespace": "default"}, "spec": LOCAL}
    )
    await reconcile(POSTGRESQL, server, "shop")
    assert server.writes == [
        "create secrets default/shop-credentials",
        "apply configmaps default/shop-scripts",
        "apply serviceaccounts default/shop-gatewright-patroni",
        "apply roles default/shop-gatewright-patroni",
        "apply rolebindings default/shop-gatewright-patroni",
        "create endpoints default/shop",
        *(
            f"create {resource} default/shop-{name}"
            for name in ("config", "failover", "sync")
            for resource in ("services", "endpoints")
        ),
        "apply statefulsets default/shop",
        "apply poddisruptionbudgets default/shop",
        "apply postgresqls/status default/shop",
    ]
    labels = {
        "app.kubernetes.io/name": "postgresql",
        "app.kubernetes.io/managed-by": "gatewright",
        "app.kubernetes.io/instance": "shop",
    }
    up = {"conditions": [{"type": "Ready", "status": "True"}]}
    server.create(POD, {"metadata": {"name": "shop-0", "namespace": "default", "labels": labels}})
    leader = {"metadata": {"annotations": {"leader": "shop-0"}}}
    server.change(ENDPOINTS, "shop", leader, "default")
    server.change(POD, "shop-0", {"status": up}, "default", "status")
    server.change(
        POSTGRESQL.owned_resource(child("StatefulSet", "shop")),
        "shop",
        {
            "status": {
                "observedGeneration": 1,
                "replicas": 1,
                "readyReplicas": 1,
                "updatedReplicas": 1,
            }
        },
        "default",
        "status",
    )
    count = len(server.writes)
    await reconcile(POSTGRESQL, server, "shop")
    assert server.writes[count:] == [
        "apply services default/shop-headless",
        "apply services default/shop",
        "apply services default/shop-read",
        "create persistentvolumeclaims default/shop-backup",
        "apply cronjobs default/shop-backup",
        "apply postgresqls/status default/shop",
    ]
    stored = server.get(POSTGRESQL.resource, "shop", "default")
    assert [(each["type"], each["status"]) for each in stored["status"]["conditions"]] == [
        ("BackedUp", "False"),
        ("PrimaryAvailable", "True"),
        ("Ready", "True"),
    ]
    kept = server.get(CLAIM, "shop-backup", "default")
    assert "ownerReferences" not in kept["metadata"]
    count = len(server.writes)
    await reconcile(POSTGRESQL, server, "shop")
    assert server.writes[count:] == []
    assert "password" not in json.dumps(stored)
