"""Children are judged when their parent is applied, so `kubectl apply` reports their violations."""

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from config.documents import parse_documents
from gatewright.plans.children import parent_of, plan_children
from kube.resource import JsonObject
from tests.e2e import manifests
from tests.e2e.conftest import CONFIG, MAKER, REGISTRY, Laptop
from tests.gatewright.started import call

pytestmark = pytest.mark.controlplane("kube-controller-manager")

RULE = re.compile(r"^- ([a-z0-9-]+): .*?; (.*?)\. ", re.MULTILINE)
WITHIN = 60.0  # seconds


def policy(
    name: str, namespace: str, *, params: JsonObject | None = None, **match: object
) -> JsonObject:
    """Return a policy for one namespace."""
    return {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": f"{name}-{namespace}"},
        "spec": {
            "policy": name,
            "params": params or {},
            "match": {"any": [{"namespaces": [namespace], **match}]},
        },
    }


@pytest.fixture(scope="module")
def judged(laptop: Laptop) -> Iterator[str]:
    """A namespace with policies for Deployments and Services that exclude the user of the laptop."""
    namespace = laptop.create_namespace()
    ignored = policy("image-tags", namespace)
    ignored["spec"]["match"]["exclude"] = {"users": [MAKER]}
    policies = [
        policy("replica-limits", namespace, params={"maximum": 2}, kinds=["Deployment"]),
        policy("resource-ratios", namespace, params={"maximum": {"cpu": 5}}, kinds=["Deployment"]),
        policy(
            "required-labels", namespace, params={"labels": {"app": "shop*"}}, kinds=["Service"]
        ),
        ignored,
    ]
    laptop.kubectl("apply", "-f-", input={"apiVersion": "v1", "kind": "List", "items": policies})
    bad = manifests.webapp("toys", replicas=3, image="nginx:latest", resources=RATIO)
    deadline = time.monotonic() + WITHIN
    while len(told(laptop, namespace, [bad])) < 4:
        assert time.monotonic() < deadline, told(laptop, namespace, [bad])
    yield namespace
    names = [each["metadata"]["name"] for each in policies]
    laptop.kubectl("delete", "clusteradmissionpolicies", *names)
    laptop.plane.delete_namespace(namespace)


RATIO: JsonObject = {"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}


def told(
    laptop: Laptop, namespace: str, manifests: list[JsonObject], *options: str
) -> set[tuple[str, str]]:
    """Return policy and rule of each denial."""
    objects = {"apiVersion": "v1", "kind": "List", "items": manifests}
    said = laptop.plane.kubectl(
        "create", "-n", namespace, "--dry-run=server", "-f-", *options, input=objects, check=False
    ).stderr
    return {(line[1].removesuffix(f"-{namespace}"), line[2]) for line in RULE.finditer(said)}


def made_of(manifest: JsonObject, namespace: str) -> list[JsonObject]:
    """Return all planned children of an object, grandchildren included, with the laptop's settings."""
    (document,) = parse_documents(json.dumps(manifest).encode(), "manifest.json")
    parent = parent_of(document, namespace)
    return [
        child.object for child in plan_children(parent, datetime.now(UTC), {"registry": REGISTRY})
    ]


def sample(name: str, **spec: object) -> JsonObject:
    """Return a sample with other fields in its spec."""
    (found,) = (
        document
        for document in yaml.safe_load_all((CONFIG / f"samples/{name}.yaml").read_text())
        if document["metadata"]["name"] == name
    )
    found["metadata"].pop("namespace", None)
    return {**found, "spec": found["spec"] | spec}


def test_parent_and_children_have_one_verdict_on_a_cluster(laptop: Laptop, judged: str) -> None:
    """A parent is denied if and only if its children are, sent by the controller's account, with the same messages."""
    denied = []
    for parent in (
        manifests.webapp("shop"),
        manifests.webapp("toys"),
        manifests.webapp("shop-3", replicas=9, resources=RATIO, port=81),
        sample("my-widget", replicas=3),
        sample("nightly-backup"),
        sample("test-db"),
        sample("production-store"),
    ):
        expected = told(
            laptop, judged, made_of(parent, judged), f"--as={MAKER}", "--as-group=system:masters"
        )
        assert told(laptop, judged, [parent]) == expected
        denied += [parent["metadata"]["name"]] * bool(expected)
    assert denied == ["toys", "shop-3", "my-widget", "test-db", "production-store"]


def test_the_parents_field_is_named(laptop: Laptop, judged: str) -> None:
    """Each violation has the WebApp's field, or the child's if it has no origin."""
    bad = manifests.webapp("toys", replicas=3, image="nginx:latest", resources=RATIO)
    assert laptop.refusal("apply", "-n", judged, "-f-", input=bad).replace(f"-{judged}", "") == (
        'Error from server (Forbidden): error when creating "STDIN": admission webhook "validate.gatewright.io" denied '
        "the request: 4 violations\n"
        '- image-tags: spec.image: "nginx:latest" has the tag latest; images must have a tag other than latest. Name a '
        "version, or a digest.\n"
        "- replica-limits: spec.replicas: 3; production workloads cannot exceed 2 replicas. Set it to 2 or less.\n"
        "- resource-ratios: spec.resources.limits.cpu: 1 with a request of 100m; a limit of cpu must be at most 5 "
        "times its request. Raise the request or lower the limit.\n"
        '- required-labels: Service/toys: metadata.labels[app]: "toys"; the value must be like shop*. Correct it.\n'
    )


def test_updates_and_scaling_are_judged_by_their_changes(laptop: Laptop, judged: str) -> None:
    """A WebApp within the limits is created; a scale beyond them is denied; another update passes."""
    laptop.kubectl("apply", "-n", judged, "-f-", input=manifests.webapp(replicas=2))
    laptop.wait("deployment/shop", "create", judged)
    said = laptop.refusal("scale", "webapp/shop", "-n", judged, "--replicas=3")
    assert said == (
        'Error from server (Forbidden): admission webhook "validate.gatewright.io" denied the request: 1 violation\n'
        f"- replica-limits-{judged}: spec.replicas: 3; production workloads cannot exceed 2 replicas. Set it to 2 or "
        "less.\n"
    )
    laptop.kubectl("scale", "webapp/shop", "-n", judged, "--replicas=1")
    laptop.kubectl("annotate", "webapp/shop", "-n", judged, "a=b")


def plan_command(laptop: Laptop) -> list[str]:
    """Return the words of `gatewright plan --diff` against the cluster."""
    return ["plan", "--diff", "--kubeconfig", str(laptop.plane.kubeconfig)]


def test_a_plan_prints_the_changes(
    laptop: Laptop, judged: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """For a converged object there are none; for a higher number that number, and its denial by a policy file."""
    file = tmp_path / "webapp.json"
    for replicas, changed in ((1, []), (2, ["-  replicas: 1", "+  replicas: 2"])):
        file.write_text(json.dumps(manifests.webapp("shop-4", replicas=replicas)))
        if not changed:
            laptop.kubectl("apply", "-n", judged, "-f", str(file))
            laptop.wait("service/shop-4", "create", judged)
        said = call(capsys, *plan_command(laptop), "-n", judged, str(file))
        assert (said.returncode, said.stderr) == (0, "")
        assert [line for line in said.stdout.splitlines()[2:] if line[0] in "+-"] == changed


def test_a_plan_rejected_by_the_api_server_fails(
    laptop: Laptop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is 1, as for a denial; the reason is printed above the object."""
    file = tmp_path / "webapp.json"
    file.write_text(json.dumps(manifests.webapp()))
    said = call(capsys, *plan_command(laptop), "-n", "nowhere", str(file))
    assert (said.returncode, said.stderr) == (1, "")
    assert said.stdout.splitlines()[0] == (
        '# apps/v1 Deployment nowhere/shop: rejected by the API server: 404 NotFound: namespaces "nowhere" not found'
    )


def test_production_policies_judge_children(laptop: Laptop) -> None:
    """A platform whose workloads violate the shipped set is denied with the platform's fields."""
    store = yaml.safe_load((CONFIG / "samples/production-store.yaml").read_text())
    store["spec"] |= {"frontend": {"replicas": 11, "image": "registry.company.com/shop:1"}}
    store["spec"] |= {"backend": {"replicas": 3, "image": "nginx:1.29"}}
    store["metadata"].pop("namespace", None)
    assert laptop.refusal("apply", "-n", "production", "-f-", input=store) == (
        'Error from server (Forbidden): error when creating "STDIN": admission webhook "validate.gatewright.io" denied '
        "the request: 2 violations\n"
        '- image-registries: spec.backend.image: "nginx:1.29" comes from docker.io; images must come from approved '
        "registry registry.company.com. Push it there, or ask for an exception.\n"
        "- replica-limits: spec.frontend.replicas: 11; production workloads cannot exceed 10 replicas. Set it to 10 or "
        "less.\n"
    )
