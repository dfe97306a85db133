"""kubernetes_asyncio and Gatewright's client see the same API server, real or fake."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.credentials import load
from kube.errors import Conflict
from tests.kube.conftest import CONFIG_MAP, DEPLOYMENT


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.controlplane)])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A kubeconfig and a namespace of each API server."""
    if request.param == "real":
        yield (
            request.getfixturevalue("control_plane").kubeconfig,
            request.getfixturevalue("namespace"),
        )
        return
    async with FakeApiServer(token="token") as server:
        file = tmp_path / "config"
        content = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "users": [{"name": "c", "user": {"token": "token"}}],
        }
        file.write_text(yaml.safe_dump(content))
        yield file, "default"


@pytest.fixture(scope="module")
def kubernetes() -> Any:
    """The other client, whose import takes half a second, which the collection of tests does not need."""
    import kubernetes_asyncio

    return kubernetes_asyncio


async def test_two_clients_agree(kubernetes: Any, place: tuple[Path, str]) -> None:
    """With the same kubeconfig, each reads the other's writes, and stale writes conflict."""
    file, namespace = place
    configuration = kubernetes.client.Configuration()
    await kubernetes.config.load_kube_config(str(file), client_configuration=configuration)
    async with Client(await load(file)) as ours, kubernetes.client.ApiClient(configuration) as api:
        theirs = kubernetes.client.CoreV1Api(api)
        body = {"metadata": {"name": "one"}, "data": {"a": "1"}}
        created = await theirs.create_namespaced_config_map(namespace, body)
        read = await ours.get(CONFIG_MAP, "one", namespace)
        assert read["metadata"]["uid"] == created.metadata.uid
        await ours.apply(
            CONFIG_MAP,
            {"metadata": {"name": "one", "namespace": namespace}, "data": {"b": "2"}},
            field_manager="us",
        )
        again = await theirs.read_namespaced_config_map("one", namespace)
        assert again.data == {"a": "1", "b": "2"}
        assert {entry.manager for entry in again.metadata.managed_fields} >= {"us"}
        with pytest.raises(kubernetes.client.ApiException) as caught:
            await theirs.replace_namespaced_config_map("one", namespace, created)
        assert caught.value.status == 409
        with pytest.raises(Conflict):
            await ours.replace(CONFIG_MAP, read)
        listed = await theirs.list_namespaced_config_map(
            namespace, field_selector="metadata.name=one"
        )
        assert [item.metadata.uid for item in listed.items] == [created.metadata.uid]
        await theirs.delete_namespaced_config_map("one", namespace)
        found = [each["metadata"]["name"] async for each in ours.list(CONFIG_MAP, namespace)]
        assert "one" not in found


async def test_a_typed_client_reads_a_created_object(
    kubernetes: Any, place: tuple[Path, str]
) -> None:
    """A typed client can read a Deployment that our client created."""
    file, namespace = place
    container = {"name": "app", "image": "registry.company.com/app:1"}
    template = {"metadata": {"labels": {"app": "one"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "one"}}, "template": template}
    configuration = kubernetes.client.Configuration()
    await kubernetes.config.load_kube_config(str(file), client_configuration=configuration)
    async with Client(await load(file)) as ours, kubernetes.client.ApiClient(configuration) as api:
        await ours.create(
            DEPLOYMENT, {"metadata": {"name": "one", "namespace": namespace}, "spec": spec}
        )
        found = await kubernetes.client.AppsV1Api(api).read_namespaced_deployment("one", namespace)
        await ours.delete(DEPLOYMENT, "one", namespace)
    assert (found.kind, found.spec.replicas, found.metadata.generation) == ("Deployment", 2, 1)
    assert found.spec.template.spec.containers[0].image == "registry.company.com/app:1"
