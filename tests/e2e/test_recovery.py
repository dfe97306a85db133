"""Objects recover from mistakes and from cleaners, on a real API server with a hollow kubelet."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.conftest import Laptop

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

Object = dict[str, Any]
TOO_MUCH = {"requests": {"cpu": "1000000"}, "limits": {"cpu": "1000000"}}
POD = {"containers": [{"name": "a", "image": "registry.company.com/a:v1"}]}
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


def test_a_child_that_a_quota_refuses_is_reported_and_created_later(
    laptop: Laptop, namespace: str
) -> None:
    """The API server refuses the child itself; its parent needs no change afterwards."""
    quota = {
        **named("v1", "ResourceQuota", "none"),
        "spec": {"hard": {"count/deployments.apps": "0"}},
    }
    laptop.kubectl("apply", "-n", namespace, "-f-", input=quota)
    hard = r"jsonpath={.status.hard.count/deployments\.apps}=0"
    laptop.wait("resourcequota/none", hard, namespace)
    widget = named("example.com/v1", "Widget", "gears", replicas=1)
    laptop.kubectl("apply", "-n", namespace, "-f-", input=widget)
    laptop.gatewright.until(
        "the condition names the quota",
        lambda: bool(reasons(laptop, namespace, "widget", "exceeded quota: none", "Forbidden")),
    )
    laptop.kubectl("delete", "resourcequota", "none", "-n", namespace)
    laptop.wait("widget/gears", "condition=Ready", namespace)


def reasons(
    laptop: Laptop, namespace: str, kinds: str, text: str, reason: str = "FailedCreate"
) -> list[str]:
    """Return the objects whose condition Ready has a text; each has the same reason."""
    found = laptop.kubectl("get", kinds, "-n", namespace, "-o=json")
    conditions = [
        (object["kind"], condition)
        for object in json.loads(found)["items"]
        for condition in object.get("status", {}).get("conditions", ())
        if condition["type"] == "Ready" and text in condition["message"]
    ]
    assert {condition["reason"] for _, condition in conditions} <= {reason}
    return sorted(kind for kind, _ in conditions)


def test_a_volume_that_cannot_be_mounted_is_in_the_condition_of_every_kind(
    laptop: Laptop, namespace: str
) -> None:
    """Only events about the pods say it, which this test writes as their kubelet."""
    image = {"image": "registry.company.com/shop:v1"}
    login = {"host": "db", "secretRef": {"name": "login"}}
    backup = {"source": {"type": "mysql", "connection": login}, "destination": {"bucket": "dumps"}}
    objects = [
        *databases(ENOUGH),
        named("app.example.com/v1", "AppStack", "cached", cache={}, backend=image, queue={}),
        named("example.com/v1", "Widget", "gears", replicas=1),
        named("example.com/v1", "WebApp", "shop", replicas=1, **image),
        named("backup.example.com/v1", "Backup", "night", **backup),
    ]
    expression = 'Object{spec: Object.spec{schedulerName: "none"}}'
    with mutated(laptop, namespace, named("v1", "Pod", "probe", **POD), "pods", expression):
        laptop.kubectl("create", "secret", "generic", "login", "-n", namespace)
        for object in objects:
            laptop.kubectl("apply", "-n", namespace, "-f-", input=object)
        laptop.wait("cronjob/night-cronjob", "create", namespace)
        laptop.kubectl("create", "job", "--from=cronjob/night-cronjob", "now", "-n", namespace)
        failed = set[str]()

        def are_reported() -> bool:
            pods = json.loads(laptop.kubectl("get", "pods", "-n", namespace, "-o=json"))["items"]
            events = [not_mounted(pod) for pod in pods if pod["metadata"]["uid"] not in failed]
            if events:
                items = {"apiVersion": "v1", "kind": "List", "items": events}
                laptop.kubectl("create", "-f-", "-n", namespace, input=items)
            failed.update(pod["metadata"]["uid"] for pod in pods)
            kinds = "appstack,ecommerceplatform,postgresql,widget,webapp"
            found = reasons(laptop, namespace, kinds, NOT_MOUNTED, "FailedMount")
            outcome = 'jsonpath={.status.conditions[?(@.type=="BackedUp")].message}'
            told = laptop.kubectl("get", "backup/night", "-n", namespace, f"-o={outcome}")
            return len(found) == len(objects) - 1 and NOT_MOUNTED in told

        laptop.gatewright.until("every condition names the volume", are_reported)


NOT_MOUNTED = 'MountVolume.SetUp failed for volume "config": configmap "settings" not found'


def not_mounted(pod: Object) -> Object:
    """Return the kubelet's event about a pod that waits for a volume."""
    about = {key: pod["metadata"][key] for key in ("name", "namespace", "uid")}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about['name']}.mount"},
        "involvedObject": {"kind": "Pod", "apiVersion": "v1", **about},
        "type": "Warning",
        "reason": "FailedMount",
        "message": NOT_MOUNTED,
        "lastTimestamp": pod["metadata"]["creationTimestamp"],
    }


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
    expression = "Object{spec: Object.spec{ttlSecondsAfterFinished: 1}}"
    probe = named("batch/v1", "Job", "probe", template={"spec": {"restartPolicy": "Never", **POD}})
    database = named("database.example.com/v1", "PostgreSQL", "pg", users=[{"name": "app"}])
    with mutated(laptop, namespace, probe, "jobs", expression):
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
    writes = laptop.plane.audit_events(mark, namespace=namespace, resource="jobs", verb="patch")
    assert [
        (event["responseStatus"]["code"], event["objectRef"]["name"])
        for event in writes
        if event["userAgent"].startswith("gatewright")
    ] == [(201, job)]


@contextmanager
def mutated(
    laptop: Laptop, namespace: str, probe: Object, resource: str, expression: str
) -> Iterator[None]:
    """Have the API server change each new object of a resource, which a dry run of `probe` shows."""
    group = "admissionregistration.k8s.io/v1"
    rule = {
        "apiGroups": [probe["apiVersion"].rpartition("/")[0]],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": [resource],
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    change = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    policy = named(
        group,
        "MutatingAdmissionPolicy",
        namespace,
        reinvocationPolicy="Never",
        matchConstraints={"resourceRules": [rule], "namespaceSelector": here},
        mutations=[change],
    )
    binding = named(group, "MutatingAdmissionPolicyBinding", namespace, policyName=namespace)

    def sent() -> str:
        options = ("-f-", "-n", namespace, "--dry-run=server", "-o=jsonpath={.spec}")
        return laptop.kubectl("create", *options, input=probe)

    before = sent()
    try:
        for object in (policy, binding):
            laptop.kubectl("create", "-f-", input=object)
        laptop.gatewright.until("the rule is in force", lambda: sent() != before)
        yield
    finally:
        for kind in ("mutatingadmissionpolicybinding", "mutatingadmissionpolicy"):
            laptop.kubectl("delete", kind, namespace, "--ignore-not-found")
