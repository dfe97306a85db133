"""An upgrade writes no child of an object that does not use what is new."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller.runtime.applied import APPLIED
from controller.runtime.ownership import without_marks
from kube.resource import JsonObject
from tests.controller.reconcilers.every_kind import cases
from tests.controlplane.fixtures import available
from tests.node import previous

pytestmark = pytest.mark.long

KINDS = {"AppStack", "EcommercePlatform", "WebApp", "AppConfig", "Widget"}
PRINTED = Path(__file__).with_name("printed_plans.py")
ROOT = Path(__file__).parents[3]
ROUNDS = 15
# What an upgrade changes on purpose, none of it in a pod: a dump of MySQL that hangs ends, and a new
# server's pod that never became ready is replaced.
DELIBERATE = {
    ("CronJob", "spec.jobTemplate.spec.activeDeadlineSeconds"),
    ("StatefulSet", "spec.podManagementPolicy"),
}

DIGEST = f"metadata.annotations.{APPLIED}"

Planned = list[list[JsonObject]]


def test_objects_without_new_fields_have_the_same_children(pytestconfig: pytest.Config) -> None:
    """Of both releases, before the children exist and beside those that the previous one made.

    The digest of what was applied is the same, too, so an upgrade has no reason to write. (That the
    mark of the parent alone is none: test_adoption.py.)
    """
    available(pytestconfig, previous.sources)
    release = previous.sources()
    parents = [*objects(release)]
    before = plans(release, [(parent, []) for parent in parents])
    assert sum(map(len, before)) > len(parents)
    now = plans(ROOT, [(parent, []) for parent in parents])
    assert set(differences(before, now)) <= DELIBERATE
    kept = [(parent, list(map(stored, made))) for parent, made in zip(parents, before, strict=True)]
    changed = set(differences(plans(release, kept), plans(ROOT, kept)))
    assert changed <= DELIBERATE - {("StatefulSet", "spec.podManagementPolicy")}


def objects(release: Path) -> Iterator[JsonObject]:
    """Yield random parts of the samples and larger objects, without fields that a release lacks."""
    crds = map(
        yaml.safe_load, (file.read_text() for file in release.glob("config/crd/bases/*.yaml"))
    )
    schemas = {
        crd["spec"]["names"]["kind"]: crd["spec"]["versions"][-1]["schema"]["openAPIV3Schema"]
        for crd in crds
    }
    chance = random.Random(0)
    for case in cases():
        kind = case.object["kind"]
        if kind not in KINDS:
            continue
        metadata = case.object["metadata"] | {"uid": "1", "generation": 1}
        for _ in range(ROUNDS):
            spec = part(case.object["spec"], schemas[kind]["properties"]["spec"], chance)
            yield case.object | {"metadata": metadata, "spec": spec}


def part(value: Any, schema: JsonObject, chance: random.Random) -> Any:
    """Return a value without fields that the schema lacks, and without some that it does not require."""
    if isinstance(value, list):
        return [part(item, schema.get("items", {}), chance) for item in value]
    properties = schema.get("properties")
    if not isinstance(value, dict) or properties is None:
        return value
    required = schema.get("required", ())
    return {
        key: part(value[key], properties[key], chance)
        for key in value
        if key in properties and (key in required or chance.random() < 0.8)
    }


def plans(release: Path, objects: list[tuple[JsonObject, list[JsonObject]]]) -> Planned:
    """Return the planned children of each object, beside those that are stored."""
    done = subprocess.run(
        [sys.executable, PRINTED],
        cwd=release,
        env=os.environ | {"PYTHONPATH": str(release)},
        input=json.dumps(objects),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    printed = json.loads(done.stdout)
    assert printed["release"] == str(release)
    planned: Planned = printed["planned"]
    return planned


def stored(child: JsonObject) -> JsonObject:
    """Return an applied child as the API server stores it, ready, with the default that a plan reads."""
    metadata = child["metadata"] | {"uid": child["metadata"]["name"], "generation": 1}
    spec = dict(child.get("spec", {}))
    if child["kind"] == "StatefulSet":
        spec.setdefault("podManagementPolicy", "OrderedReady")
    replicas = spec.get("replicas", 1)
    status = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas"), replicas)
    return child | {
        "metadata": metadata,
        "spec": spec,
        "status": status | {"observedGeneration": 1},
    }


def differences(before: Planned, now: Planned) -> Iterator[tuple[str, str]]:
    """Yield kind and path of each field that differs; of a child that only one has, the path ""."""
    for children, others in zip(before, now, strict=True):
        had, has = by_name(children), by_name(others)
        for key in had.keys() | has.keys():
            if key not in had or key not in has:
                yield key[0], ""
                continue
            had[key]["metadata"].setdefault("annotations", {})
            found = [*paths(had[key], without_marks(has[key]))]
            for path in found:
                if path != DIGEST or found == [DIGEST]:  # it follows from another difference
                    yield key[0], path


def by_name(children: list[JsonObject]) -> dict[tuple[str, str], JsonObject]:
    """Return children by kind and name."""
    return {(child["kind"], child["metadata"]["name"]): child for child in children}


def paths(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Yield the paths at which two values differ; a list is one value."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            yield from paths(one.get(key), other.get(key), f"{path}.{key}" if path else key)
    elif one != other:
        yield path
