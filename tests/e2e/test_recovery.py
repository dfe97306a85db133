"""Objects recover from mistakes and from cleaners, on a real API server with a hollow kubelet."""

import json
from typing import Any

import pytest

from tests.e2e.conftest import Laptop

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

Object = dict[str, Any]
TOO_MUCH = {"requests": {"cpu": "1000000"}, "limits": {"cpu": "1000000"}}
ENOUGH = {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}


def named(api_version: str, kind: str, name: str, **spec: Any) -> Object:
    """Return a custom resource."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def databases(resources: Object) -> list[Object]:
    """Return an object of each kind that makes a StatefulSet, with these resources."""
    mysql = {"type": "mysql", "storage": "1Gi", "resources": resources}
    image = {"image": "registry.company.com/shop:v1"}
    return [
        named("app.example.com/v1", "AppStack", "stack", database=mysql),
        named(
            "platform.example.com/v1",
            "EcommercePlatform",
            "platform",
            database=mysql,
            backend=image,
            frontend=image,
        ),
        named("database.example.com/v1", "PostgreSQL", "pg", storage="1Gi", resources=resources),
    ]


def test_a_pod_template_that_cannot_start_can_be_corrected(laptop: Laptop, namespace: str) -> None:
    """The pod of the corrected template replaces one that never started."""
    for object in databases(TOO_MUCH):
        laptop.kubectl("apply", "-n", namespace, "-f-", input=object)
    for pod in ("stack-db-0", "platform-db-0", "pg-0"):
        laptop.wait(f"pod/{pod}", "create", namespace)
        laptop.wait(
            f"pod/{pod}",
            'jsonpath={.status.conditions[?(@.type=="PodScheduled")].status}=False',
            namespace,
        )
    for owner, condition in (
        ("appstack/stack", "DatabaseReady"),
        ("ecommerceplatform/platform", "DatabaseReady"),
        ("postgresql/pg", "Ready"),
    ):
        reason = f'{{.status.conditions[?(@.type=="{condition}")].reason}}'
        laptop.wait(owner, f"jsonpath={reason}=Unschedulable", namespace)
    for object in databases(ENOUGH):
        laptop.kubectl("apply", "-n", namespace, "-f-", input=object)
    for owner in ("appstack/stack", "ecommerceplatform/platform"):
        laptop.wait(owner, "condition=DatabaseReady", namespace)
    laptop.wait("postgresql/pg", "condition=Ready", namespace)


def test_what_a_quota_forbids_is_in_the_condition_of_every_kind(
    laptop: Laptop, namespace: str
) -> None:
    """Deployments report it; of StatefulSets and Jobs only events do."""
    quota = {"hard": {"pods": "0"}}
    none = {**named("v1", "ResourceQuota", "none"), "spec": quota}
    laptop.kubectl("apply", "-n", namespace, "-f-", input=none)
    laptop.wait("resourcequota/none", "jsonpath={.status.hard.pods}=0", namespace)
    objects = [
        *databases(ENOUGH),
        named("example.com/v1", "Widget", "gears", replicas=1),
        named("example.com/v1", "WebApp", "shop", replicas=1, image="registry.company.com/a:v1"),
    ]
    for object in objects:
        laptop.kubectl("apply", "-n", namespace, "-f-", input=object)

    def all_say_so() -> bool:
        found = laptop.kubectl(
            "get", "appstack,ecommerceplatform,postgresql,widget,webapp", "-n", namespace, "-o=json"
        )
        ready = [
            condition
            for each in json.loads(found)["items"]
            for condition in each.get("status", {}).get("conditions", ())
            if condition["type"] == "Ready"
        ]
        said = [each for each in ready if "exceeded quota: none" in each["message"]]
        assert not said or {each["reason"] for each in said} == {"FailedCreate"}
        return len(said) >= len(objects)

    laptop.gatewright.until("every condition names the quota", all_say_so)


def test_a_dump_that_cannot_start_is_reported(laptop: Laptop, namespace: str) -> None:
    """Of PostgreSQL, of MySQL and of a Backup: the condition BackedUp has the reason in the Job's events."""
    mysql = {"type": "mysql", "storage": "1Gi", "backup": {"enabled": True}}
    login = {"host": "db", "secretRef": {"name": "login"}}
    objects = [
        named("v1", "Secret", "login"),
        named("app.example.com/v1", "AppStack", "stack", database=mysql),
        named("database.example.com/v1", "PostgreSQL", "pg", backup={"enabled": True}),
        named(
            "backup.example.com/v1",
            "Backup",
            "nightly",
            source={"type": "mysql", "connection": login},
            destination={"bucket": "dumps"},
        ),
    ]
    del objects[0]["spec"]
    for object in objects:
        laptop.kubectl("apply", "-n", namespace, "-f-", input=object)
    owners = {
        "appstack/stack": "stack-db-backup",
        "postgresql/pg": "pg-backup",
        "backup/nightly": "nightly-cronjob",
    }
    for owner in owners:
        laptop.wait(owner, "condition=Ready", namespace)
    none = {**named("v1", "ResourceQuota", "none"), "spec": {"hard": {"pods": "0"}}}
    laptop.kubectl("apply", "-n", namespace, "-f-", input=none)
    laptop.wait("resourcequota/none", "jsonpath={.status.hard.pods}=0", namespace)
    for cron_job in owners.values():
        source = f"--from=cronjob/{cron_job}"
        laptop.kubectl("create", "job", source, f"{cron_job}-now", "-n", namespace)
    for owner, cron_job in owners.items():
        path = 'jsonpath={.status.conditions[?(@.type=="BackedUp")].reason}'
        laptop.wait(owner, f"{path}=Failing", namespace)
        conditions = laptop.get(owner, namespace)["status"]["conditions"]
        (told,) = (each["message"] for each in conditions if each["type"] == "BackedUp")
        assert told.startswith(f"Job {cron_job}-now: ")
        assert "exceeded quota: none" in told


def test_a_job_that_a_cleaner_deletes_runs_once(laptop: Laptop, namespace: str) -> None:
    """An admission rule gives each Job a time to live; users and databases are created once."""
    rules = {
        "apiGroups": ["batch"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["jobs"],
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    expression = "Object{spec: Object.spec{ttlSecondsAfterFinished: 1}}"
    group = "admissionregistration.k8s.io/v1"
    policy = named(
        group,
        "MutatingAdmissionPolicy",
        namespace,
        reinvocationPolicy="Never",
        matchConstraints={"resourceRules": [rules], "namespaceSelector": here},
        mutations=[
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
        ],
    )
    binding = named(group, "MutatingAdmissionPolicyBinding", namespace, policyName=namespace)
    database = named("database.example.com/v1", "PostgreSQL", "pg", users=[{"name": "app"}])
    try:
        for object in (policy, binding):
            laptop.kubectl("create", "-f-", input=object)
        until_in_force(laptop, namespace)
        mark = laptop.plane.audit_mark()
        laptop.kubectl("apply", "-n", namespace, "-f-", input=database)
        laptop.wait("postgresql/pg", "condition=Ready", namespace)
        job = laptop.kubectl(
            "get", "postgresql/pg", "-n", namespace, "-o=jsonpath={.status.rolesJob}"
        )
        laptop.wait(f"job/{job}", "delete", namespace)
        patch = json.dumps({"spec": {"replicas": 2}})
        laptop.kubectl("patch", "postgresql/pg", "--type=merge", "-p", patch, "-n", namespace)
        laptop.wait("postgresql/pg", "jsonpath={.status.readyReplicas}=2", namespace)
        laptop.wait("postgresql/pg", "condition=Ready", namespace)
    finally:
        for kind in ("mutatingadmissionpolicybinding", "mutatingadmissionpolicy"):
            laptop.kubectl("delete", kind, namespace, "--ignore-not-found")
    writes = laptop.plane.audit_events(mark, namespace=namespace, resource="jobs", verb="patch")
    assert [
        (event["responseStatus"]["code"], event["objectRef"]["name"])
        for event in writes
        if event["userAgent"].startswith("gatewright")
    ] == [(201, job)]


def until_in_force(laptop: Laptop, namespace: str) -> None:
    """Wait until the admission rule changes a Job, by dry runs."""
    container = {"name": "a", "image": "registry.company.com/a:v1"}
    pod = {"restartPolicy": "Never", "containers": [container]}
    job = named("batch/v1", "Job", "probe", template={"spec": pod})

    def is_changed() -> bool:
        path = "-o=jsonpath={.spec.ttlSecondsAfterFinished}"
        return (
            laptop.kubectl("create", "-f-", "-n", namespace, "--dry-run=server", path, input=job)
            == "1"
        )

    laptop.gatewright.until("the rule is in force", is_changed)
