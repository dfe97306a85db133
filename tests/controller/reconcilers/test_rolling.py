"""A change of a ConfigMap's data restarts exactly the workloads that use it at that time, each once."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from controller.reconcilers.appconfig import APPCONFIG
from controller.reconcilers.resources import CONFIG_MAP, SECRET
from controller.reconcilers.rolling import (
    CHECKSUM,
    WORKLOADS,
    annotation_key,
    config_maps_of,
    kept_of,
)
from controller.runtime.types import RetryableError
from gatewright.testing import ApiServer, reconcile
from gatewright.testing.fake_apiserver.server import NAMESPACE
from kube.resource import JsonObject

DAEMON_SET, DEPLOYMENT, STATEFUL_SET = WORKLOADS
USES: JsonObject = {
    "containers": [{"name": "app", "envFrom": [{"configMapRef": {"name": "shop-config"}}]}]
}
KEY = "checksum.gatewright.io/shop-config"
SECRET_NOT_FOUND = (
    "waiting for Secret shop-db: create it in the namespace of this object, or set "
    "spec.secrets.PASSWORD.optional: true"
)


def told(shop: "Shop") -> dict[str, tuple[str, str, str]]:
    """Return status, reason and message of each condition of the AppConfig."""
    return {
        condition["type"]: (condition["status"], condition["reason"], condition["message"])
        for condition in shop.status()["conditions"]
    }


class Shop(ApiServer):
    """An AppConfig of the application `shop`, and workloads."""

    async def begin(self, *workloads: str, **config: str) -> None:
        """Create the AppConfig, workloads that use its ConfigMap, and look once."""
        self.create(
            APPCONFIG.resource,
            {
                "metadata": {"name": "settings", "namespace": "default"},
                "spec": {"application": "shop", "environment": "prod", "config": config},
            },
        )
        for name in workloads:
            self.workload(name)
        await self.look()

    def workload(self, name: str, resource: Any = DEPLOYMENT, namespace: str = "default") -> None:
        """Create a workload that uses the ConfigMap."""
        spec = {"template": {"metadata": {"labels": {"app": name}}, "spec": USES}}
        self.create(resource, {"metadata": {"name": name, "namespace": namespace}, "spec": spec})

    async def configure(self, **config: str) -> None:
        """Change the settings and look once."""
        spec = {"application": "shop", "environment": "prod", "config": config}
        super().change(APPCONFIG.resource, "settings", {"spec": spec}, "default")
        await self.look()

    async def look(self) -> None:
        """Reconcile once, as a process that has just started; `writes` are those of this time."""
        self.requests.clear()
        await reconcile(APPCONFIG, self, "settings")

    def annotation(self, name: str, resource: Any = DEPLOYMENT) -> str | None:
        """The annotation of a workload's pod template."""
        stored = self.get(resource, name, "default")
        assert stored
        return stored["spec"]["template"]["metadata"].get("annotations", {}).get(KEY)

    def status(self) -> JsonObject:
        """The AppConfig's status."""
        return dict((self.get(APPCONFIG.resource, "settings", "default"))["status"])


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    """A server with only the resources that AppConfigs need."""
    async with Shop(APPCONFIG) as shop:
        yield shop


MADE = ["apply configmaps default/shop-config", "apply appconfigs/status default/settings"]


async def test_neither_making_nor_adopting_restarts(shop: Shop) -> None:
    """It takes two writes; neither existing nor later users of the ConfigMap are restarted."""
    await shop.begin("before", a="1")
    assert shop.writes == MADE
    shop.workload("after")
    await shop.look()
    assert shop.writes == []
    assert (shop.annotation("before"), shop.annotation("after")) == (None, None)


async def test_a_change_restarts_all_who_use_it_once(shop: Shop) -> None:
    """Users of any kind in the same namespace get one changed field each; the next reconcile writes nothing."""
    await shop.begin("web", a="1")
    shop.workload("agent", DAEMON_SET)
    shop.workload("queue", STATEFUL_SET)
    shop.create(NAMESPACE, {"metadata": {"name": "other"}})
    shop.workload("elsewhere", namespace="other")
    shop.create(
        DEPLOYMENT, {"metadata": {"name": "none", "namespace": "default"}, "spec": {"template": {}}}
    )
    await shop.configure(a="2")
    assert shop.writes == [
        MADE[0],
        "apply daemonsets default/agent",
        "apply deployments default/web",
        "apply statefulsets default/queue",
        MADE[1],
    ]
    status = shop.status()
    assert {
        shop.annotation("web"),
        shop.annotation("agent", DAEMON_SET),
        shop.annotation("queue", STATEFUL_SET),
    } == {status["checksum"]}
    assert shop.get(DEPLOYMENT, "web", "default")["spec"]["template"]["metadata"]["labels"] == {
        "app": "web"
    }
    await shop.look()
    assert shop.writes == []


@pytest.mark.parametrize("done", [0, 1, 2])
async def test_a_restart_finishes_interrupted_restarts(shop: Shop, done: int) -> None:
    """After a crash before the last patch, the other users are restarted; none is restarted twice."""
    await shop.begin("a", "b", x="1")
    before = [shop.get(DEPLOYMENT, name, "default") for name in "ab"]
    old = shop.get(APPCONFIG.resource, "settings", "default")
    await shop.configure(x="2")
    for unreached in before[done:]:
        spec = unreached["spec"]["template"]["metadata"] | {"annotations": {KEY: None}}
        shop.change(
            DEPLOYMENT,
            unreached["metadata"]["name"],
            {"spec": {"template": {"metadata": spec}}},
            "default",
        )
    shop.change(APPCONFIG.resource, "settings", {"status": old["status"]}, "default", "status")
    shop.workload("newcomer")
    await shop.look()
    assert shop.writes == [*(f"apply deployments default/{name}" for name in "ab"[done:]), MADE[1]]
    assert shop.annotation("newcomer") is None


async def test_a_change_that_is_reverted_during_a_rollout(shop: Shop) -> None:
    """Restarted workloads restart again: the data is the first one again, and all use it."""
    await shop.begin("reached", x="1")
    first = shop.get(APPCONFIG.resource, "settings", "default")
    await shop.configure(x="2")
    shop.change(APPCONFIG.resource, "settings", {"status": first["status"]}, "default", "status")
    await shop.configure(x="1")
    status = shop.status()
    assert (status["checksum"], status["revision"]) == (first["status"]["checksum"], 3)
    assert shop.annotation("reached") == status["checksum"]


async def test_a_removed_annotation_is_not_restored_repeatedly(shop: Shop) -> None:
    """A tool that removes it restarts the pods only once."""
    await shop.begin("web", a="1")
    await shop.configure(a="2")
    stripped = {"spec": {"template": {"metadata": {"annotations": {KEY: None}}}}}
    shop.change(DEPLOYMENT, "web", stripped, "default")
    await shop.look()
    assert shop.writes == []


async def test_a_hand_edit_is_reverted_without_a_restart(shop: Shop) -> None:
    """A deleted ConfigMap that is recreated with the same data causes no restart either."""
    await shop.begin("web", a="1")
    updated = shop.status()["lastUpdated"]
    shop.change(CONFIG_MAP, "shop-config", {"data": {"a": "9"}}, "default")
    await shop.look()
    assert shop.writes == MADE[:1]
    assert shop.get(CONFIG_MAP, "shop-config", "default")["data"] == {"a": "1"}
    shop.delete(CONFIG_MAP, "shop-config", "default")
    await shop.look()
    assert shop.writes == MADE[:1]
    assert shop.status()["lastUpdated"] == updated


async def test_a_change_while_the_configmap_is_absent_restarts(shop: Shop) -> None:
    """The status still has the revision that the users were started with."""
    await shop.begin("web", a="1")
    shop.delete(CONFIG_MAP, "shop-config", "default")
    await shop.configure(a="2")
    assert "apply deployments default/web" in shop.writes


async def test_the_second_of_one_application_is_not_written_and_restarts_no_pod(shop: Shop) -> None:
    """Of two AppConfigs with the same ConfigMap, only the first may write it."""
    await shop.begin("web", a="1")
    other = {
        "metadata": {"name": "other", "namespace": "default"},
        "spec": {"application": "shop", "config": {"a": "2"}},
    }
    shop.create(APPCONFIG.resource, other)
    shop.requests.clear()
    with pytest.raises(
        RetryableError, match="ConfigMap shop-config exists and belongs to AppConfig settings"
    ):
        await reconcile(APPCONFIG, shop, "other")
    assert shop.writes == ["apply appconfigs/status default/other"]
    status = shop.get(APPCONFIG.resource, "other", "default")["status"]
    assert [each["reason"] for each in status["conditions"]] == ["NameTaken"] * 2
    assert "checksum" not in status


GIVEN = "secrets.gatewright.io/shop-config"


def references(**names: str) -> JsonObject:
    """The field `secrets`: variables with the key `password` of these Secrets."""
    return {each: {"name": name, "key": "password"} for each, name in names.items()}


def variable(name: str, secret: str) -> JsonObject:
    """A container's variable with a key of a Secret."""
    reference = {"name": secret, "key": "password"}
    return {"name": name, "valueFrom": {"secretKeyRef": reference}}


class TestSecrets:
    """Containers that take all keys of the ConfigMap get the references to Secrets, too."""

    @staticmethod
    async def refer(shop: Shop, **names: str) -> None:
        """Change the references and look once."""
        spec = {"application": "shop", "secrets": None}
        shop.change(APPCONFIG.resource, "settings", {"spec": spec}, "default")
        shop.change(
            APPCONFIG.resource, "settings", {"spec": {"secrets": references(**names)}}, "default"
        )
        await shop.look()

    @staticmethod
    def secret(shop: Shop, name: str) -> None:
        """Create a Secret."""
        about = {"name": name, "namespace": "default"}
        shop.create(SECRET, {"metadata": about, "data": {"password": "c2VjcmV0"}})

    @staticmethod
    def template(shop: Shop, name: str) -> JsonObject:
        """The pod template of a Deployment."""
        return dict((shop.get(DEPLOYMENT, name, "default"))["spec"]["template"])

    async def test_users_of_all_keys_get_a_reference_and_no_value(self, shop: Shop) -> None:
        """By one write each, beside their own variables; later users, too; then nothing is written."""
        self.secret(shop, "shop-db")
        await shop.begin(a="1")
        taking = USES["containers"][0] | {"env": [{"name": "OWN", "value": "1"}]}
        own = USES["containers"][0] | {"name": "own", "env": [{"name": "PASSWORD", "value": "x"}]}
        other = {"name": "other"}
        spec = {"template": {"spec": {"containers": [taking, own, other]}}}
        about = {"name": "web", "namespace": "default"}
        shop.create(DEPLOYMENT, {"metadata": about, "spec": spec})
        await self.refer(shop, PASSWORD="shop-db")
        assert shop.writes == [MADE[0], "apply deployments default/web", MADE[1]]
        template = self.template(shop, "web")
        containers = {each["name"]: each.get("env") for each in template["spec"]["containers"]}
        assert containers == {
            "app": [{"name": "OWN", "value": "1"}, variable("PASSWORD", "shop-db")],
            "own": own["env"],
            "other": None,
        }
        assert template["metadata"]["annotations"][GIVEN] == "app/PASSWORD"
        assert shop.get(CONFIG_MAP, "shop-config", "default")["data"] == {"a": "1"}
        shop.workload("later")
        await shop.look()
        assert shop.writes == ["apply deployments default/later"]
        assert shop.annotation("later") is None
        await shop.look()
        assert shop.writes == []

    async def test_other_references_restart_once_and_removed_ones_go(self, shop: Shop) -> None:
        """A change of the references is a change of the data."""
        for name in ("old", "new"):
            self.secret(shop, name)
        await shop.begin("web", a="1")
        await self.refer(shop, A="old", B="old")
        await self.refer(shop, A="new")
        assert shop.writes == [MADE[0], "apply deployments default/web", MADE[1]]
        (container,) = self.template(shop, "web")["spec"]["containers"]
        assert container["env"] == [variable("A", "new")]
        await self.refer(shop)
        assert shop.writes == [MADE[0], "apply deployments default/web", MADE[1]]
        (container,) = self.template(shop, "web")["spec"]["containers"]
        assert "env" not in container
        assert GIVEN not in self.template(shop, "web")["metadata"]["annotations"]

    async def test_a_missing_secret_is_waited_for(self, shop: Shop) -> None:
        """Its users keep running without it, and the condition names it."""
        await shop.begin("web", a="1")
        await self.refer(shop, PASSWORD="shop-db")
        assert told(shop) == {
            "SecretsReady": ("False", "SecretNotFound", SECRET_NOT_FOUND),
            "ConfigMapReady": ("True", "Ready", ""),
            "Ready": ("False", "SecretNotFound", SECRET_NOT_FOUND),
        }
        assert "env" not in self.template(shop, "web")["spec"]["containers"][0]
        self.secret(shop, "shop-db")
        await shop.look()
        assert shop.writes == ["apply deployments default/web", MADE[1]]
        assert [status for status, *_ in told(shop).values()] == ["True"] * 3

    async def test_two_missing_secrets_are_named_together(self, shop: Shop) -> None:
        """Each once, with the fields that refer to them."""
        await shop.begin("web", a="1")
        await self.refer(shop, B="mail", A="shop-db", C="mail")
        assert told(shop)["Ready"][2] == (
            "waiting for Secret shop-db, mail: create it in the namespace of this object, or set "
            "spec.secrets.A.optional, spec.secrets.B.optional, spec.secrets.C.optional: true"
        )

    async def test_a_secret_that_is_gone_changes_no_pod(self, shop: Shop) -> None:
        """Its variable stays, also in a restart, and when it is to come from another missing one."""
        for name in ("shop-db", "mail"):
            self.secret(shop, name)
        await shop.begin("web", a="1")
        await self.refer(shop, A="shop-db", B="mail")
        shop.delete(SECRET, "shop-db", "default")
        await shop.look()
        assert shop.writes == [MADE[1]]
        await self.refer(shop, A="absent", B="mail")
        assert shop.writes == [MADE[0], "apply deployments default/web", MADE[1]]
        (container,) = self.template(shop, "web")["spec"]["containers"]
        assert container["env"] == [variable("A", "shop-db"), variable("B", "mail")]
        self.secret(shop, "absent")
        await shop.look()
        (container,) = self.template(shop, "web")["spec"]["containers"]
        assert container["env"] == [variable("A", "absent"), variable("B", "mail")]


REFERENCE = {"name": "c"}


@pytest.mark.parametrize(
    "pod",
    [
        {"containers": [{"envFrom": [{"prefix": "A_", "configMapRef": REFERENCE}]}]},
        {
            "initContainers": [
                {"envFrom": [{"secretRef": {"name": "s"}}, {"configMapRef": REFERENCE}]}
            ]
        },
        {
            "containers": [
                {
                    "env": [
                        {"name": "A", "valueFrom": {"configMapKeyRef": {**REFERENCE, "key": "a"}}}
                    ]
                }
            ]
        },
        {
            "initContainers": [
                {
                    "env": [
                        {"name": "A", "value": "1"},
                        {"valueFrom": {"configMapKeyRef": REFERENCE}},
                    ]
                }
            ]
        },
        {"volumes": [{"name": "v", "configMap": REFERENCE}]},
        {
            "volumes": [
                {"name": "v", "projected": {"sources": [{"secret": {}}, {"configMap": REFERENCE}]}}
            ]
        },
    ],
)
def test_every_reference_to_a_configmap_is_found(pod: JsonObject) -> None:
    """References in containers, init containers and volumes are found."""
    assert list(config_maps_of({"spec": {"template": {"spec": pod}}})) == ["c"]


@pytest.mark.parametrize(
    "workload", [{}, {"spec": None}, {"spec": {"template": {"spec": {"containers": None}}}}]
)
def test_a_workload_without_pods_uses_none(workload: JsonObject) -> None:
    """Missing parts of a pod template cause no error."""
    assert list(config_maps_of(workload)) == []


def test_a_long_name_is_hashed_in_the_annotation() -> None:
    """A key has 63 characters at most behind the slash; two long names have two keys."""
    assert annotation_key("a" * 63) == f"checksum.gatewright.io/{'a' * 63}"
    one, other = annotation_key("a" * 64), annotation_key("a" * 65)
    assert one != other
    assert {len(each.partition("/")[2]) for each in (one, other)} == {63}
    assert CHECKSUM not in (one, other)


def test_what_the_cache_keeps_of_a_workload_has_its_configmaps() -> None:
    """However a pod refers to them; the rest of the pod is not kept."""
    source = {"configMap": {"name": "projected"}}
    volumes = [
        {"name": "a", "configMap": {"name": "mounted"}},
        {"name": "b", "projected": {"sources": [source]}},
    ]
    key = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "single", "key": "a"}}}
    init = {"name": "init", "env": [key, {"name": "B", "value": "b"}]}
    pod = {**USES, "initContainers": [init], "volumes": volumes}
    about = {"annotations": {KEY: "1", "large": "x"}, "labels": {"a": "b"}}
    workload = {"spec": {"template": {"metadata": about, "spec": pod}}}
    kept = kept_of(workload)
    assert set(config_maps_of(kept)) == {"shop-config", "single", "mounted", "projected"}
    assert kept["spec"]["template"]["metadata"] == {"annotations": {KEY: "1"}}
    assert kept["spec"]["template"]["spec"].keys() == {"volumes", "containers"}
    assert kept["spec"]["template"]["spec"]["containers"] == [{**USES["containers"][0], "env": []}]
