"""Every sample works: as written anywhere, and in production with images from the approved registry."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import CONFIG, REGISTRY, Laptop
from tests.gatewright.started import call
from tests.waiting import until

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

SAMPLES = sorted((CONFIG / "samples").glob("*.yaml"))


def moved(value: Any) -> Any:
    """Return a sample with each `image` from the approved registry."""
    if isinstance(value, list):
        return [moved(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: f"{REGISTRY}/{item}" if key == "image" else moved(item) for key, item in value.items()
    }


def names(sample: Path) -> Iterator[str]:
    """Return the custom resources of a sample as kubectl names them."""
    for document in yaml.safe_load_all(sample.read_text()):
        if document["kind"] != "Secret":
            yield f"{document['kind'].lower()}/{document['metadata']['name']}"


@pytest.fixture(scope="module")
def everywhere(laptop: Laptop) -> Iterator[str]:
    """A namespace to which all samples were applied together, as written."""
    name = laptop.create_namespace()
    laptop.kubectl("apply", "-n", name, *(f"--filename={sample}" for sample in SAMPLES))
    yield name
    laptop.plane.delete_namespace(name)


@pytest.fixture(scope="module")
def in_production(laptop: Laptop) -> Iterator[str]:
    """A production namespace to which all samples were applied together, with images from the approved registry."""
    name = laptop.create_namespace(environment="production")
    objects = [moved(each) for sample in SAMPLES for each in yaml.safe_load_all(sample.read_text())]
    laptop.kubectl("apply", "-n", name, "--filename=-", input=yaml.safe_dump_all(objects))
    yield name
    laptop.plane.delete_namespace(name)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.stem)
def test_a_sample_works_as_written(laptop: Laptop, everywhere: str, sample: Path) -> None:
    """Applied as written, it is admitted and becomes ready."""
    laptop.kubectl(
        "wait", "-n", everywhere, "--for=condition=Ready", "--timeout=60s", *names(sample)
    )


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.stem)
def test_a_sample_works_in_production(laptop: Laptop, in_production: str, sample: Path) -> None:
    """With its images from the approved registry, the production policies admit it and its children."""
    laptop.kubectl(
        "wait", "-n", in_production, "--for=condition=Ready", "--timeout=60s", *names(sample)
    )


def test_a_plan_of_the_samples_changes_nothing(
    laptop: Laptop, everywhere: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`plan --diff` of a file that was applied prints nothing, whatever its kind."""
    options = (
        "--kubeconfig",
        str(laptop.plane.kubeconfig),
        "--registry",
        REGISTRY,
        "-n",
        everywhere,
    )

    def planned() -> tuple[int, str]:
        said = call(capsys, "plan", "--diff", *options, str(CONFIG / "samples"))
        return said.returncode, said.stdout

    until(lambda: planned() == (0, ""), problem=lambda: f"it prints {planned()}")
