"""The assembled webhook: its policies follow the cluster, also when the CRDs are installed later."""

import asyncio
from contextlib import AsyncExitStack

import pytest
import yaml

from config.api.policy import AdmissionPolicy, ClusterAdmissionPolicy
from config.api.policy_exception import PolicyException
from config.crds import definition
from config.settings import Settings
from gatewright.processes.listeners import ProcessHealth
from gatewright.processes.webhook_process import webhook_of
from gatewright.testing.fake_apiserver import FakeApiServer
from tests.waiting import WITHIN
from webhook.server.certificate_pairs import PairFiles
from webhook.server.cluster_policies import RESOURCES

LIMITS = {"metadata": {"name": "limits"}, "spec": {"policy": "replica-limits"}}


def kubeconfig(path, url):
    """Write a kubeconfig for an API server without authentication."""
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


@pytest.mark.long
async def test_policy_objects_are_in_force_when_their_crds_come_later(tmp_path):
    """Without the CRDs the webhook is ready with no policy objects; later objects come into force."""
    async with (
        FakeApiServer() as server,
        AsyncExitStack() as stack,
        asyncio.timeout(WITHIN),
        asyncio.TaskGroup() as group,
    ):
        settings = Settings(kubeconfig=kubeconfig(tmp_path / "kubeconfig", server.url))
        observed, changed = ProcessHealth(), asyncio.Event()
        webhook = await webhook_of(
            settings, PairFiles(tmp_path / "tls.crt", tmp_path / "tls.key"), observed, stack
        )
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
