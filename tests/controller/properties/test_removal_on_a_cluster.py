"""On a real control plane: a database that is deleted soon after its creation leaves no volume claim."""

import asyncio
import os
import random

import pytest

from controller.reconcilers.appstack import APP_STACK
from controller.reconcilers.ecommerceplatform import ECOMMERCE_PLATFORM
from controller.reconcilers.postgresql import POSTGRESQL
from controller.reconcilers.resources import CLAIM, STATEFUL_SET
from kube import credentials
from kube.client import Client
from kube.resource import JsonObject, Resource
from tests.controller.observer import observing
from tests.controller.properties.test_every_kind import CONFIG, all_kinds, crds
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

DATABASES = int(os.environ.get("DATABASES", "15"))  # the workflow of the forge makes more
SETTLED = 5.0  # seconds in which a controller that was late would have created a claim


MYSQL = {"type": "mysql", "deletionPolicy": "Delete", "storage": "1Gi"}


@pytest.mark.parametrize(
    ("resource", "spec", "server"),
    [
        pytest.param(
            POSTGRESQL.resource,
            {"deletionPolicy": "Delete", "replicas": 2, "storage": "1Gi"},
            "{}",
            id="PostgreSQL",
        ),
        pytest.param(APP_STACK.resource, {"database": MYSQL}, "{}-db", id="AppStack"),
        pytest.param(
            ECOMMERCE_PLATFORM.resource, {"database": MYSQL}, "{}-db", id="EcommercePlatform"
        ),
    ],
)
async def test_a_database_that_is_deleted_at_once_leaves_no_claim(
    control_plane: ControlPlane, namespace: str, resource: Resource, spec: JsonObject, server: str
) -> None:
    """The finalizer stays until the StatefulSet's controller no longer creates claims."""
    await asyncio.to_thread(
        control_plane.kubectl, "apply", "--server-side", "-f", str(CONFIG / "crd/bases")
    )
    names = [f"crd/{name}" for name in crds()]
    await asyncio.to_thread(control_plane.kubectl, "wait", "--for=condition=Established", *names)
    chance = random.Random(7)
    endpoint = await credentials.load(control_plane.kubeconfig, environment={})
    async with (
        Client(endpoint) as client,
        observing(client, namespace, [resource, STATEFUL_SET, CLAIM]) as observer,
        all_kinds(control_plane, namespace, "removal"),
    ):

        async def come_and_go(name: str) -> None:
            metadata = {"name": name, "namespace": namespace}
            await client.create(resource, {"metadata": metadata, "spec": spec})
            await observer.until(STATEFUL_SET, server.format(name), within=60)
            await asyncio.sleep(chance.random() / 5)
            await client.delete(resource, name, namespace)
            await observer.until_gone(resource, name)

        async with asyncio.TaskGroup() as group:
            for number in range(DATABASES):
                group.create_task(come_and_go(f"shop-{number}"))
        await asyncio.sleep(SETTLED)
        # A claim that is being deleted ends when its Pod has; one that leaked stays.
        for key in list(observer.caches[CLAIM]):
            await observer.until_gone(CLAIM, key.partition("/")[2])
