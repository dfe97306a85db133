"""The running webhook changes no mirror pod, which a kubelet sends; it changes what users send."""

import pytest

from config.documents import parse_documents
from tests.webhook.server.conftest import review
from webhook.engine import Engine
from webhook.engine.request import MIRROR
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import load

POLICY = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {{name: {policy}}}
spec: {{policy: {policy}, params: {params}}}
"""
MUTATIONS = {
    "registry-rewrite": "{mirrors: {docker.io: mirror.example.com}}",
    "resource-defaults": '{limits: {memory: "1Gi"}}',
    "security-defaults": "{}",
}
KUBELET = {"username": "system:node:n", "groups": ["system:nodes", "system:authenticated"]}
JANE = {"username": "jane", "groups": ["system:authenticated"]}


@pytest.mark.parametrize("policy", MUTATIONS)
async def test_a_mirror_pod_stays_as_it_is(start, policy):
    """The annotation alone, which anyone can set, and the kubelet alone exempt nothing."""
    text = POLICY.format(policy=policy, params=MUTATIONS[policy])
    engine = Engine(load(parse_documents(text.encode(), "policies.yaml"), catalogue()))
    async with start(engine) as webhook:
        for user, annotations, is_changed in (
            (KUBELET, {MIRROR: "1"}, False),
            (KUBELET, {}, True),
            (JANE, {MIRROR: "1"}, True),
            (JANE, {}, True),
        ):
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "static", "namespace": "shop", "annotations": annotations},
                "spec": {"containers": [{"name": "app", "image": "nginx:1"}]},
            }
            answer = await webhook.post(review("static", object=pod, userInfo=user), "/mutate")
            assert answer.response["allowed"] is True, (user, annotations)
            assert ("patch" in answer.response) is is_changed, (user, annotations)
