"""The webhook, put together: what it has in force follows the cluster, from whenever the cluster knows of policies."""

import asyncio
from contextlib import AsyncExitStack

import yaml

from config.api.policy import AdmissionPolicy, ClusterAdmissionPolicy, PolicyException
from config.crds import definition
from config.settings import Settings
from controller.fake_apiserver import FakeApiServer
from gatewright.listeners import Observed
from gatewright.serving import webhook_of
from webhook.server.policy_objects import RESOURCES

LIMITS = {"metadata": {"name": "limits"}, "spec": {"policy": "replica-limits"}}


def kubeconfig(path, url):
    """Write a kubeconfig for an API server that asks nobody who they are."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "fake", "cluster": {"server": url}}],
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "nobody"}}],
        "users": [{"name": "nobody", "user": {}}],
        "current-context": "fake",
    }
    path.write_text(yaml.safe_dump(config))
    return path


async def test_policy_objects_are_in_force_though_their_kinds_came_later(tmp_path):
    """Without their CRDs there are none, and it is ready; once they are installed, objects are in force as ever."""
    async with FakeApiServer() as server, AsyncExitStack() as stack, asyncio.timeout(20), asyncio.TaskGroup() as group:
        settings = Settings(kubeconfig=kubeconfig(tmp_path / "kubeconfig", server.url))
        observed, changed = Observed(), asyncio.Event()
        webhook = await webhook_of(settings, tmp_path / "tls.crt", tmp_path / "tls.key", observed, stack)
        running = [group.create_task(run()) for run in webhook.background.values()]
        running.append(group.create_task(webhook.policies.follow(changed.set)))
        assert observed.ready["policies"]() == "policy objects of the cluster: not read yet"
        await changed.wait()
        assert observed.ready["policies"]() is None
        assert "limits" not in {policy.name for policy in webhook.policies.engine.policies}
        changed.clear()
        for kind in (ClusterAdmissionPolicy, AdmissionPolicy, PolicyException):
            server.define(definition(kind))
        server.create(RESOURCES[0], LIMITS)
        await changed.wait()
        assert "limits" in {policy.name for policy in webhook.policies.engine.policies}
        for task in running:
            task.cancel()
