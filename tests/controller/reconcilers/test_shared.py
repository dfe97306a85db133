"""Modules that several kinds share: security contexts, inherited labels."""

from config.api.webapp import WebApp
from controller.reconcilers.labels import inherited
from controller.reconcilers.restricted import container, pod


def test_containers_have_the_restricted_profile() -> None:
    """Settings for a container are added to the restricted profile."""
    assert container(readOnlyRootFilesystem=False) == {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert pod(999)["runAsUser"] == pod(999)["fsGroup"] == 999


def test_labels_of_people_are_inherited() -> None:
    """Labels of tools, of the object itself and of selectors are not inherited."""
    own = {
        "app": "x",
        "version": "v1",
        "managed-by": "webapp-operator",
        "app.kubernetes.io/version": "1",
    }
    tools = {
        "helm.sh/chart": "a-1",
        "app.kubernetes.io/instance": "argo",
        "kustomize.toolkit.fluxcd.io/name": "b",
    }
    handed_on = {
        "platform": "store",
        "team": "x",
        "app.kubernetes.io/name": "a",
        "app.kubernetes.io/part-of": "c",
    }
    parent = WebApp.model_validate(
        {
            "metadata": {"name": "a", "namespace": "b", "labels": own | tools | handed_on},
            "spec": {"replicas": 1, "image": "nginx"},
        }
    )
    assert inherited(parent) == handed_on
