"""The pull policy in files, which may omit it; the API server always sets it, so cases cannot test this."""

import pytest

from tests.webhook.asking import ask
from webhook.policies.image_pull_policy import ImagePullPolicy, validate


@pytest.mark.parametrize("unsaid", [{}, {"imagePullPolicy": None}, {"imagePullPolicy": ""}])
def test_the_message_names_the_default(unsaid):
    """The message names the missing field, and its default."""
    pod = {
        "kind": "Pod",
        "spec": {"containers": [{"name": "app", "image": "nginx:1.21", **unsaid}]},
    }
    path = "spec.containers[name=app].imagePullPolicy"
    assert [each.message for each in validate(ask(pod), ImagePullPolicy())] == [
        f"{path}: missing, which means IfNotPresent; must be Always. Set it to Always."
    ]
