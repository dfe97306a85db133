"""What several kinds share: names of images, security contexts, inherited labels."""

import pytest

from config.api.webapp import WebApp
from controller.reconcilers.images import image
from controller.reconcilers.labels import inherited
from controller.reconcilers.restricted import container, pod


@pytest.mark.parametrize(
    ("registry", "published", "name"),
    [
        ("", "", "postgres:14"),
        ("", "registry.k8s.io", "registry.k8s.io/postgres:14"),
        ("registry.company.com/", "registry.k8s.io", "registry.company.com/postgres:14"),
    ],
)
def test_an_image_we_choose_comes_from_the_registry_that_is_set(registry: str, published: str, name: str) -> None:
    """The setting wins over where the image is published."""
    assert image({"registry": registry}, "postgres", "14", published=published) == name


def test_our_containers_are_restricted() -> None:
    """What is said about one container adds to the restricted profile."""
    assert container(readOnlyRootFilesystem=False) == {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert pod(999)["runAsUser"] == pod(999)["fsGroup"] == 999


def test_the_platform_is_inherited() -> None:
    """Other labels stay with the object they were given to."""
    parent = WebApp.model_validate(
        {
            "metadata": {"name": "a", "namespace": "b", "labels": {"platform": "store", "team": "x"}},
            "spec": {"replicas": 1, "image": "nginx"},
        }
    )
    assert inherited(parent) == {"platform": "store"}
