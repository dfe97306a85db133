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


@pytest.mark.parametrize("image", [f"sha256:{'a' * 64}", "a" * 64])
def test_the_id_of_an_image_is_judged_too(image):
    """Otherwise a pod runs an image that its node has, without the registry's authorization."""
    container = {"name": "app", "image": image, "imagePullPolicy": "Never"}
    request = ask({"kind": "Pod", "spec": {"containers": [container]}})
    path = "spec.containers[name=app].imagePullPolicy"
    assert [each.message for each in validate(request, ImagePullPolicy())] == [
        f'{path}: "Never"; must be Always. Set it to Always.'
    ]
    assert list(validate(request, ImagePullPolicy(tags=["latest"]))) == []
