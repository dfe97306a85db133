"""The MySQL server of a platform: its objects, and how it starts."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from controller.reconcilers.ecommerceplatform import ECOMMERCE_PLATFORM
from controller.reconcilers.mysql import START
from controller.runtime.plan import Given, Object, Once, Plan, Random
from tests.controller.reconcilers.platforms import container, given, made, platform

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def planned(seen: Given | None = None, **database: Any) -> Plan:
    """The plan of a platform with a MySQL server."""
    object = platform(environment="production", database={"type": "mysql", **database})
    return ECOMMERCE_PLATFORM.plan(ECOMMERCE_PLATFORM.type.model_validate(object), seen or Given(), NOW)


def server(plan: Plan) -> Object:
    """Its StatefulSet."""
    return made(plan)["StatefulSet", "shop-db"]


def test_a_server_its_services_and_its_passwords() -> None:
    """One server; the passwords are made up once and stand in no plan."""
    plan = planned()
    assert [key for key in made(plan) if key[1].startswith("shop-db")] == [
        ("StatefulSet", "shop-db"),
        ("Service", "shop-db-headless"),
        ("Service", "shop-db"),
    ]
    (once,) = (write for step in plan.steps for write in step.writes if isinstance(write, Once))
    assert once.object["metadata"]["name"] == "shop-db-credentials"
    assert once.object["metadata"]["labels"]["platform"] == "shop"
    assert once.generate == {"data.root-password": Random(32), "data.password": Random(32)}
    assert (server(plan)["spec"]["replicas"], server(plan)["spec"]["serviceName"]) == (1, "shop-db-headless")


def test_every_label_reaches_pods_and_claims() -> None:
    """So that a selector shows them all."""
    spec = server(planned())["spec"]
    labels = {"app": "shop-db", "platform": "shop", "app.kubernetes.io/component": "database"}
    assert spec["template"]["metadata"]["labels"] == labels
    assert spec["volumeClaimTemplates"][0]["metadata"]["labels"] == labels


def test_its_pod_is_restricted_sized_and_asked_whether_it_lives() -> None:
    """As the production policies want it, and with a root filesystem that nobody writes to."""
    plan = planned(version="8.0", storage="1Ti")
    spec, found = server(plan)["spec"], container(made(plan), "shop-db")
    assert found["image"] == "mysql:8.0"
    assert spec["volumeClaimTemplates"][0]["spec"]["resources"] == {"requests": {"storage": "1024Gi"}}
    assert found["resources"].keys() == {"requests", "limits"}
    assert found["securityContext"]["readOnlyRootFilesystem"] is True
    assert spec["template"]["spec"]["securityContext"]["runAsUser"] == 999
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= found.keys()


def test_the_backend_gets_its_login() -> None:
    """From the Secret of the server, never from the plan."""
    variables = {each["name"]: each for each in container(made(planned()), "shop-backend")["env"]}
    assert variables["DATABASE_PORT"]["value"] == "3306"
    assert variables["DATABASE_URL"]["value"].startswith("mysql://$(DATABASE_USER):")
    reference = {"name": "shop-db-credentials", "key": "password"}
    assert variables["DATABASE_PASSWORD"]["valueFrom"] == {"secretKeyRef": reference}


def test_it_is_ready_once_its_pod_is() -> None:
    """By the StatefulSet's own status."""
    plan = planned(given([server(planned())]))
    assert plan.steps[0].holds
    assert plan.status.to_api()["endpoints"]["database"] == "mysql://shop-db.eu.svc:3306"


@pytest.mark.parametrize("has_data", [False, True])
def test_passwords_of_a_volume_that_has_data_are_set_as_it_starts(tmp_path: Path, has_data: bool) -> None:
    """A fresh volume is left to the image's own entry point; an old one gets the passwords of the Secret."""
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
    said = subprocess.run(["sh", "-c", script], env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert said == (f"mysqld --init-file={passwords}\n" if has_data else "mysqld\n")
    if has_data:
        assert passwords.stat().st_mode & 0o777 == 0o600
        assert passwords.read_text() == (
            "ALTER USER IF EXISTS 'root'@'localhost' IDENTIFIED BY 'b_2', 'root'@'%' IDENTIFIED BY 'b_2';\n"
            "ALTER USER IF EXISTS 'app'@'%' IDENTIFIED BY 'a-1';\n"
        )
