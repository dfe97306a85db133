"""Argo CD and Flux see no difference that Gatewright made, judged by their own diff engines.

Each object is applied as a tool does it; then the tool compares what is in Git with the cluster.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from config.documents import parse_documents
from kube.resource import JsonObject
from tests.charts.rendered import CHART, MODES
from tests.controlplane.fixtures import available
from tests.controlplane.gobuild import build
from tests.e2e import manifests
from tests.e2e.conftest import CONFIG, Laptop

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

MODULE = Path(__file__).parents[1] / "controlplane/gitops"
PAGE = Path(__file__).parents[2] / "docs/gitops.md"
NOT_SERVED = ("cert-manager.io", "monitoring.coreos.com")  # by a bare cluster
SERVER_SIDE = ("--server-side", "--force-conflicts")


@dataclass(frozen=True)
class Tool:
    """A way to apply what is in Git, and the ways to compare it with the cluster."""

    name: str
    apply: tuple[str, ...]
    modes: tuple[str, ...]


TOOLS = (
    Tool("argocd", (), ("three-way",)),
    Tool(
        "argocd-server-side",
        (*SERVER_SIDE, "--field-manager=argocd-controller"),
        ("structured-merge", "server-side", "server-side-mutated"),
    ),
    Tool("flux", (*SERVER_SIDE, "--field-manager=kustomize-controller"), ("flux",)),
)

Compare = Callable[..., JsonObject]


@pytest.fixture(scope="module")
def compare(laptop: Laptop, pytestconfig: pytest.Config) -> Iterator[Compare]:
    """Compare an object as it is in Git with the cluster: the answer of a tool's diff engine."""
    program = available(pytestconfig, lambda: build(MODULE, ".", "gitops", takes="3 minutes"))
    command = [program, laptop.plane.kubeconfig]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def ask(mode: str, object: JsonObject, **ignore: Any) -> JsonObject:
            process.stdin.write(json.dumps({"Mode": mode, "Object": object, **ignore}) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            assert not answer.get("Error"), answer["Error"]
            return answer

        yield ask


def differences(
    laptop: Laptop, compare: Compare, tool: Tool, objects: list[JsonObject], **ignore: Any
) -> dict[str, Any]:
    """Apply objects with a tool, and return what it then says is different, by mode and object."""
    found: dict[str, Any] = {}
    laptop.kubectl("apply", *tool.apply, "-f", "-", input=listed(objects))
    for mode in tool.modes:
        for object in objects:
            answer = settled(partial(compare, mode, object, **ignore))
            if answer["Modified"]:
                changes = jsonpatch.make_patch(answer.get("Live"), answer.get("Predicted")).patch
                found[f"{mode} {object['kind']}/{object['metadata']['name']}"] = changes
    return found


def settled(compare: Callable[[], JsonObject]) -> JsonObject:
    """Return an answer; a difference only of a live object that no other writer changes meanwhile."""
    answer = compare()
    for _ in range(10):
        again = compare() if answer["Modified"] else answer
        if version_of(again) == version_of(answer):
            return again
        answer = again
    return answer


def version_of(answer: JsonObject) -> str | None:
    """Return the version of the live object that was compared."""
    live = answer.get("Live") or {}
    return live.get("metadata", {}).get("resourceVersion")


def listed(objects: list[JsonObject]) -> JsonObject:
    """Return a List, which kubectl applies at once."""
    return {"apiVersion": "v1", "kind": "List", "items": objects}


def in_namespace(objects: list[JsonObject], namespace: str) -> list[JsonObject]:
    """Return objects with their namespace."""
    return [{**each, "metadata": {**each["metadata"], "namespace": namespace}} for each in objects]


@pytest.fixture
def release(laptop: Laptop) -> Iterator[str]:
    """A namespace for the objects of the chart, which are removed afterwards."""
    name = laptop.create_namespace()
    yield name
    laptop.plane.delete_namespace(name)
    chart = ("-l", "app.kubernetes.io/name=gatewright")
    laptop.kubectl("delete", "clusterroles,clusterrolebindings,priorityclasses", *chart)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_chart(laptop: Laptop, release: str, compare: Compare, helm: Path, tool: Tool) -> None:
    """With each of its example values, while the leader fills in webhooks and conversion."""
    # Without leader election first: a server-side apply cannot change the update strategy to Recreate.
    modes = sorted(MODES, key=lambda mode: mode is None or not mode.name.startswith("no-leader"))
    variants: dict[tuple[str, str], list[JsonObject]] = {}
    for mode in modes:
        values = [f"--values={mode}"] if mode else []
        command = [helm, "template", "gatewright", CHART, "--no-hooks", *values]
        command.append(f"--namespace={release}")
        rendered = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
        for document in parse_documents(rendered, "helm template"):
            object = document.value
            known = variants.setdefault((object["kind"], object["metadata"]["name"]), [])
            if not object["apiVersion"].startswith(NOT_SERVED) and object not in known:
                known.append(object)
    assert len(variants) > 50
    for turn in range(len(modes)):
        objects = [known[turn] for known in variants.values() if turn < len(known)]
        if objects:
            assert differences(laptop, compare, tool, objects) == {}


NOT_IN_SAMPLES = """
- apiVersion: database.example.com/v1
  kind: PostgreSQL
  metadata: {name: tuned}
  spec:
    version: "17"
    storage: 1Gi
    replicas: 3
    synchronous: Required
    parameters: {work_mem: 16MB, max_connections: 200}
- apiVersion: database.example.com/v1
  kind: PostgreSQL
  metadata: {name: restored}
  spec: {version: "17", storage: 1Gi, restoreFrom: {backup: missing, at: "2026-11-01T00:00:00Z"}}
"""


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_the_samples_of_every_kind(
    laptop: Laptop, namespace: str, compare: Compare, tool: Tool
) -> None:
    """Each sample, once the controller made its children, and fields that no sample has."""
    samples = [
        document
        for file in sorted((CONFIG / "samples").glob("*.yaml"))
        for document in yaml.safe_load_all(file.read_text())
    ]
    samples = in_namespace(samples, namespace)
    others = in_namespace(yaml.safe_load(NOT_IN_SAMPLES), namespace)
    laptop.kubectl("apply", *tool.apply, "-f", "-", input=listed(samples))
    ready = [
        f"{sample['kind']}/{sample['metadata']['name']}"
        for sample in samples
        if sample["kind"] != "Secret"
    ]
    laptop.kubectl("wait", "-n", namespace, "--for=condition=Ready", "--timeout=60s", *ready)
    assert differences(laptop, compare, tool, [*samples, *others]) == {}


POLICIES = """
- kind: AdmissionPolicy
  spec: {policy: replica-limits}
- kind: AdmissionPolicy
  spec: {policy: replica-limits, params: {}, match: {}}
- kind: AdmissionPolicy
  spec: {policy: replica-limits, match: {any: [], exclude: {}}}
- kind: AdmissionPolicy
  spec:
    policy: replica-limits
    match:
      any:
        - objectSelector: {}
        - kinds: [Deployment]
          operations: [CREATE]
          names: ["shop*"]
          objectSelector: {matchLabels: {team: shop}}
        - objectSelector: {matchExpressions: [{key: team, operator: Exists}]}
        - podSelector: {matchExpressions: [{key: team, operator: In, values: [shop]}]}
      exclude: {groups: [ops]}
- kind: AdmissionPolicy
  spec:
    validations: [{expression: object.spec.replicas < 5}]
    match: {any: [{kinds: [Deployment]}]}
- kind: AdmissionPolicy
  spec:
    variables: [{name: replicas, expression: object.spec.replicas}]
    matchConditions: [{name: named, expression: "object.metadata.name != 'x'"}]
    validations: [{expression: variables.replicas < 5, message: at most four, path: spec.replicas}]
    match: {any: [{kinds: [Deployment]}]}
    validationActions: [Warn]
- kind: ClusterAdmissionPolicy
  spec:
    mutations:
      - patchType: ApplyConfiguration
        applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'team': 'shop'}}}"}
    match: {any: [{kinds: [ConfigMap], operations: [CREATE], names: [of-nothing]}]}
- kind: ClusterAdmissionPolicy
  spec:
    policy: replica-limits
    match:
      any:
        - namespaceSelector: {}
          names: [of-nothing]
        - namespaceSelector: {matchExpressions: [{key: of, operator: NotIn, values: [nothing]}]}
          names: [of-nothing]
- kind: ClusterAdmissionPolicy
  spec:
    policy: replica-limits
    match: {any: [{names: [of-nothing]}]}
    cases:
      - name: another Deployment is not judged
        object: {kind: Deployment, spec: {replicas: 99}}
        expect: not-matched
- kind: PolicyException
  spec:
    reason: a sale
    expires: "2099-01-01T00:00:00Z"
    exceptions:
      - {policy: policy-0}
      - {policy: policy-1, kinds: [Deployment], names: [shop], params: {maximum: 20}}
"""


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_policies_and_exceptions(
    laptop: Laptop, namespace: str, compare: Compare, tool: Tool
) -> None:
    """Presets, objects of few fields, which get every default, and nested lists."""
    objects = yaml.safe_load(POLICIES)
    for preset in sorted((CONFIG / "policies").glob("*.yaml")):
        for policy in yaml.safe_load_all(preset.read_text()):
            for clause in policy["spec"].setdefault("match", {}).setdefault("any", [{}]):
                clause["names"] = ["of-nothing"]  # other tests share the cluster
            objects.append({"kind": policy["kind"], "spec": policy["spec"]})
    with_names = [
        named(each, f"{namespace}-{number}", namespace) for number, each in enumerate(objects)
    ]
    with removed(laptop, with_names):
        assert differences(laptop, compare, tool, with_names) == {}


def named(object: JsonObject, name: str, namespace: str) -> JsonObject:
    """Return a policy object with its name, and with its namespace if it has one."""
    place = {} if object["kind"].startswith("Cluster") else {"namespace": namespace}
    metadata = {"name": name, **place}
    return {"apiVersion": "gatewright.io/v1alpha1", "metadata": metadata, **object}


@contextmanager
def removed(laptop: Laptop, objects: list[JsonObject]) -> Iterator[None]:
    """Delete objects at the end."""
    try:
        yield
    finally:
        laptop.kubectl("delete", "--ignore-not-found", "-f", "-", input=listed(objects))


MUTATIONS = """
- spec: {policy: security-defaults}
- spec: {policy: resource-defaults, params: {limits: {memory: 1Gi}, requests: {cpu: 100m}}}
- spec: {policy: safe-to-evict}
- spec:
    mutations:
      - patchType: JSONPatch
        jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'team': 'shop'}}]"}
    match: {any: [{kinds: [Deployment, CronJob], operations: [CREATE]}]}
"""
REWRITE = """
- spec: {policy: registry-rewrite, params: {mirrors: {docker.io: mirror.company.com/hub}}}
"""
AT_CREATION = """
- spec:
    mutations:
      - patchType: JSONPatch
        jsonPatch: {expression: "[JSONPatch{op: 'replace', path: '/metadata/labels/tier', value: 'web'}]"}
    match: {any: [{kinds: [ConfigMap], operations: [CREATE]}]}
"""


@pytest.fixture
def in_force(laptop: Laptop, namespace: str) -> Iterator[Callable[[str], None]]:
    """Put mutations in force in the test's namespace."""
    with ExitStack() as stack:

        def put(mutations: str) -> None:
            specs = [each["spec"] for each in yaml.safe_load(mutations)]
            objects = []
            for number, spec in enumerate(specs):
                for clause in spec.setdefault("match", {}).setdefault("any", [{}]):
                    clause["namespaces"] = [namespace]
                policy = {"kind": "ClusterAdmissionPolicy", "spec": spec}
                objects.append(named(policy, f"{namespace}-{number}", namespace))
            stack.enter_context(removed(laptop, objects))
            laptop.kubectl("apply", "-f", "-", input=listed(objects))
            for policy in objects:
                name = policy["metadata"]["name"]
                laptop.wait(f"clusteradmissionpolicy/{name}", "condition=Ready", namespace)

        yield put


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_workloads_that_mutations_complete(
    laptop: Laptop,
    namespace: str,
    compare: Compare,
    in_force: Callable[[str], None],
    tool: Tool,
) -> None:
    """Fields that a mutation adds are no difference."""
    in_force(MUTATIONS)
    pod = manifests.pod(image="nginx:1.29", resources={})
    pod["spec"]["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    workloads = in_namespace(
        [
            manifests.deployment(image="nginx:1.29", resources={}),
            manifests.cron_job(image="nginx:1.29"),
            pod,
            manifests.webapp(image="nginx:1.29"),
        ],
        namespace,
    )
    assert differences(laptop, compare, tool, workloads) == {}
    changed = laptop.get("deployment/shop", namespace)
    assert changed["metadata"]["labels"]["team"] == "shop"
    resources = changed["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources["limits"] == {"memory": "1Gi"}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_images_that_mutations_rewrite(
    laptop: Laptop,
    namespace: str,
    compare: Compare,
    in_force: Callable[[str], None],
    tool: Tool,
) -> None:
    """What a dry run tells is no difference, and with the page's rule nothing is; a new tag in Git is one."""
    in_force(REWRITE)
    workloads = in_namespace([manifests.deployment(image="nginx:1.29")], namespace)
    assert differences(laptop, compare, tool, workloads).keys() <= {
        "three-way Deployment/shop",
        "structured-merge Deployment/shop",
    }
    assert differences(laptop, compare, tool, workloads, **documented("Deployment")) == {}
    newer = in_namespace([manifests.deployment(image="nginx:1.30")], namespace)
    for mode in tool.modes:
        assert compare(mode, newer[0])["Modified"], mode


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_fields_that_mutations_replace_at_creation(
    laptop: Laptop,
    namespace: str,
    compare: Compare,
    in_force: Callable[[str], None],
    tool: Tool,
) -> None:
    """A field that Git has and a mutation replaces only at creation needs the page's rule."""
    in_force(AT_CREATION)
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "shop", "labels": {"tier": "unknown", "team": "shop"}},
    }
    objects = in_namespace([config], namespace)
    laptop.kubectl("apply", *tool.apply, "-f", "-", input=listed(objects))
    for mode in tool.modes:
        assert compare(mode, objects[0])["Modified"], mode
        assert not compare(mode, objects[0], **documented("ConfigMap"))["Modified"], mode


def documented(kind: str) -> dict[str, Any]:
    """Return the rules of docs/gitops.md that ignore fields of a kind, for both tools."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    specs = {each["kind"]: each["spec"] for each in map(yaml.safe_load, blocks) if "kind" in each}
    (paths,) = [
        ignored["jqPathExpressions"]
        for ignored in specs["Application"]["ignoreDifferences"]
        if ignored["kind"] == kind
    ]
    flux = specs["HelmRelease"]["driftDetection"]["ignore"]
    rules = [
        {"Paths": ignored["paths"], "Selector": {"Kind": ignored["target"]["kind"]}}
        for ignored in flux
    ]
    return {"JQ": paths, "Ignore": rules}
