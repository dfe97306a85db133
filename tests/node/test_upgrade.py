"""An upgrade from the previous release, and back: no call fails, no pod restarts, no verdict changes.

No child is written, but those of databases.
"""

import json
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.fixtures import available
from tests.e2e import manifests
from tests.node import previous
from tests.node.clients import acknowledged_in, start_writer
from tests.node.conftest import Figures
from tests.node.installation import BAD, GOOD, PRODUCTION, Installation
from tests.node.load import Load
from tests.node.release import CHART
from tests.node.test_databases import primary, sql_in, wait_ready
from tests.waiting import until

pytestmark = [pytest.mark.node, pytest.mark.long]

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"
NAMESPACE = "upgrade"
DATABASE_IMAGE = "docker.io/library/gatewright-postgresql:17"
WEB = "nginxinc/nginx-unprivileged:1.29"
SMALL = {"requests": {"cpu": "20m", "memory": "32Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}}
TIER = {"replicas": 1, "image": WEB, "resources": SMALL}
KINDS = {
    "example.com/v1/WebApp": {"replicas": 1, "image": WEB, "resources": SMALL},
    "example.com/v1/Widget": {"replicas": 0},  # the node has no image for its pods
    "config.example.com/v1/AppConfig": {
        "application": "shop",
        "environment": "staging",
        "config": {"GREETING": "hello from {{ environment }}"},
    },
    "voting.schoolofdevops.com/v1alpha1/VoteConfig": {
        "question": "Tea?",
        "options": [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}],
    },
    "platform.example.com/v1/EcommercePlatform": {
        "environment": "staging",
        "frontend": TIER,
        "backend": TIER,
        "database": {"type": "postgresql", "version": "17", "storage": "1Gi", "replicas": 1},
        "cache": {"enabled": False},
        "monitoring": {"enabled": False},
    },
    "database.example.com/v1/PostgreSQL": {
        "version": "17",
        "storage": "1Gi",
        "replicas": 2,
        "resources": SMALL | {"limits": {"cpu": "1", "memory": "512Mi"}},
        "users": [{"name": "app"}],
        "databases": [{"name": "shop", "owner": "app"}],
    },
    "app.example.com/v1/AppStack": {"environment": "development", "frontend": TIER},
    "backup.example.com/v1/Backup": {
        "source": {
            "type": "postgresql",
            "connection": {"host": "db", "database": "shop", "secretRef": {"name": "login"}},
        },
        "destination": {
            "bucket": "backups",
            "endpoint": "http://store",
            "secretRef": {"name": "login"},
        },
        "suspend": True,
    },
}
POLICIES = [
    {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": "few-options"},
        "spec": {
            "match": {
                "any": [
                    {"kinds": ["ConfigMap"], "namespaces": [NAMESPACE], "names": ["big", "small"]}
                ]
            },
            "validations": [{"expression": "size(object.data) < 3", "message": "too many"}],
        },
    },
    {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "AdmissionPolicy",
        "metadata": {"name": "few", "namespace": NAMESPACE},
        "spec": {"policy": "replica-limits", "params": {"maximum": 3}},
    },
    {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "PolicyException",
        "metadata": {"name": "sale", "namespace": NAMESPACE},
        "spec": {
            "reason": "a sale",
            "expires": "2099-01-01T00:00:00Z",
            "exceptions": [{"policy": "few", "names": ["sale"]}],
        },
    },
]


# Pods that an upgrade replaces on purpose, by the beginning of their names, and what CHANGELOG.md says about it.
REPLACED = {
    "ecommerceplatform-db-": "Existing databases are taken over: each instance restarts once",
    "postgresql-": "Existing databases are taken over: each instance restarts once",
    "appstack-db-": "Existing databases are taken over: each instance restarts once",
}


def config_map(name: str, count: int) -> dict[str, Any]:
    """Return a ConfigMap with this number of keys."""
    data = {f"key{number}": "" for number in range(count)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


# Each request is sent as a dry run to both versions.
REQUESTS = {
    "good": ("apis/apps/v1", "production", "deployments", GOOD),
    "bad": ("apis/apps/v1", "production", "deployments", BAD),
    "registry": ("apis/apps/v1", "production", "deployments", manifests.deployment(image=WEB)),
    "limits": ("apis/apps/v1", "production", "deployments", manifests.deployment(resources={})),
    "autoscaler": (
        *("apis/autoscaling/v2", "production", "horizontalpodautoscalers"),
        manifests.autoscaler(maximum=11),
    ),
    "cron job": ("apis/batch/v1", "production", "cronjobs", manifests.cron_job(image=WEB)),
    "web app": ("apis/example.com/v1", "production", "webapps", manifests.webapp(replicas=3)),
    "big web app": ("apis/example.com/v1", "production", "webapps", manifests.webapp(replicas=11)),
    "two keys": ("api/v1", NAMESPACE, "configmaps", config_map("small", 2)),
    "four keys": ("api/v1", NAMESPACE, "configmaps", config_map("big", 4)),
    "tenant": ("apis/apps/v1", NAMESPACE, "deployments", manifests.deployment(replicas=4)),
    "exception": (
        *("apis/apps/v1", NAMESPACE, "deployments"),
        manifests.deployment("sale", replicas=4),
    ),
}


@pytest.fixture
def released(bare: Installation, pytestconfig: pytest.Config) -> Installation:
    """The previous release with policies, exceptions and an object of every kind, which work."""
    available(pytestconfig, previous.sources)
    bare.node.have(previous.gatewright())
    # The previous release uses the official image.
    tag = ("images", "tag", "--force", DATABASE_IMAGE, "docker.io/library/postgres:17")
    bare.node.machine.run("ctr", "--namespace", "k8s.io", *tag)
    bare.namespace("production")
    bare.namespace(NAMESPACE)
    chart = previous.sources() / "charts/gatewright"
    old = (f"image.repository={previous.REPOSITORY}", f"image.tag={previous.TAG}")
    bare.release.install(PRODUCTION, *old, chart=chart)
    bare.until("a bad object is denied", bare.denies)
    login = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "login", "namespace": NAMESPACE},
    }
    for object in [login, *POLICIES, *map(custom_resource, KINDS)]:
        bare.until("the object is applied", lambda wanted=object: applied(bare, wanted))
    ready(bare)
    bare.until("the policies are in force", lambda: verdicts(bare)["four keys"][0] == 403)
    return bare


def applied(installation: Installation, object: dict[str, Any]) -> bool:
    """Apply an object; on a busy machine a first review may time out."""
    apply = ("apply", "--server-side", "-f", "-")
    return installation.plane.kubectl(*apply, input=object, check=False).returncode == 0


def custom_resource(kind: str) -> dict[str, Any]:
    """Return an object of a kind, `apiVersion/Kind`."""
    api_version, _, name = kind.rpartition("/")
    metadata = {"name": name.lower(), "namespace": NAMESPACE}
    return {"apiVersion": api_version, "kind": name, "metadata": metadata, "spec": KINDS[kind]}


def ready(installation: Installation) -> None:
    """Wait until every custom resource is ready."""
    until(
        lambda: unready(installation) == [],
        within=300.0,
        every=0.5,
        problem=lambda: f"not ready: {unready(installation)}",
    )


def unready(installation: Installation) -> list[str]:
    """Return the objects that are not ready."""
    kinds = [kind.rpartition("/")[2].lower() for kind in KINDS]
    listed = [installation.plane.resources.find(kind, NAMESPACE) for kind in kinds]
    return [
        f"{object['kind']}: {object.get('status', {}).get('conditions')}"
        for object in chain(*listed)
        if not any(
            (condition["type"], condition["status"]) == ("Ready", "True")
            for condition in object.get("status", {}).get("conditions", ())
        )
    ]


def verdicts(installation: Installation) -> dict[str, tuple[int, str]]:
    """Return status and message for each request, sent as a dry run."""
    found = {}
    for name, (root, namespace, plural, object) in REQUESTS.items():
        path = f"/{root}/namespaces/{namespace}/{plural}?dryRun=All"
        code, answer = installation.cluster.api.request("POST", path, object)
        message = json.loads(answer).get("message", "") if code >= 400 else ""
        found[name] = (code, message.partition(":")[2])  # without the webhook's name
    return found


def pods(installation: Installation) -> dict[str, tuple[str, int]]:
    """Return uid and restarts of each pod of the objects, by name."""
    return {
        pod["metadata"]["name"]: (
            pod["metadata"]["uid"],
            sum(each["restartCount"] for each in pod["status"].get("containerStatuses", ())),
        )
        for pod in installation.plane.resources.find("pods", NAMESPACE)
        if pod["status"]["phase"] == "Running"
        and pod["metadata"]["name"] != "writer"
        and not pod["metadata"]["name"].startswith(tuple(REPLACED))
    }


def written(installation: Installation) -> dict[str, list[str]]:
    """Return the times at which the controller wrote each child, but those of databases."""
    plurals = "deployments,services,configmaps,secrets,ingresses,poddisruptionbudgets"
    listed = installation.cluster.kubectl(
        *("get", plurals, "-n", NAMESPACE, "-o", "json", "--show-managed-fields")
    )
    return {
        f"{child['kind']} {child['metadata']['name']}": [
            managed_fields["time"]
            for managed_fields in child["metadata"]["managedFields"]
            if managed_fields["manager"] == "gatewright-controller"
        ]
        for child in json.loads(listed)["items"]
        if child["metadata"].get("ownerReferences")
        and not f"{child['metadata']['name']}-".startswith((*REPLACED, "after-"))
    }


def reconciled(installation: Installation, name: str) -> None:
    """Wait until the leader has worked through its queues, with a new object last."""
    config = custom_resource("config.example.com/v1/AppConfig")
    config["metadata"]["name"] = name
    config["spec"] = {**config["spec"], "application": name}
    installation.until("the object is applied", lambda: applied(installation, config))
    installation.cluster.wait(f"configmap/{name}-config", "create", NAMESPACE)
    depth = lambda: [  # noqa: E731
        line
        for line in installation.metrics(installation.leader().partition("_")[0]).splitlines()
        if line.startswith("workqueue_depth{") and not line.endswith(" 0.0")
    ]
    installation.until("the queues are empty", lambda: depth() == [])
    ready(installation)


def test_an_upgrade_and_back_is_not_noticed(released: Installation, figure: Figures) -> None:
    """Calls, pods, custom resources and verdicts are the same in the previous release and in this one."""
    assert [text for text in REPLACED.values() if text not in CHANGELOG.read_text()] == []
    sql_in(released, NAMESPACE, "postgresql-0", "SET ROLE app; CREATE TABLE rows (id int)")
    start_writer(released, NAMESPACE, "postgresql")
    released.until("rows are written", lambda: len(acknowledged_in(released, NAMESPACE)) > 10)
    before, running, children = verdicts(released), pods(released), written(released)
    assert {each.partition(" ")[0] for each in children} >= {"Deployment", "Service", "ConfigMap"}
    with Load(released) as load:
        released.release.install(PRODUCTION, chart=CHART)
        reconciled(released, "after-upgrade")
        released.wait_for_old_pods()
    figure(f"upgrade: {load}")
    assert load.failed == []
    assert verdicts(released) == before
    assert pods(released) == running
    assert written(released) == children
    figure(f"the database of two instances: {taken_over(released)}")
    with Load(released) as load:
        released.release.helm("rollback", "gatewright", "1", "--wait")
        reconciled(released, "after-rollback")
        released.wait_for_old_pods()
    figure(f"back: {load}")
    assert load.failed == []
    assert verdicts(released) == before
    assert pods(released) == running
    released.cluster.kubectl("delete", "clusteradmissionpolicy", "few-options")
    released.cluster.kubectl("delete", "namespace", NAMESPACE)
    released.remove()


def taken_over(installation: Installation) -> str:
    """Check that Patroni runs the database, with each acknowledged row; delete it, and return the figures.

    The previous release would make its first instance the primary, whatever Patroni has chosen.
    """
    kubectl, rows = installation.cluster.kubectl, acknowledged_in(installation, NAMESPACE)
    leader = lambda: primary(installation, NAMESPACE, "postgresql")  # noqa: E731
    installation.until("a primary under Patroni", lambda: leader() == "postgresql-0", within=240)
    under = lambda: acknowledged_in(installation, NAMESPACE)[-1][0]  # noqa: E731
    installation.until("more rows", lambda: under() > rows[-1][0] + 100, within=240)
    wait_ready(installation, "postgresql/postgresql", NAMESPACE)
    times = [time for _, time in acknowledged_in(installation, NAMESPACE)]
    written = {row for row, _ in acknowledged_in(installation, NAMESPACE)}
    stored = sql_in(installation, NAMESPACE, leader(), "SELECT id FROM rows").split()
    assert written <= set(map(int, stored))
    slices = ("get", "endpointslices", "-l", "kubernetes.io/service-name=postgresql")
    assert len(kubectl(*slices, "-n", NAMESPACE, "-o", "name").split()) == 1
    longest = max(later - earlier for earlier, later in pairwise(times))
    figures = f"{len(written)} rows, none lost, {longest:.1f} s without one, primary {leader()}"
    kubectl("delete", "pod/writer", "postgresql/postgresql", "-n", NAMESPACE)
    return figures
