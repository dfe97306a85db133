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


NO_PODS = {**named("v1", "ResourceQuota", "none"), "spec": {"hard": {"pods": "0"}}}
NO_CPU = {
    **named("v1", "LimitRange", "none"),
    "spec": {"limits": [{"type": "Pod", "max": {"cpu": "1m"}}]},
}


@pytest.mark.parametrize(
    ("obstacle", "text"),
    [(NO_PODS, "exceeded quota: none"), (NO_CPU, "maximum cpu usage per Pod is 1m")],
    ids=["ResourceQuota", "LimitRange"],
)
def test_what_forbids_pods_is_in_the_condition_of_every_kind(
    laptop: Laptop, namespace: str, obstacle: Object, text: str
) -> None:
    """Deployments report it; of StatefulSets and Jobs only events do."""
    laptop.kubectl("apply", "-n", namespace, "-f-", input=obstacle)
    if obstacle["kind"] == "ResourceQuota":
        laptop.wait("resourcequota/none", "jsonpath={.status.hard.pods}=0", namespace)
    objects = [
        *databases(ENOUGH),
        named("example.com/v1", "Widget", "gears", replicas=1),
        named("example.com/v1", "WebApp", "shop", replicas=1, image="registry.company.com/a:v1"),
    ]
    for object in objects:
        laptop.kubectl("apply", "-n", namespace, "-f-", input=object)
    kinds = "appstack,ecommerceplatform,postgresql,widget,webapp"
    laptop.gatewright.until(
        "every condition names it",
        lambda: len(reasons(laptop, namespace, kinds, text)) >= len(objects),
    )


def reasons(laptop: Laptop, namespace: str, kinds: str, text: str) -> list[str]:
    """Return the objects whose condition Ready has a text; each has the reason FailedCreate."""
    found = laptop.kubectl("get", kinds, "-n", namespace, "-o=json")
    conditions = [
        (each["kind"], condition)
        for each in json.loads(found)["items"]
        for condition in each.get("status", {}).get("conditions", ())
        if condition["type"] == "Ready" and text in condition["message"]
    ]
    assert {condition["reason"] for _, condition in conditions} <= {"FailedCreate"}
    return sorted(kind for kind, _ in conditions)


def test_what_pod_security_forbids_is_in_the_condition(laptop: Laptop) -> None:
    """In a restricted namespace, a WebApp as root has the whole reason; the other kinds run."""
    namespace = laptop.create_namespace(**{"pod-security.kubernetes.io/enforce": "restricted"})
    objects = [
        *databases(ENOUGH),
        named("example.com/v1", "Widget", "gears", replicas=1),
        named("example.com/v1", "WebApp", "shop", replicas=1, image="registry.company.com/a:v1"),
    ]
    for object in objects:
        laptop.kubectl("apply", "-n", namespace, "-f-", input=object)
    text = 'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false'
    laptop.gatewright.until(
        "the WebApp says so",
        lambda: reasons(laptop, namespace, "webapp", text) == ["WebApp"],
    )
    for owner in ("appstack/stack", "ecommerceplatform/platform"):
        laptop.wait(owner, "condition=DatabaseReady", namespace)
    for owner in ("postgresql/pg", "widget/gears"):
        laptop.wait(owner, "condition=Ready", namespace)
    laptop.kubectl("delete", "namespace", namespace, "--wait=false")


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
