"""A cluster-scoped kind: its planned children are in the namespaces that they name."""

from copy import deepcopy
from datetime import UTC, datetime
from typing import ClassVar

import pytest

from config.api.definition import Definition
from controller.runtime.plan import Apply, Observed, Plan, Step
from gatewright.testing import reconcile
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.resource import Resource
from tests.controller.runtime.conftest import CONFIGMAP, CRD, Status, Thing, configmap, kind_of

NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
TEAMS = ("red", "blue")


class Tenant(Thing):
    """A cluster-scoped Thing."""

    definition: ClassVar[Definition] = Thing.definition._replace(namespaced=False)


def plan(tenant: Thing, observed: Observed, now: datetime) -> Plan:
    """Plan a ConfigMap in each team's namespace."""
    del now
    name = tenant.metadata["name"]
    children = [configmap(name, size=str(tenant.spec.size)) for _ in TEAMS]
    for child, team in zip(children, TEAMS, strict=True):
        child["metadata"]["namespace"] = team
    seen = [team for team in TEAMS if observed.child(CONFIGMAP, name, team)]
    return Plan((Step("settings", [*map(Apply, children)]),), Status({"seen": seen}))


async def test_children_are_kept_in_every_namespace(server: FakeApiServer) -> None:
    """They are created, repaired and updated there; then nothing is written."""
    crd = deepcopy(CRD)
    crd["spec"]["scope"] = "Cluster"
    server.define(crd)
    kind = kind_of(plan, type=Tenant, owns=(CONFIGMAP,))
    for team in TEAMS:
        server.create(NAMESPACE, {"metadata": {"name": team}})
    tenant = {"metadata": {"name": "shop"}, "spec": {"size": 1}}
    stored = server.create(kind.resource, tenant)

    async def look() -> dict[str, str | None]:
        await reconcile(kind, server, "shop", None)
        children = {team: server.get(CONFIGMAP, "shop", team) or {} for team in TEAMS}
        owners = [each["metadata"]["ownerReferences"][0]["uid"] for each in children.values()]
        assert owners == [stored["metadata"]["uid"]] * len(TEAMS)
        return {team: child["data"]["size"] for team, child in children.items()}

    assert await look() == {"red": "1", "blue": "1"}
    assert (server.get(kind.resource, "shop") or {})["status"]["seen"] == ["red", "blue"]
    server.delete(CONFIGMAP, "shop", "red")
    server.change(CONFIGMAP, "shop", {"data": {"size": "9"}}, "blue")
    assert await look() == {"red": "1", "blue": "1"}
    server.change(kind.resource, "shop", {"spec": {"size": 2}})
    assert await look() == {"red": "2", "blue": "2"}
    server.requests.clear()
    await look()
    assert [each for each in server.requests.writes if "events" not in each.path] == []


async def test_a_child_without_a_namespace_is_an_error() -> None:
    """A namespaced child of a cluster-scoped parent must name one."""

    def nowhere(tenant: Thing, observed: Observed, now: datetime) -> Plan:
        del tenant, observed, now
        return Plan((Step("settings", [Apply(configmap("shop"))]),), Status())

    tenant = Tenant.model_validate({"metadata": {"name": "shop"}, "spec": {}})
    with pytest.raises(ValueError, match=r"ConfigMap shop: metadata.namespace: must be set"):
        kind_of(nowhere, type=Tenant).plan(tenant, Observed(), datetime.now(UTC))
