"""The MySQL server of a platform: its objects, and how it starts."""

import gzip
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from controller.reconcilers.appstack import APP_STACK
from controller.reconcilers.ecommerceplatform import ECOMMERCE_PLATFORM
from controller.reconcilers.mysql import START
from controller.reconcilers.mysql_backups import DUMP
from controller.reconcilers.resources import CLAIM, STORAGE_CLASS
from controller.reconcilers.servers import INDEX, READS_CLAIMS, by_parent
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import ApplyFields, CreateOnly, Observed, Plan, Problem, Random
from kube.resource import JsonObject
from tests.controller.reconcilers.platforms import (
    container,
    deleted,
    given,
    made,
    platform,
    ready,
    stack,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def planned(observed: Observed | None = None, **database: Any) -> Plan:
    """The plan of a platform with a MySQL server."""
    object = platform(environment="production", database={"type": "mysql", **database})
    observed = observed or Observed()
    observed.served = frozenset({STORAGE_CLASS})
    return ECOMMERCE_PLATFORM.plan(ECOMMERCE_PLATFORM.type.model_validate(object), observed, NOW)


def server(plan: Plan) -> JsonObject:
    """Its StatefulSet."""
    return made(plan)["StatefulSet", "shop-db"]


def test_a_server_its_services_and_its_passwords() -> None:
    """There is one server; its passwords are generated once and are in no plan."""
    plan = planned()
    assert [key for key in made(plan) if key[1].startswith("shop-db")] == [
        ("StatefulSet", "shop-db"),
        ("Service", "shop-db-headless"),
        ("Service", "shop-db"),
        ("CronJob", "shop-db-backup"),
    ]
    once, claim = (
        write for step in plan.steps for write in step.writes if isinstance(write, CreateOnly)
    )
    assert (claim.object["metadata"]["name"], once.adopt_labels) == ("shop-db-mysql-backup", {})
    assert claim.adopt_labels == {
        "app.kubernetes.io/name": "mysql",
        "app.kubernetes.io/managed-by": "gatewright",
        "app.kubernetes.io/component": "backup",
        "app": "shop-db-backup",
    }
    assert claim.adopt_labels.items() < claim.object["metadata"]["labels"].items()
    assert once.object["metadata"]["name"] == "shop-db-mysql-credentials"
    assert once.object["metadata"]["labels"]["platform"] == "shop"
    assert once.generate == {"data.root-password": Random(32), "data.password": Random(32)}
    assert (server(plan)["spec"]["replicas"], server(plan)["spec"]["serviceName"]) == (
        1,
        "shop-db-headless",
    )


def test_every_label_reaches_pods_and_claims() -> None:
    """All objects have the labels, so that a selector shows them."""
    spec = server(planned())["spec"]
    labels = {
        "app.kubernetes.io/name": "mysql",
        "app.kubernetes.io/managed-by": "gatewright",
        "app": "shop-db",
        "platform": "shop",
        "app.kubernetes.io/component": "database",
    }
    assert spec["template"]["metadata"]["labels"] == labels
    assert spec["volumeClaimTemplates"][0]["metadata"]["labels"] == labels


def test_its_pod_is_restricted_and_has_resources_and_probes() -> None:
    """It passes the production policies, and its root filesystem is read-only."""
    plan = planned(version="8.0", storage="1Ti")
    spec, found = server(plan)["spec"], container(made(plan), "shop-db")
    assert found["image"] == "mysql:8.0"
    assert spec["volumeClaimTemplates"][0]["spec"]["resources"] == {
        "requests": {"storage": "1024Gi"}
    }
    assert found["resources"].keys() == {"requests", "limits"}
    assert found["securityContext"]["readOnlyRootFilesystem"] is True
    assert spec["template"]["spec"]["securityContext"]["runAsUser"] == 999
    ping = {
        "exec": {"command": ["mysqladmin", "ping", "--host=127.0.0.1", "--connect-timeout=3"]},
        "timeoutSeconds": 5,
    }
    assert found["startupProbe"] == {**ping, "periodSeconds": 5, "failureThreshold": 120}
    assert found["readinessProbe"] == {**ping, "periodSeconds": 5}
    assert found["livenessProbe"] == {**ping, "periodSeconds": 10, "failureThreshold": 6}


def secret(key: str) -> JsonObject:
    """The key of a Secret that a password comes from."""
    return {"valueFrom": {"secretKeyRef": {"name": "shop-db-mysql-credentials", "key": key}}}


def test_its_container_has_the_variables_of_the_official_image() -> None:
    """It has one database and its login, passwords from the Secret, and volumes for all written directories."""
    found = container(made(planned()), "shop-db")
    assert found["env"] == [
        {"name": "MYSQL_DATABASE", "value": "app"},
        {"name": "MYSQL_USER", "value": "app"},
        {"name": "MYSQL_PASSWORD", **secret("password")},
        {"name": "MYSQL_ROOT_PASSWORD", **secret("root-password")},
    ]
    assert found["ports"] == [{"name": "mysql", "containerPort": 3306, "protocol": "TCP"}]
    assert found["volumeMounts"] == [
        {"name": "mysql", "mountPath": "/var/lib/mysql", "subPath": "mysql"},
        {"name": "run", "mountPath": "/var/run/mysqld"},
        {"name": "tmp", "mountPath": "/tmp"},
    ]


def test_its_backups_log_in_as_root_and_write_to_their_claim() -> None:
    """The environment of the script, and its mounts."""
    job = made(planned(backup={"retention": "2w"}))["CronJob", "shop-db-backup"]["spec"][
        "jobTemplate"
    ]["spec"]
    pod = job["template"]["spec"]
    (found,) = pod["containers"]
    assert found["env"] == [
        {"name": "SERVER", "value": "shop-db"},
        {"name": "RETENTION", "value": "2w"},
        {"name": "MYSQL_PWD", **secret("root-password")},
    ]
    assert (found["command"], pod["restartPolicy"]) == (["bash", "-c", DUMP], "OnFailure")
    assert {each["name"]: each["mountPath"] for each in found["volumeMounts"]} == {
        "backup": "/backup",
        "tmp": "/tmp",
    }
    assert pod["volumes"][0] == {
        "name": "backup",
        "persistentVolumeClaim": {"claimName": "shop-db-mysql-backup"},
    }


def test_the_backend_gets_its_login() -> None:
    """Passwords come from the Secret of the server, never from the plan."""
    variables = {each["name"]: each for each in container(made(planned()), "shop-backend")["env"]}
    assert variables["DATABASE_PORT"]["value"] == "3306"
    assert variables["DATABASE_URL"]["value"].startswith("mysql://$(DATABASE_USER):")
    reference = {"name": "shop-db-mysql-credentials", "key": "password"}
    assert variables["DATABASE_PASSWORD"]["valueFrom"] == {"secretKeyRef": reference}


def test_it_is_ready_once_its_pod_is() -> None:
    """Readiness follows the StatefulSet's status."""
    plan = planned(given([server(planned())]))
    assert plan.steps[0].ready
    assert plan.status.to_api()["endpoints"]["database"] == "mysql://shop-db.eu.svc:3306"


@pytest.mark.parametrize(
    ("stored", "policy"), [(None, "Parallel"), ("Parallel", "Parallel"), ("OrderedReady", None)]
)
def test_a_pod_that_never_became_ready_is_replaced(stored: str | None, policy: str | None) -> None:
    """The policy Parallel does that. A StatefulSet of an earlier release keeps its own, which is immutable."""
    children = []
    if stored:
        children = [ready(server(planned()))]
        children[0]["spec"]["podManagementPolicy"] = stored
    assert server(planned(given(children)))["spec"].get("podManagementPolicy") == policy


@pytest.mark.parametrize("has_data", [False, True])
def test_passwords_of_a_volume_that_has_data_are_set_as_it_starts(
    tmp_path: Path, has_data: bool
) -> None:
    """A new volume is initialized by the image's entry point; one with data gets the passwords of the Secret."""
    (tmp_path / ("mysql" if has_data else "other")).mkdir()
    entry_point = tmp_path / "docker-entrypoint.sh"
    entry_point.write_text('#!/bin/sh\necho "$@"\n')
    entry_point.chmod(0o755)
    passwords = tmp_path / "passwords.sql"
    script = START.replace("/var/lib/mysql/mysql", str(tmp_path / "mysql")).replace(
        "/tmp/passwords.sql", str(passwords)
    )
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "MYSQL_USER": "app"}
    environment |= {"MYSQL_PASSWORD": "a-1", "MYSQL_ROOT_PASSWORD": "b_2"}
    said = subprocess.run(
        ["sh", "-c", script], env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    assert said == (f"mysqld --init-file={passwords}\n" if has_data else "mysqld\n")
    if has_data:
        assert passwords.stat().st_mode & 0o777 == 0o600
        assert passwords.read_text() == (
            "ALTER USER IF EXISTS 'root'@'localhost' IDENTIFIED BY 'b_2', 'root'@'%' IDENTIFIED BY 'b_2';\n"
            "ALTER USER IF EXISTS 'app'@'%' IDENTIFIED BY 'a-1';\n"
        )


def test_backups_are_no_part_of_the_service() -> None:
    """The CronJob's pods have the platform's label, but not the label in the Service's selector."""
    objects = made(planned(backup={"schedule": "@daily", "retention": "4w"}))
    template = objects["CronJob", "shop-db-backup"]["spec"]["jobTemplate"]["spec"]["template"]
    assert template["metadata"]["labels"]["platform"] == "shop"
    assert (
        template["metadata"]["labels"]["app"]
        != objects["Service", "shop-db"]["spec"]["selector"]["app"]
    )
    assert objects["CronJob", "shop-db-backup"]["spec"]["schedule"] == "@daily"
    (container,) = template["spec"]["containers"]
    assert {"name": "RETENTION", "value": "4w"} in container["env"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_backups_may_go_elsewhere() -> None:
    """With a destination, a Backup object creates them, as root, and the CronJob is deleted."""
    before = made(planned()).values()
    plan = planned(given(before), backup={"destination": {"type": "s3", "bucket": "dumps"}})
    assert deleted(plan) == ["cronjobs/shop-db-backup"]
    backup = made(plan)["Backup", "shop-db-backup"]
    assert backup["spec"]["source"] == {
        "type": "mysql",
        "connection": {
            "host": "shop-db",
            "port": 3306,
            "username": "root",
            "secretRef": {"name": "shop-db-mysql-credentials", "passwordKey": "root-password"},
        },
    }
    assert backup["spec"]["destination"]["bucket"] == "dumps"


def test_backups_that_are_switched_off_go() -> None:
    """Their claim stays."""
    plan = planned(given(made(planned()).values()), backup={"enabled": False})
    assert (deleted(plan), made(plan, "CronJob")) == (["cronjobs/shop-db-backup"], {})


def claim(storage: str) -> JsonObject:
    """The claim of the server's volume."""
    metadata = {
        "name": "mysql-shop-db-0",
        "namespace": "eu",
        "uid": "c",
        "labels": {"app": "shop-db", "app.kubernetes.io/name": "mysql"},
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": {"resources": {"requests": {"storage": storage}}, "storageClassName": "fast"},
        "status": {"phase": "Bound"},
    }


def storage_class(*, expands: bool = True) -> JsonObject:
    """The class of the claims."""
    metadata = {"name": "fast"}
    return {"kind": "StorageClass", "metadata": metadata, "allowVolumeExpansion": expands}


@pytest.mark.parametrize(
    ("storage", "expands", "size", "problem"),
    [
        ("200Gi", True, "200Gi", None),
        ("100Gi", False, "100Gi", None),
        (
            "200Gi",
            False,
            "100Gi",
            "Database deployment failed: spec.database.storage: 200Gi; volumes of storage class fast do not "
            "grow. Set it back to 100Gi",
        ),
        (
            "50Gi",
            True,
            "100Gi",
            "Database deployment failed: spec.database.storage: 50Gi; volumes of 100Gi cannot shrink. "
            "Set it to 100Gi or more",
        ),
    ],
)
def test_a_volume_grows_and_never_shrinks(
    storage: str, expands: bool, size: str, problem: str | None
) -> None:
    """The claim is changed; the StatefulSet keeps its first claim template."""
    children = [ready(each) for each in made(planned()).values()]
    found = {
        (CLAIM, INDEX, "shop-db"): [claim("100Gi")],
        (STORAGE_CLASS, "name", "fast"): [storage_class(expands=expands)],
    }
    plan = planned(Observed(children=children, found=found), storage=storage)
    patches = [
        write for step in plan.steps for write in step.writes if isinstance(write, ApplyFields)
    ]
    assert [each.fields["spec"] for each in patches] == [
        {"resources": {"requests": {"storage": size}}}
    ]
    labels = {"platform": "shop", "app.kubernetes.io/version": "8.4"}
    assert [each.fields["metadata"]["labels"] for each in patches] == [labels]
    (template,) = server(plan)["spec"]["volumeClaimTemplates"]
    assert template["spec"]["resources"]["requests"]["storage"] == "100Gi"
    assert (plan.problem.message if plan.problem else None) == problem
    assert plan.steps[0].ready is (problem is None)
    (found,) = READS_CLAIMS.indexes[INDEX](claim("1Gi"))
    assert found == "shop-db"
    assert found in by_parent({"metadata": {"name": "shop"}})


@pytest.mark.parametrize(
    ("kind", "object"),
    [(APP_STACK, stack), (ECOMMERCE_PLATFORM, platform)],
    ids=["AppStack", "EcommercePlatform"],
)
def test_the_volume_is_deleted_only_on_request_once_the_server_has_stopped(
    kind: PlannedKind[Any], object: Callable[..., JsonObject]
) -> None:
    """From its creation, a finalizer keeps the object until the volume is deleted; the backups stay."""
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [kind.finalizer]}

    def removal(policy: str, claims: Sequence[JsonObject], **status: int) -> tuple[bool, list[str]]:
        shop = object(database={"type": "mysql", "deletionPolicy": policy})
        before = kind.plan(kind.type.model_validate(shop), Observed(), NOW)
        (running,) = made(before, "StatefulSet").values()
        stopped = {**running, "spec": {**running["spec"], "replicas": 0}}
        observed = Observed(
            children=[ready(running) if not status else {**ready(stopped), "status": status}],
            found={(CLAIM, INDEX, "shop-db"): claims},
        )
        shop["metadata"] |= ending
        plan = kind.plan(kind.type.model_validate(shop), observed, NOW)
        stops = [
            write.reference.name
            for write in plan.steps[0].writes
            if isinstance(write, ApplyFields) and write.fields == {"spec": {"replicas": 0}}
        ]
        return plan.finalized, [*stops, *deleted(plan)]

    gone = {"observedGeneration": 1, "replicas": 0}
    volume = "persistentvolumeclaims/mysql-shop-db-0"
    assert removal("Retain", [claim("1Gi")], **gone) == (True, [])
    assert removal("Delete", [claim("1Gi")]) == (False, ["shop-db"])
    assert removal("Delete", [claim("1Gi")], **gone) == (False, ["shop-db", volume])
    assert removal("Delete", [], **gone) == (True, ["shop-db"])
    for policy, finalized in (("Delete", False), ("Retain", True)):
        shop = object(database={"type": "mysql", "deletionPolicy": policy})
        assert kind.plan(kind.type.model_validate(shop), Observed(), NOW).finalized is finalized


def test_labels_reach_claims_that_were_made_before() -> None:
    """The claims of data and backups get them, and keep foreign labels."""
    dumps = claim("10Gi")
    dumps["metadata"] |= {
        "name": "shop-db-mysql-backup",
        "labels": {"app": "shop-db-backup", "theirs": "yes"},
    }
    found = {
        (CLAIM, INDEX, "shop-db"): [claim("100Gi")],
        (CLAIM, INDEX, "shop-db-backup"): [dumps],
    }
    plan = planned(Observed(found=found))
    patches = [
        write for step in plan.steps for write in step.writes if isinstance(write, ApplyFields)
    ]
    labels = {"labels": {"platform": "shop"}}
    assert [(each.reference.name, each.fields["metadata"]) for each in patches] == [
        ("mysql-shop-db-0", labels),
        ("shop-db-mysql-backup", labels),
    ]


@pytest.mark.parametrize(
    ("backup", "size"),
    [
        ({}, "300Gi"),
        ({"storage": "600Gi"}, "600Gi"),
        ({"storage": "5Gi"}, "10Gi"),
        ({"enabled": False}, "10Gi"),
        ({"destination": {"bucket": "dumps"}}, "10Gi"),
    ],
)
def test_the_claim_for_dumps_grows(backup: JsonObject, size: str) -> None:
    """It follows `storage` or `backup.storage`, never shrinks, and stays where dumps go elsewhere."""
    dumps = claim("10Gi")
    dumps["metadata"]["name"] = "shop-db-mysql-backup"
    found = {
        (CLAIM, INDEX, "shop-db-backup"): [dumps],
        (STORAGE_CLASS, "name", "fast"): [storage_class()],
    }
    plan = planned(Observed(found=found), storage="300Gi", backup=backup)
    (patch,) = (
        write for step in plan.steps for write in step.writes if isinstance(write, ApplyFields)
    )
    assert patch.fields["spec"] == {"resources": {"requests": {"storage": size}}}


def test_a_changed_default_does_not_change_existing_children() -> None:
    """The running version and the present size stay unless the spec sets others."""
    children = [ready(each) for each in made(planned(version="8.0")).values()]
    found = {(CLAIM, INDEX, "shop-db"): [claim("900Gi")]}
    plan = planned(Observed(children=children, found=found))
    assert (container(made(plan), "shop-db")["image"], plan.problem) == ("mysql:8.0", None)


def volume(data: str | None) -> JsonObject:
    """The claim of the server's volume, labelled with the version that its data is of."""
    volume = claim("100Gi")
    if data:
        volume["metadata"]["labels"]["app.kubernetes.io/version"] = data
    return volume


UNREADY: JsonObject = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1}


@pytest.mark.parametrize(
    ("asked", "runs", "is_ready", "data", "server", "refused"),
    [
        ("9.0", None, False, None, "9.0", None),
        ("9.0", "9.0", True, "8.4", "9.0", None),
        ("9.0", "8.4", True, "8.4", "9.0", None),
        ("8.4.3", "8.4.5", True, "8.4.5", "8.4.3", None),
        (
            "8.0",
            "9.0",
            True,
            "9.0",
            "9.0",
            "MySQL 8.0 cannot open the data of 9.0. Set it back to 9.0",
        ),
        (
            "9.0",
            "9.1",
            True,
            None,
            "9.1",
            "MySQL 9.0 cannot open the data of 9.1. Set it back to 9.1",
        ),
        (
            "9.0",
            "8.0",
            True,
            "8.0",
            "8.0",
            "MySQL 9.0 cannot open the data of 8.0. Set it to 8.4 first",
        ),
        ("8.4", "9.9", False, "8.4", "8.4", None),
        ("8.4", "9.9", False, None, "8.4", None),
        (None, "9.9", False, "8.4", "8.4", None),
        (
            "8.0",
            "9.9",
            False,
            "8.4",
            "8.4",
            "MySQL 8.0 cannot open the data of 8.4. Set it back to 8.4",
        ),
        (None, None, False, "9.0", "9.0", None),
        (
            "8.4",
            None,
            False,
            "9.0",
            "9.0",
            "MySQL 8.4 cannot open the data of 9.0. Set it back to 9.0",
        ),
        ("11", "9.0", True, "9.0", "11", None),
    ],
    ids=[
        "a new server",
        "it came up",
        "upwards",
        "an earlier fix",
        "downwards",
        "by one minor release",
        "passing one over",
        "back from one that never came up",
        "at the first try",
        "or by saying nothing",
        "but not beyond",
        "a volume that was left",
        "and another version",
        "an unknown version",
    ],
)
def test_a_version_that_does_not_open_the_data_is_refused(
    asked: str | None,
    runs: str | None,
    is_ready: bool,
    data: str | None,
    server: str,
    refused: str | None,
) -> None:
    """The server stays at the version of the data, which its claim remembers once it was ready."""
    children = []
    if runs:
        stored = ready(made(planned(version=runs))["StatefulSet", "shop-db"])
        children = [stored if is_ready else stored | {"status": UNREADY}]
    observed = Observed(children=children, found={(CLAIM, INDEX, "shop-db"): [volume(data)]})
    plan = planned(observed, **({"version": asked} if asked else {}))
    assert container(made(plan), "shop-db")["image"] == f"mysql:{server}"
    assert (
        made(plan)["StatefulSet", "shop-db"]["metadata"]["labels"]["app.kubernetes.io/version"]
        == server
    )
    told = plan.problem and (plan.problem.reason, plan.problem.message)
    if refused is None:
        assert told is None
    else:
        end = (
            "and continue when that is ready"
            if refused.endswith("first")
            else "or move a dump to a new database"
        )
        message = f"Database deployment failed: spec.database.version: {asked}; {refused}, {end}"
        assert told == ("VersionChanged", message)
    (patch,) = (
        write for step in plan.steps for write in step.writes if isinstance(write, ApplyFields)
    )
    known = runs if is_ready else data
    labels = {"platform": "shop"} | ({"app.kubernetes.io/version": known} if known else {})
    assert patch.fields["metadata"] == {"labels": labels}


def test_the_class_of_a_volume_cannot_change() -> None:
    """The change is reported, and the StatefulSet does not change."""
    children = [ready(each) for each in made(planned(storageClassName="slow")).values()]
    plan = planned(Observed(children=children), storageClassName="fast")
    assert plan.problem is not None
    assert plan.problem.message == (
        "Database deployment failed: spec.database.storageClassName: fast; the volumes' class is slow and cannot "
        "change. Set it back"
    )
    (template,) = server(plan)["spec"]["volumeClaimTemplates"]
    assert template["spec"]["storageClassName"] == "slow"


def test_a_missing_storage_class_is_reported() -> None:
    """Claims of the server and of its backups, if there are any, are checked."""
    children = [ready(each) for each in made(planned(storageClassName="fast")).values()]
    told = 'Database deployment failed: StorageClass "fast" does not exist, and claim {} waits for it. Create it'
    for index, name, backup, is_told in (
        ("shop-db", "mysql-shop-db-0", {}, True),
        ("shop-db-backup", "shop-db-mysql-backup", {}, True),
        ("shop-db-backup", "shop-db-mysql-backup", {"enabled": False}, False),
    ):
        waiting = claim("100Gi")
        waiting["metadata"]["name"] = name
        waiting |= {
            "spec": {**waiting["spec"], "storageClassName": "fast"},
            "status": {"phase": "Pending"},
        }
        observed = Observed(children=children, found={(CLAIM, INDEX, index): [waiting]})
        step = planned(observed, storageClassName="fast", backup=backup).steps[0]
        problem = Problem(told.format(name), "StorageClassNotFound") if is_told else None
        assert (step.ready, step.problem) == (not is_told, problem)


def test_the_class_that_a_volume_has_may_be_named() -> None:
    """If none was set, the claim has the cluster's default class: naming this class changes nothing."""
    volume = claim("100Gi")
    volume["spec"]["storageClassName"] = "default"
    children = [ready(each) for each in made(planned()).values()]
    observed = Observed(children=children, found={(CLAIM, INDEX, "shop-db"): [volume]})
    plan = planned(observed, storageClassName="default")
    assert plan.problem is None
    assert "storageClassName" not in server(plan)["spec"]["volumeClaimTemplates"][0]["spec"]


def dump(directory: Path, server: str) -> subprocess.CompletedProcess[str]:
    """Run the backup's script in a directory, with a server that gives these responses."""
    tool = directory / "mysqldump"
    tool.write_text(f"#!/bin/bash\n{server}\n")
    tool.chmod(0o755)
    environment = {"PATH": f"{directory}:/usr/bin:/bin", "SERVER": "shop-db", "RETENTION": "7d"}
    script = DUMP.replace("/backup/", f"{directory}/backup/")
    command = ["bash", "-c", script]
    return subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_a_good_dump_is_kept_and_old_ones_go(tmp_path: Path) -> None:
    """Only backups older than the retention are deleted, and only after the new one was verified."""
    backups = tmp_path / "backup"
    backups.mkdir()
    for name in ("20200101T000000Z.sql.gz", "29990101T000000Z.sql.gz", ".partial-20200101T000000Z"):
        (backups / name).touch()
    done = dump(tmp_path, 'printf "rows\\n-- Dump completed on today\\n"')
    assert done.returncode == 0, done.stdout
    (new,) = (each for each in backups.iterdir() if each.name != "29990101T000000Z.sql.gz")
    assert gzip.decompress(new.read_bytes()) == b"rows\n-- Dump completed on today\n"
    assert done.stdout.endswith("removed 20200101T000000Z.sql.gz, older than 7d\n")


@pytest.mark.parametrize("server", ["echo half of it", "echo '-- Dump completed'; exit 2"])
def test_a_dump_that_fails_leaves_the_others_alone(tmp_path: Path, server: str) -> None:
    """A truncated or refused dump adds no backup and removes none."""
    backups = tmp_path / "backup"
    backups.mkdir()
    (backups / "20200101T000000Z.sql.gz").touch()
    assert dump(tmp_path, server).returncode != 0
    assert [each.name for each in backups.iterdir()] == ["20200101T000000Z.sql.gz"]
