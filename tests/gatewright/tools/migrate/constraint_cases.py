"""Constraints of Gatekeeper's library with random objects, judged by Gatekeeper and by Gatewright."""

import json
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from config.documents import Document
from gatewright.tools.migrate import migrate
from gatewright.tools.migrate.constraints import CONSTRAINTS
from gatewright.tools.migrate.gatekeeper import CEL_ENGINE
from tests.controlplane.gobuild import build
from tests.gatewright.tools.migrate.random_constraints import Object, RandomObjects
from webhook.engine import BoundPolicy, Engine
from webhook.harness.reviews import Admission, review
from webhook.known import Known
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.review import read

RECORDED = Path(__file__).parent / "gatekeeper_recorded.yaml"
MODULE = Path("benchmarks/migrations/gator")
GROUPS = {"Service": "", "Pod": "", "Deployment": "apps", "Ingress": "networking.k8s.io"}
OBJECTS = 12  # for each constraint
JUDGED = {
    "K8sBlockLoadBalancer": "Service",
    "K8sBlockNodePort": "Service",
    "K8sExternalIPs": "Service",
    "K8sBlockWildcardIngress": "Ingress",
    "K8sHttpsOnly": "Ingress",
    "K8sReplicaLimits": "Deployment",
}


class Case(NamedTuple):
    """A constraint with its template, and objects to judge, each with an operation."""

    title: str
    template: Object
    constraint: Object
    objects: list[tuple[Object, str]]

    @property
    def question(self) -> Object:
        """The question for Gatekeeper."""
        reviews = [_review(*each) for each in self.objects]
        return {"template": self.template, "constraint": self.constraint, "reviews": reviews}

    def verdicts(self) -> list[bool] | str:
        """Return whether the conversion denies each object, or why there is no conversion."""
        found = migrate(map(Document.of_object, (self.template, self.constraint)))
        if not found.converted:
            return [*found.unconverted, *found.skipped][0].reason
        bound = [bind(_denying(each.object), catalogue()) for each in found.converted]
        engine = Engine(each for each in bound if isinstance(each, BoundPolicy))
        return [_denies(engine, *each) for each in self.objects]


def cases_of(checkout: Path, rounds: int, only: str = "") -> Iterator[Case]:
    """Yield random cases of each version of each template."""
    for path in sorted(checkout.glob("artifacthub/library/*/*/*/template.yaml")):
        template = yaml.safe_load(path.read_text())
        kind = template["spec"]["crd"]["spec"]["names"]["kind"]
        has_cel = CEL_ENGINE in str(template["spec"]["targets"])
        if only not in ("", kind) or not (has_cel or kind in CONSTRAINTS):
            continue
        samples = [
            constraint
            for sample in path.parent.glob("samples/*/constraint.yaml")
            for constraint in yaml.safe_load_all(sample.read_text())
        ]
        for seed in range(rounds):
            title = f"{kind} {path.parent.name}"
            yield Case(title, template, *_drawn(kind, RandomObjects(seed), samples))


def case_of(template: Object, seed: int) -> Case:
    """Return a random constraint of a template that is known, and objects."""
    kind = template["spec"]["crd"]["spec"]["names"]["kind"]
    return Case(kind, template, *_drawn(kind, RandomObjects(seed), []))


def _drawn(
    kind: str, drawn: RandomObjects, samples: list[Object]
) -> tuple[Object, list[tuple[Object, str]]]:
    judged = JUDGED.get(kind, "Pod")
    parameters = drawn.parameters(kind)
    if kind not in CONSTRAINTS and samples:
        sample = drawn.random.choice(samples)["spec"].get("parameters") or {}
        parameters = {k: e for k, e in sample.items() if drawn.random.random() < 4 / 5}
    kinds = {"apiGroups": [GROUPS[judged]], "kinds": [judged]}
    spec: Object = {"match": {"kinds": [kinds]} | drawn.match()}
    if parameters or drawn.flag():
        spec["parameters"] = parameters
    constraint = {
        "apiVersion": "constraints.gatekeeper.sh/v1beta1",
        "kind": kind,
        "metadata": {"name": "c"},
        "spec": spec,
    }
    operations = ("CREATE", "CREATE", "UPDATE")
    return constraint, [
        (drawn.object(judged), drawn.random.choice(operations)) for _ in range(OBJECTS)
    ]


def compare(cases: Iterable[Case]) -> Iterator[tuple[Case, tuple[list[bool] | str, Any]]]:
    """Yield each case with our verdicts and Gatekeeper's messages, or why there are none."""
    program = build(MODULE, ".", "gator", takes="5 minutes")
    with subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for case in cases:
            process.stdin.write(json.dumps(case.question) + "\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline())
            yield case, (case.verdicts(), answer.get("error") or answer["messages"])
        process.stdin.close()


def _review(object: Object, operation: str) -> Object:
    group, _, version = object["apiVersion"].rpartition("/")
    kind = {"group": group, "version": version, "kind": object["kind"]}
    namespace = object["metadata"].get("namespace", "")
    request = {
        "uid": "1",
        "kind": kind,
        "operation": operation,
        "name": object["metadata"]["name"],
        "namespace": namespace,
        "object": object,
    }
    if operation == "UPDATE":
        request["oldObject"] = object
    return {"request": request, "namespace": {"metadata": {"name": namespace}}}


def _denying(object: Object) -> Object:
    # Gatekeeper denies an update that worsens nothing, too.
    return object | {"spec": object["spec"] | {"allowExistingViolations": False}}


def _denies(engine: Engine, object: Object, operation: str) -> bool:
    namespace = object["metadata"]["namespace"]
    old = object if operation == "UPDATE" else None
    known = Known()
    known.set_labels(namespace, {})
    request = read(review(Admission(object, old, operation, namespace)))
    return not engine.validate(request.with_looked_up(known.about(namespace))).allowed
