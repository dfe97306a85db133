"""The children of every kind on a real API server: stored as desired, and as if a removed field had never been set."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from config.defaulting import fill_crd_defaults
from controller.reconcilers.resources import CRON_JOB, JOB
from controller.runtime.apply import FIELD_MANAGER
from controller.runtime.diff import difference
from controller.runtime.plan import Apply
from kube.client import Client
from kube.errors import Invalid
from kube.resource import JsonObject, Resource
from tests.controller.reconcilers.every_kind import Case, cases
from tests.controller.reconcilers.test_every_plan import made
from tests.controlplane.plane import ControlPlane

pytestmark = pytest.mark.controlplane("etcd", "kube-apiserver")

BUILT_IN = frozenset({"", "apps", "batch", "policy", "networking.k8s.io"})
GIVEN = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "volumeName")
Children = dict[tuple[Resource, str], JsonObject]


def children(case: Case, place: str) -> Children:
    """Return the planned children of built-in kinds that are kept, in a namespace."""
    found: Children = {}
    for planned in made(case):
        if isinstance(planned.write, Apply) and planned.resource.group in BUILT_IN:
            object = deepcopy(planned.object)
            object["metadata"]["namespace"] = place
            found[planned.resource, object["metadata"]["name"]] = object
    return found


@pytest.mark.parametrize("case", cases(), ids=str)
async def test_stored_children_equal_the_desired_ones(
    plane: ControlPlane, place: str, user: Client, case: Case
) -> None:
    """The API server drops, adds and rewrites fields, and yet a restarted controller sends no write."""
    differences = {}
    for (resource, name), desired in children(case, place).items():
        await user.apply(resource, desired, field_manager=FIELD_MANAGER)
        stored = await user.get(resource, name, place)
        differences[resource.kind, name] = difference(stored, desired)
    assert differences == dict.fromkeys(differences)


OF_KUBERNETES = (
    "job-name",
    "controller-uid",
    "pod-template-hash",
    "pod-template-generation",
    "controller-revision-hash",
    "batch.kubernetes.io/job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-completion-index",
    "apps.kubernetes.io/pod-index",
    "statefulset.kubernetes.io/pod-name",
)


async def test_labels_that_kubernetes_sets_itself_make_no_child_invalid(
    plane: ControlPlane, place: str, user: Client
) -> None:
    """The API server accepts every child of a parent with all of them, and the Jobs of its CronJobs."""
    for case in cases():
        labels = dict.fromkeys(OF_KUBERNETES, "theirs")
        metadata = {**case.object["metadata"], "labels": labels}
        for (resource, name), desired in children(
            Case(case.kind, {**case.object, "metadata": metadata}), place
        ).items():
            await user.apply(resource, desired, field_manager=FIELD_MANAGER, dry_run=True)
            if resource == CRON_JOB:
                template = desired["spec"]["jobTemplate"]
                about = {**template["metadata"], "name": f"{name}-1", "namespace": place}
                job = {"apiVersion": "batch/v1", "kind": "Job", "spec": template["spec"]}
                await user.create(JOB, {**job, "metadata": about}, dry_run=True)


def without_one(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield, for each field of a value, the value without it, and the field's path."""
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        rest = {other: value[other] for other in value if other != key}
        yield f"{path}.{key}", rest
        for its, changed in without_one(inner, f"{path}.{key}"):
            yield its, {**value, key: changed}


@pytest.mark.parametrize("case", cases(), ids=str)
async def test_a_field_that_the_parent_no_longer_sets_is_removed(
    plane: ControlPlane, place: str, user: Client, case: Case
) -> None:
    """The field is removed even if the API server keeps its value in a deprecated copy of it."""
    before, left = children(case, place), {}
    for path, spec in without_one(case.object["spec"]):
        changed = fill_crd_defaults({**case.object, "spec": spec})
        for (resource, name), desired in planned(Case(case.kind, changed), place).items():
            earlier = before.get((resource, name))
            if earlier is None or earlier == desired:
                continue
            stored, fresh = await both(user, resource, earlier, desired)
            if stored != fresh:
                left[path] = (resource.kind, stored, fresh)
    assert left == {}


def planned(case: Case, place: str) -> Children:
    """Return the children; none if the object cannot be planned."""
    try:
        return children(case, place)
    except ValueError:  # a required field is missing
        return {}


async def both(
    user: Client, resource: Resource, earlier: JsonObject, desired: JsonObject
) -> tuple[Any, Any]:
    """Return the content of a changed child, and of a newly created one."""
    name, place = desired["metadata"]["name"], desired["metadata"]["namespace"]
    twin = {**desired, "metadata": {**desired["metadata"], "name": f"{name}-twin"}}
    await user.apply(resource, earlier, field_manager=FIELD_MANAGER)
    try:
        stored = await user.apply(resource, desired, field_manager=FIELD_MANAGER)
        fresh = await user.apply(resource, twin, field_manager=FIELD_MANAGER, dry_run=True)
    except Invalid:  # the field is immutable, or must not be missing
        return None, None
    finally:
        await user.delete(resource, name, place)
    return content(stored), content(fresh)


def content(child: JsonObject) -> JsonObject:
    """Return a child without the fields that the API server sets on each object."""
    metadata, spec = child["metadata"], child.get("spec", {})
    about = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
    return about | {key: value for key, value in spec.items() if key not in GIVEN}
