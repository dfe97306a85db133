"""Fixtures of end-to-end tests: real processes, a real API server, and kubectl."""

import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.api import Api
from tests.controlplane.plane import ControlPlane
from tests.e2e import manifests
from tests.gatewright.started import Gatewright, registered, unnumber_webhooks

CONFIG = Path(__file__).parents[2] / "config"
MAKER = "somebody"  # the user of `gatewright run`
REGISTRY = "registry.company.com"  # the registry that production requires, also for Gatewright's own images


@dataclass(frozen=True)
class Cluster:
    """A control plane, used through kubectl."""

    plane: ControlPlane

    @property
    def api(self) -> Api:
        """Direct requests to the API server, without kubectl."""
        return self.plane.api

    def kubectl(self, *args: str, input: str | dict[str, Any] | None = None) -> str:
        """Return what kubectl prints."""
        return self.plane.kubectl(*args, input=input).stdout

    def refusal(self, *args: str, input: str | dict[str, Any] | None = None) -> str:
        """Return kubectl's output for a request that must be denied, without the number of the webhook."""
        result = self.plane.kubectl(*args, input=input, check=False)
        assert result.returncode == 1, f"not refused: {result.stdout}"
        return unnumber_webhooks(result.stderr)

    def get(self, what: str, namespace: str) -> dict[str, Any]:
        """Return an object, `deployment/shop`."""
        return self.plane.resources.get(what, namespace)

    def wait(self, what: str, sign: str, namespace: str) -> None:
        """Wait until an object shows `condition=Ready`, `jsonpath={…}=…`, `create` or `delete`."""
        self.kubectl("wait", what, f"--for={sign}", "-n", namespace, "--timeout=90s")

    def running(self, namespace: str, *names: str) -> None:
        """Wait until WebApps run."""
        webapps = [f"webapp/{name}" for name in names]
        self.kubectl(
            "wait",
            *webapps,
            "--for=jsonpath={.status.phase}=Running",
            "-n",
            namespace,
            "--timeout=90s",
        )

    def create_namespace(self, **labels: str) -> str:
        """Create a fresh namespace."""
        name = f"e2e-{secrets.token_hex(4)}"
        code, answer = self.api.request(
            "POST", "/api/v1/namespaces", manifests.namespace(name, **labels)
        )
        assert code == 201, answer
        return name


@dataclass(frozen=True)
class Laptop(Cluster):
    """A cluster with a running `gatewright run`, and the directory of its policies."""

    gatewright: Gatewright
    policies: Path


@pytest.fixture(scope="package")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    """One cluster with `gatewright run` and the production policies, shared by all tests that break nothing."""
    directory = tmp_path_factory.mktemp("laptop")
    policies = directory / "policies"
    policies.mkdir()
    shutil.copy(CONFIG / "policies/production.yaml", policies)
    with ControlPlane.start(directory / "controlplane") as plane:
        plane.kubectl("apply", "-f", str(CONFIG / "crd/bases"))
        plane.restart(
            "kube-controller-manager"
        )  # the garbage collector discovers new kinds only every 30 s
        plane.create_namespace("production")
        mine = plane.certificate_kubeconfig(MAKER, "system:masters")
        options = ["--registry", REGISTRY]
        with Gatewright.run(
            plane, directory, *options, policies=policies, kubeconfig=mine
        ) as gatewright:
            yield Laptop(plane, gatewright, policies)
            assert gatewright.end() == 0
            assert gatewright.tracebacks() == []
            assert registered(plane) == set()
            converts = plane.kubectl(
                "get", "crds", "-o=jsonpath={.items[*].spec.conversion.strategy}"
            ).stdout
            assert set(converts.split()) == {"None"}
    shutil.rmtree(plane.directory / "etcd")


@pytest.fixture
def namespace(laptop: Laptop) -> Iterator[str]:
    """A new namespace that no policy of production applies to."""
    name = laptop.create_namespace()
    yield name
    laptop.plane.delete_namespace(name)


@pytest.fixture
def production(laptop: Laptop) -> Iterator[str]:
    """A new namespace with the label of production."""
    name = laptop.create_namespace(environment="production")
    yield name
    laptop.plane.delete_namespace(name)
