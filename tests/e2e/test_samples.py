"""Every sample does what it shows: as it is anywhere, and in production once its images come from our registry."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.conftest import CONFIG, REGISTRY, Laptop

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

SAMPLES = sorted((CONFIG / "samples").glob("*.yaml"))


def moved(value: Any) -> Any:
    """Return a sample with each `image` under our registry."""
    if isinstance(value, list):
        return [moved(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: f"{REGISTRY}/{item}" if key == "image" else moved(item) for key, item in value.items()}


def names(sample: Path) -> Iterator[str]:
    """The custom resources of a sample as kubectl names them."""
    for each in yaml.safe_load_all(sample.read_text()):
        if each["kind"] != "Secret":
            yield f"{each['kind'].lower()}/{each['metadata']['name']}"


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.stem)
def test_a_sample_works_as_it_is(laptop: Laptop, namespace: str, sample: Path) -> None:
    """Applied as written, it is let in and becomes ready."""
    laptop.plane.kubectl("apply", "-n", namespace, "-f", str(sample))
    laptop.plane.kubectl("wait", "-n", namespace, "--for=condition=Ready", "--timeout=60s", *names(sample))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.stem)
def test_a_sample_works_in_production(laptop: Laptop, production: str, sample: Path) -> None:
    """With its images from the approved registry, the production policies let it in, and what is made of it too."""
    objects = [moved(each) for each in yaml.safe_load_all(sample.read_text())]
    text = yaml.safe_dump_all(objects)
    laptop.plane.kubectl("apply", "-n", production, "-f", "-", input=text)
    laptop.plane.kubectl("wait", "-n", production, "--for=condition=Ready", "--timeout=60s", *names(sample))
