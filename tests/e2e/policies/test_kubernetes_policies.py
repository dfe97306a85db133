"""Kubernetes' own admission policies in a cluster: the audit, `check` and `impact` judge by them."""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controller.audit.reported import until_reported
from tests.controlplane.plane import ControlPlane
from tests.gatewright.started import Gatewright, call, registered
from tests.waiting import until

pytestmark = [pytest.mark.controlplane, pytest.mark.long]

ROOT = Path(__file__).parents[3]
WITHIN = 60.0  # seconds
POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  paramKind: {apiVersion: v1, kind: ConfigMap}
  validations:
    - expression: object.spec.replicas <= int(params.data.maximum)
      messageExpression: >-
        'at most ' + params.data.maximum + ' replicas in ' + namespaceObject.metadata.annotations.owner
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: replicas}
spec:
  policyName: replicas
  paramRef: {name: limits, parameterNotFoundAction: Deny}
  validationActions: [Audit]
  matchResources: {namespaceSelector: {matchLabels: {tier: web}}}
"""
LIMITS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: limits, namespace: shop}\ndata: {maximum: '2'}\n"
GIZMOS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.example.test}
spec:
  group: example.test
  scope: Namespaced
  names: {plural: gizmos, singular: gizmo, kind: Gizmo}
  versions:
    - name: v1beta3
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
NAMED = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: gizmo-names}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [example.test], apiVersions: ['*'], operations: ['*'], resources: ['*']}
  validations: [{expression: "request.kind.kind == 'Gizmo' && object.metadata.name != 'bad'", message: a bad name}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: gizmo-names}
spec: {policyName: gizmo-names, validationActions: [Warn]}
"""
ANNOTATED = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: annotated}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
  auditAnnotations:
    - {key: made-by, valueExpression: "request.userInfo.username + ' with ' + request.options.fieldManager"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: annotated}
spec: {policyName: annotated, validationActions: [Deny]}
"""

MUTATING = """\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: defaults}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration: {expression: "Object{spec: Object.spec{paused: true}}"}
    - patchType: JSONPatch
      jsonPatch:
        expression: "[JSONPatch{op: 'replace', path: '/spec/replicas', value: object.spec.paused ? 2 : 9}]"
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: defaults}
spec: {policyName: defaults}
"""


@pytest.fixture
def plane(empty_plane: ControlPlane) -> ControlPlane:
    """A cluster with its own ValidatingAdmissionPolicy, and of Gatewright only the CRDs of reports."""
    empty_plane.kubectl(
        "apply", "--server-side", "-f", str(ROOT / "config/crd/reports/openreports.io.yaml")
    )
    empty_plane.create_namespace("shop")
    empty_plane.kubectl("label", "namespace", "shop", "tier=web")
    empty_plane.kubectl("annotate", "namespace", "shop", "owner=core")
    empty_plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=90s")
    for name, replicas in (("many", 3), ("few", 1)):
        empty_plane.kubectl(
            "create", "deployment", name, "-n", "shop", "--image=app:1", f"--replicas={replicas}"
        )
    empty_plane.kubectl("apply", "-f", "-", input=LIMITS)
    empty_plane.kubectl("apply", "-f", "-", input=POLICY)
    return empty_plane


@pytest.fixture
def controller(plane: ControlPlane, tmp_path: Path) -> Iterator[Gatewright]:
    """A controller that audits at the start, and else only when policies change."""
    options = (
        "--kinds",
        "none",
        "--audit",
        "--audit-interval",
        "1h",
        "--audit-qps",
        "200",
        "--namespace",
        "default",
    )
    with Gatewright(plane, tmp_path, "controller", *options, "--no-leader-elect") as running:
        yield running


def test_the_audit_follows_the_policies_of_a_cluster(
    plane: ControlPlane, controller: Gatewright
) -> None:
    """It reports existing violations, again after a change of a policy, and none after the binding is deleted."""
    controller.start()
    until_reported(plane, {"many": ["at most 2 replicas in core"]})
    changed = POLICY.replace("'at most '", "'no more than '")
    plane.kubectl("apply", "-f", "-", input=changed)
    until_reported(plane, {"many": ["no more than 2 replicas in core"]})
    plane.kubectl("delete", "validatingadmissionpolicybinding", "replicas")
    until_reported(plane, {})


def check(
    capsys: pytest.CaptureFixture[str], plane: ControlPlane, *arguments: str
) -> tuple[int, dict[str, Any]]:
    """Return exit code and report of `check` on the cluster."""
    ended = call(capsys, "check", "--kubeconfig", str(plane.kubeconfig), "-o", "json", *arguments)
    return ended.returncode, json.loads(ended.stdout)


def violations(report: dict[str, Any]) -> dict[str, list[tuple[str, str, str]]]:
    """The violations of each object: policy, action and message."""
    return {
        f"{result['kind']}/{result['name']}": [
            (v["policy"], v["action"], v["message"]) for v in result["violations"]
        ]
        for result in report["results"]
        if result["violations"]
    }


def test_check_judges_by_the_policies_of_a_cluster(
    plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Existing objects and manifests are judged, with parameters and unknown kinds of the cluster."""
    plane.kubectl("apply", "-f", "-", input=GIZMOS)
    plane.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=90s")
    gizmo = (
        "apiVersion: example.test/v1beta3\nkind: Gizmo\nmetadata: {name: bad, namespace: shop}\n"
    )
    plane.kubectl("apply", "-f", "-", input=gizmo)
    plane.kubectl("apply", "-f", "-", input=NAMED)
    code, report = check(capsys, plane)
    many = ("replicas", "Audit", "at most 2 replicas in core")
    named = ("gizmo-names", "Warn", "a bad name")
    assert (code, report["problems"], violations(report)) == (
        0,
        [],
        {"Deployment/many": [many], "Gizmo/bad": [named]},
    )

    manifest = plane.kubectl("get", "deployment", "few", "-n", "shop", "-o", "json").stdout
    deployment = json.loads(manifest)
    deployment["spec"]["replicas"] = 7
    (tmp_path / "few.yaml").write_text(yaml.safe_dump(deployment))
    code, report = check(capsys, plane, str(tmp_path / "few.yaml"))
    assert (code, violations(report)) == (0, {"Deployment/few": [many]})

    plane.kubectl("delete", "configmap", "limits", "-n", "shop")
    code, report = check(capsys, plane)
    missing = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    assert (code, violations(report)["Deployment/few"]) == (3, [("replicas", "Error", missing)])
    ended = call(capsys, "check", "--kubeconfig", str(plane.kubeconfig), "--no-kubernetes-policies")
    assert (ended.returncode, "no policies in the cluster" in ended.stderr) == (3, True)


def test_impact_compares_with_the_policies_of_a_cluster(
    plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new version of a policy in a file is compared with the version in force."""
    ours = "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: tags}\nspec: {policy: "
    (tmp_path / "old.yaml").write_text(f"{ours}image-tags, validationActions: [Warn]}}\n")
    (tmp_path / "new").mkdir()
    (tmp_path / "new/ours.yaml").write_text((tmp_path / "old.yaml").read_text())
    (tmp_path / "new/replicas.yaml").write_text(
        POLICY.replace("[Audit]", "[Deny]") + f"---\n{LIMITS}"
    )
    files = (str(tmp_path / "old.yaml"), str(tmp_path / "new"))
    ended = call(capsys, "impact", "--kubeconfig", str(plane.kubeconfig), "-o", "json", *files)
    report = json.loads(ended.stdout)
    found = [
        (result["name"], result["verdict"])
        for result in report["results"]
        if result["verdict"] != "unchanged"
    ]
    assert (ended.returncode, report["problems"], found) == (1, [], [("many", "newly denied")])


def test_check_changes_a_manifest_as_the_api_server_does(
    plane: ControlPlane, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second mutation of a MutatingAdmissionPolicy in the cluster sees the result of the first."""
    plane.kubectl("apply", "-f", "-", input=MUTATING)
    manifest = plane.kubectl("get", "deployment", "few", "-n", "shop", "-o", "json").stdout
    deployment = json.loads(manifest)
    deployment["metadata"] = {"name": "new", "namespace": "shop"}
    (tmp_path / "new.json").write_text(json.dumps(deployment))
    create = ("create", "--dry-run=server", "-o", "json", "-f", str(tmp_path / "new.json"))

    def changed() -> Any:
        spec = json.loads(plane.kubectl(*create).stdout)["spec"]
        return None if spec["replicas"] == 1 else spec

    created = until(changed, within=WITHIN)
    _, report = check(capsys, plane, str(tmp_path / "new.json"))
    (result,) = report["results"]
    assert (created["paused"], created["replicas"]) == (True, 2)
    assert sorted(result["patch"], key=lambda each: each["path"]) == [
        {"op": "add", "path": "/spec/paused", "value": True},
        {"op": "replace", "path": "/spec/replicas", "value": 2},
    ]


def test_audit_annotations_reach_the_audit_log(
    own_control_plane: Callable[..., ControlPlane], tmp_path: Path
) -> None:
    """They are recorded for a policy in the webhook's files, with the request fields that the API server sent."""
    plane = own_control_plane(parts=("etcd", "kube-apiserver"))
    plane.create_namespace("shop")
    (tmp_path / "annotated.yaml").write_text(ANNOTATED)
    with Gatewright(
        plane, tmp_path, "run", "--kinds", "none", "--policies", str(tmp_path / "annotated.yaml")
    ) as running:
        running.start()
        deadline = time.monotonic() + WITHIN
        until(lambda: "validate" in registered(plane), within=WITHIN)
        wanted = {"validate.gatewright.io/annotated.made-by": "admin with kubectl-create"}
        for attempt in itertools.count():
            mark = plane.audit_mark()
            plane.kubectl("create", "deployment", f"made-{attempt}", "-n", "shop", "--image=app:1")
            (event,) = plane.audit_events(
                mark, verb="create", resource="deployments", namespace="shop"
            )
            found = {
                key: value for key, value in event["annotations"].items() if "gatewright.io/" in key
            }
            if found == wanted:
                break
            assert time.monotonic() < deadline, found
