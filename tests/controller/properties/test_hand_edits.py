"""On a real API server: children that users edit are restored to the result of a fresh apply.

Edits that only add fields are excluded: fields of other writers stay.
"""

import asyncio
import json
import os
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest

import controller.runtime.conflict_backoff
import controller.runtime.workqueue
from controller.reconcilers.resources import DEPLOYMENT, SERVICE
from controller.reconcilers.webapp import WEBAPP
from kube.client import Client
from kube.errors import Conflict, Invalid
from kube.resource import JsonObject, Resource
from tests.controller.observer import Observer, observing
from tests.controller.properties.test_on_a_cluster import controlling
from tests.controller.webapps import webapp
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.controlplane("etcd", "kube-apiserver")

WEBAPPS = WEBAPP.resource
CHILDREN = (DEPLOYMENT, SERVICE)
ROUNDS = int(os.environ.get("HAND_EDITS", "3"))  # of six phases each; the workflow makes more
EDITS = 12


class Hands:
    """Who edits the children of one WebApp, and the WebApp itself."""

    def __init__(self, client: Client, place: str, chance: random.Random) -> None:
        self.client = client
        self.place = place
        self.chance = chance

    async def edit(self) -> None:
        """Make one edit; an edit that the API server rejects changes nothing."""
        edits: list[Callable[[], Awaitable[Any]]] = [
            *(self.respecify, self.relabel) * 2,
            *(self.rename_container, self.rewrite_containers, self.rename_port, self.rewrite_ports),
            *(self.change, self.drop_annotation, self.replace),
        ]
        with suppress(Conflict, Invalid):
            await self.chance.choice(edits)()

    async def respecify(self) -> None:
        """Change a field of the parent, the key of two lists among them."""
        field, value = self.chance.choice(
            [
                ("port", self.chance.randrange(80, 90)),
                ("image", f"nginx:1.{self.chance.randrange(9)}"),
                ("replicas", self.chance.randrange(1, 5)),
            ]
        )
        await self.client.patch(WEBAPPS, "shop", {"spec": {field: value}}, self.place)

    async def relabel(self) -> None:
        """Change a label that the children inherit."""
        labels = {"team": self.chance.choice(["a", "b", None])}
        await self.client.patch(WEBAPPS, "shop", {"metadata": {"labels": labels}}, self.place)

    async def rename_container(self) -> None:
        """Rename the container, as with `kubectl edit`."""
        await self.containers(lambda each: {**each, "name": self.chance.choice(["mine", "other"])})

    async def rewrite_containers(self) -> None:
        """Write a list of other containers and ports."""
        ports = [{"containerPort": self.chance.randrange(8000, 8005), "protocol": "TCP"}]
        await self.containers(lambda each: {**each, "image": "mine", "ports": ports})

    async def containers(self, edited: Callable[[JsonObject], JsonObject]) -> None:
        """Write the Deployment's containers, each changed."""
        stored = await self.client.get(DEPLOYMENT, "shop", self.place)
        containers = [edited(each) for each in stored["spec"]["template"]["spec"]["containers"]]
        template = {"spec": {"template": {"spec": {"containers": containers}}}}
        await self.client.patch(DEPLOYMENT, "shop", template, self.place)

    async def rename_port(self) -> None:
        """Change the number of the Service's port."""
        ports = [{"name": "http", "port": self.chance.randrange(8080, 8085), "protocol": "TCP"}]
        await self.client.patch(SERVICE, "shop", {"spec": {"ports": ports}}, self.place)

    async def rewrite_ports(self) -> None:
        """Write two other ports."""
        ports = [{"name": f"p{port}", "port": port, "protocol": "TCP"} for port in (9000, 9001)]
        await self.client.patch(SERVICE, "shop", {"spec": {"ports": ports}}, self.place)

    async def change(self) -> None:
        """Change values that are the controller's."""
        image = {"image": "by-hand", "imagePullPolicy": "Always"}
        await self.containers(lambda each: {**each, **image})

    async def drop_annotation(self) -> None:
        """Change or remove the annotation with the digest of the controller's apply."""
        value = self.chance.choice([None, "mine"])
        about = {"metadata": {"annotations": {"gatewright.io/applied": value}}}
        await self.client.patch(self.chance.choice(CHILDREN), "shop", about, self.place)

    async def replace(self) -> None:
        """Replace the child, like `kubectl replace` with a file without the annotation."""
        resource = self.chance.choice(CHILDREN)
        stored = await self.client.get(resource, "shop", self.place)
        stored["metadata"].pop("annotations", None)
        stored["metadata"].pop("managedFields", None)
        if resource is SERVICE:
            stored["spec"]["ports"] = [{"name": "http", "port": 7000, "protocol": "TCP"}]
        else:
            stored["spec"]["template"]["spec"]["containers"][0]["name"] = "replaced"
        await self.client.replace(resource, stored)


def content(child: JsonObject) -> JsonObject:
    """Return the fields of a child that a fresh apply sets."""
    spec = {
        key: value
        for key, value in child["spec"].items()
        if not key.startswith(("clusterIP", "ipFamil", "internal", "sessionAffinity"))
    }
    found: JsonObject = {"labels": child["metadata"]["labels"], "spec": spec}
    if containers := spec.get("template", {}).get("spec", {}).get("containers"):
        for container in containers:
            container.pop(
                "imagePullPolicy", None
            )  # not the controller's: what anybody wrote there stays
    name = child["metadata"]["name"]
    named: JsonObject = json.loads(json.dumps(found).replace(f'"{name}"', '"shop"'))
    return named


async def fresh(
    user: Client, place: str, observer: Observer, twin: str
) -> dict[Resource, JsonObject]:
    """Return the result of a fresh apply of the present WebApp: the children of a twin."""
    parent = await user.get(WEBAPPS, "shop", place)
    other = webapp(place, twin, **parent["spec"])
    other["metadata"]["labels"] = parent["metadata"].get("labels", {})
    await user.create(WEBAPPS, other)
    return {each: content(await observer.until(each, twin)) for each in CHILDREN}


async def until_equal(observer: Observer, resource: Resource, expected: JsonObject) -> None:
    """Wait until a child is as expected. Raises AssertionError with both if it never is."""
    with suppress(AssertionError):
        await observer.until(resource, "shop", lambda child: content(child) == expected)
    found = content(observer.get(resource, "shop") or {})
    differs = {key: (found["spec"].get(key), expected["spec"].get(key)) for key in expected["spec"]}
    assert found == expected, [each for each in differs.values() if each[0] != each[1]]


@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_hand_edits_end_as_a_fresh_apply(
    plane: ControlPlane, place: str, user: Client, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Edits are made in turns with and without a running controller; in the end, no edited field is left."""
    monkeypatch.setattr(controller.runtime.conflict_backoff, "REPAIRS_WINDOW", 0.0)
    monkeypatch.setattr(controller.runtime.workqueue, "FIRST_DELAY", 0.05)
    hands = Hands(user, place, random.Random(seed))
    async with observing(user, place, CHILDREN) as observer:
        await user.create(WEBAPPS, webapp(place, "shop"))
        for phase in range(6):
            async with AsyncExitStack() as stack:
                if is_running := phase % 2 == 0:
                    await stack.enter_async_context(controlling(plane, place, WEBAPP))
                    for resource in CHILDREN:
                        await observer.until(resource, "shop")
                for _ in range(EDITS):
                    await hands.edit()
                    if is_running:
                        await asyncio.sleep(hands.chance.choice([0, 0, 0.02, 0.1]))
                if is_running:
                    expected = await fresh(user, place, observer, f"twin-{phase}")
                    for each, content_of_twin in expected.items():
                        await until_equal(observer, each, content_of_twin)
