"""The account of a PostgreSQL's pods changes no more of them than Patroni does, as the API server judges it."""

import json
from collections.abc import Callable

import pytest

from config.api.postgresql import PostgreSQL
from controller.reconcilers.postgresql_patroni import access, account_name
from kube.resource import JsonObject
from tests.charts.rendered import Rendered
from tests.controlplane.plane import ControlPlane
from tests.waiting import until

pytestmark = pytest.mark.controlplane

KINDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
NAMES = ("gatewright-postgresql-endpoints", "gatewright-postgresql-pods")
LABELS = {"app.kubernetes.io/instance": "db", "team": "store"}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}
PORT = [{"name": "postgresql", "port": 5432, "protocol": "TCP"}]
ONE, TWO = {"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}
PATRONI = {
    "metadata": {
        "labels": {"database.example.com/role": "primary"},
        "annotations": {"status": "{}"},
    }
}
LEADER = {
    "metadata": {"labels": LABELS, "annotations": {"leader": "db-0", "ttl": "20"}},
    "subsets": [{"addresses": [ONE], "ports": PORT}],
}


@pytest.mark.parametrize(
    ("sets", "names"),
    [
        ((), NAMES),
        (("kinds={postgresql}",), NAMES),
        (("kinds={WebApp}",), ()),
        (("kinds={none}",), ()),
    ],
)
def test_they_are_rendered_with_the_kind(
    render: Callable[..., Rendered], sets: tuple[str, ...], names: tuple[str, ...]
) -> None:
    """Where the controller creates no PostgreSQL, there is no account to limit."""
    assert {key for key in render(*sets) if key[0] in KINDS} == {
        (kind, name) for kind in KINDS for name in names
    }


@pytest.fixture
def patch(
    render: Callable[..., Rendered], control_plane: ControlPlane, namespace: str
) -> Callable[[str, JsonObject], str]:
    """Patch an object of the database `db` as the account of its pods, as a dry run; returns the error."""
    for key, object in render().items():
        if key[0] in KINDS:
            control_plane.kubectl("apply", "-f", "-", input=object)
    database = PostgreSQL.model_validate({"metadata": {"name": "db", "namespace": namespace}})
    about = {"name": "db-0", "namespace": namespace, "labels": LABELS, "annotations": {"note": "a"}}
    container = {"name": "postgres", "image": "postgres:17"}
    for object in (
        *(each.object for each in access(database)),
        {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": {"containers": [container]}},
        {"apiVersion": "v1", "kind": "Endpoints", "metadata": {**about, "name": "db"}},
    ):
        control_plane.kubectl("create", "-f", "-", input=object)
    # kubectl reads what it patches.
    reader = ("--clusterrole=view", f"--serviceaccount={namespace}:{account_name(database)}")
    control_plane.kubectl("create", "rolebinding", "reader", *reader, "-n", namespace)
    account = control_plane.service_account_kubeconfig(namespace, account_name(database))

    def run(what: str, change: JsonObject) -> str:
        command = ("patch", what, "-n", namespace, "--dry-run=server", "--type=merge")
        text = json.dumps(change)
        return control_plane.kubectl(*command, "-p", text, kubeconfig=account, check=False).stderr

    relabel: JsonObject = {"metadata": {"labels": {"app": "payments"}}}
    for what in ("pod/db-0", "endpoints/db"):
        until(
            lambda what=what: "must not be changed" in run(what, relabel),
            problem=lambda what=what: run(what, relabel),
        )
    return run


DENIED: list[tuple[str, JsonObject, str]] = [
    ("pod/db-0", {"metadata": {"labels": {"app": "payments"}}}, "labels other than"),
    ("pod/db-0", {"metadata": {"labels": {"team": None}}}, "labels other than"),
    ("pod/db-0", {"metadata": {"labels": {"team": "other"}}}, "labels other than"),
    ("pod/db-0", {"metadata": {"annotations": {"prometheus.io/port": "1"}}}, "annotations other"),
    ("pod/db-0", {"metadata": {"annotations": {"note": None}}}, "annotations other"),
    ("pod/db-0", {"metadata": {"annotations": None}}, "annotations other"),
    ("pod/db-0", {"metadata": {"ownerReferences": [OWNER]}}, "owners and finalizers"),
    ("pod/db-0", {"metadata": {"finalizers": ["a.example.com/b"]}}, "owners and finalizers"),
    ("pod/db-0", {"spec": {"activeDeadlineSeconds": 1}}, "the spec of a pod"),
    ("endpoints/db", {"metadata": {"labels": None}}, "labels of Endpoints"),
    ("endpoints/db", {"metadata": {"ownerReferences": [OWNER]}}, "owners and finalizers"),
    ("endpoints/db", {"subsets": [{"addresses": [ONE, TWO], "ports": PORT}]}, "one address"),
    ("endpoints/db", {"subsets": [{"addresses": [ONE], "ports": [{"port": 443}]}]}, "one address"),
    ("endpoints/db", {"subsets": [{"notReadyAddresses": [ONE], "ports": PORT}]}, "one address"),
]


def test_patroni_does_its_work_and_nothing_else(patch: Callable[[str, JsonObject], str]) -> None:
    """Its own changes are accepted; those by which a superuser could reach other traffic are not."""
    for what, change in (
        ("pod/db-0", PATRONI),
        ("endpoints/db", LEADER),
        ("endpoints/db", {"subsets": []}),
    ):
        assert "Error" not in patch(what, change)
    for what, change, message in DENIED:
        assert message in patch(what, change), change
