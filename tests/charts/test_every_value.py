"""Every value of the chart changes what it renders: none is accepted and then ignored."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.charts.rendered import CHART

pytestmark = [pytest.mark.controlplane, pytest.mark.long]  # helm renders the chart 120 times

ValuePath = tuple[str, ...]
# Switches of parts that have values of their own, and what these need.
EVERYTHING: dict[str, Any] = {
    "fullnameOverride": "gatewright",
    "controller": {"replicaCount": 1},  # as leaderElection.enabled: false demands
    "crds": {"install": False},
    "certManager": {"enabled": True},
    "audit": {"enabled": True},
    "networkPolicy": {"enabled": True},
    "serviceMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True},
    "dashboard": {"enabled": True},
    "kinds": ["WebApp"],
    "policies": {"preset": "production"},
}
LITTLE: dict[str, Any] = {"fullnameOverride": "gatewright", "crds": {"install": False}}
CHANGED: dict[str, Any] = {
    "affinity": {},
    "extraObjects": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "changed"}}],
    "extraArgs": ["--log-level=debug"],
    "kinds": ["Widget"],
    "policies.objects": [
        {
            "apiVersion": "gatewright.io/v1alpha1",
            "kind": "ClusterAdmissionPolicy",
            "metadata": {"name": "changed"},
            "spec": {"policy": "image-tags"},
        }
    ],
    "policies.modules": {"changed.py": "POLICY = None"},
    "policies.failurePolicy": "Ignore",
}


def leaves(values: dict[str, Any], above: ValuePath = ()) -> Iterator[tuple[ValuePath, Any]]:
    """Yield each value without values below it."""
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*above, name))
        else:
            yield (*above, name), value


def changed(path: ValuePath, value: Any) -> Any:
    """Return another value of the same type."""
    name = ".".join(path)
    if name in CHANGED:
        return CHANGED[name]
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case str():
            return f"{value}changed"
        case list():
            return [{"name": "changed"}] if name.startswith("extra") else ["changed"]
        case _:
            return {"changed": "changed"}


def merged(values: dict[str, Any], path: ValuePath, value: Any) -> dict[str, Any]:
    """Return values with another one at a path."""
    first, *rest = path
    below = values.get(first) or {}
    return values | {first: merged(below, tuple(rest), value) if rest else value}


def render(helm: Path, chart: Path, instances: list[dict[str, Any]]) -> list[str]:
    """Return what helm renders with each of these values.

    All are rendered at once, as dependencies of one chart: that takes half the time.
    """
    names = [f"value{number:03}" for number in range(len(instances))]
    shutil.copytree(CHART, chart / "charts/gatewright")
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    parts = [{"name": "gatewright", "version": version, "alias": name} for name in names]
    about = {"apiVersion": "v2", "name": "every-value", "version": version, "dependencies": parts}
    (chart / "Chart.yaml").write_text(yaml.safe_dump(about))
    (chart / "values.yaml").write_text(yaml.safe_dump(dict(zip(names, instances, strict=True))))
    # The schema takes no texts such as IfNotPresentchanged, which only show that a template reads them.
    command = [helm, "template", "release", chart, "--skip-schema-validation"]
    rendered = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert rendered.returncode == 0, rendered.stderr
    texts = dict.fromkeys(names, "")
    for part in rendered.stdout.removeprefix("---\n").split("\n---\n"):
        if match := re.search(r"^# Source: every-value/charts/(value\d+)/", part, re.MULTILINE):
            texts[match[1]] += part.strip().replace(match[1], "gatewright")
    return list(texts.values())


def without_effect(
    helm: Path, chart: Path, base: dict[str, Any], varied: dict[ValuePath, Any]
) -> dict[ValuePath, Any]:
    """Return the values that change nothing in what `base` renders."""
    instances = [base, *(merged(base, path, value) for path, value in varied.items())]
    plain, *others = render(helm, chart, instances)
    return {path: varied[path] for path, text in zip(varied, others, strict=True) if text == plain}


def test_every_value_changes_what_is_rendered(helm: Path, tmp_path: Path) -> None:
    """Each leaf of values.yaml by itself."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    del values["controller"]
    known = dict(leaves(values)) | dict(leaves(EVERYTHING))
    varied = {path: changed(path, value) for path, value in known.items()}
    del varied["policies", "extraNames"]  # only allows names in policies.objects
    remaining = without_effect(helm, tmp_path / "everything", EVERYTHING, varied)
    # Such as a second switch of the same part.
    remaining = without_effect(helm, tmp_path / "little", LITTLE, remaining)
    assert {".".join(path) for path in remaining} == set(), (
        "no template reads these values, or CHANGED and EVERYTHING need a value with an effect"
    )
