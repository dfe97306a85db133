"""Installing, upgrading and removing Gatewright as its users do, by Helm."""

import threading
import time

import pytest

from tests.node.conftest import Figures
from tests.node.installation import BAD, PRODUCTION, WEBHOOK, Installation
from tests.node.release import Release

pytestmark = [pytest.mark.node, pytest.mark.long]

# Twenty seconds on a machine that does nothing else.
PROTECTED_WITHIN = 60.0
GENERATIONS = "jsonpath={.items[*].metadata.generation}"


def test_a_second_release_does_not_disturb_the_first(installed: Installation) -> None:
    """Both are registered, neither changes objects of the other, and the first outlives the second."""
    versions = lambda: installed.cluster.kubectl("get", "crds", "-o", GENERATIONS)  # noqa: E731
    before = versions()
    second = Release(installed.node, name="second", namespace="second")
    second.install(PRODUCTION, "crds.install=false", "kinds={none}")
    called = "jsonpath={.webhooks[*].clientConfig.service.namespace}"
    configuration = ("validatingwebhookconfiguration", "second-gatewright", "-o", called)
    assert "second" in installed.cluster.kubectl("get", *configuration)
    assert versions() == before
    second.uninstall()
    installed.until("a bad object is denied", installed.denies)
    assert len(installed.pods(WEBHOOK)) == 2


def test_nothing_is_left_after_helm_uninstall(installed: Installation, figure: Figures) -> None:
    """Only the CustomResourceDefinitions and the namespace remain; nothing is denied."""
    began = time.monotonic()
    installed.remove()
    figure(f"`helm uninstall --wait` returned after {time.monotonic() - began:.1f} s")
    installed.until("nothing is left", lambda: installed.left() == [])
    assert installed.create(BAD)[0] == 201


def test_helm_installs_it_and_it_denies(bare: Installation, figure: Figures) -> None:
    """`helm install --wait` succeeds, and the first denial comes within seconds of the command."""
    bare.namespace("production")
    began = time.monotonic()
    helm = threading.Thread(target=bare.release.install, args=(PRODUCTION,))
    helm.start()
    protected = bare.until("a bad object is denied", bare.denies)
    helm.join()
    figure(f"first denial {protected:.1f} s after `helm install`")
    figure(f"`helm install --wait` returned after {time.monotonic() - began:.1f} s")
    assert protected < PROTECTED_WITHIN
    assert bare.release.status() == "deployed"
    assert "Phase:          Succeeded" in bare.release.helm("test", "gatewright")
