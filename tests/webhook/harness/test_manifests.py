"""Manifests are judged as if somebody applied them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from config.documents import DocumentError, parse_documents, read_documents
from webhook.engine import Engine
from webhook.engine.policy_set import load
from webhook.harness.manifests import Finding, judge
from webhook.policies import catalogue

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PRODUCTION = Path(__file__).parents[3] / "config" / "policies" / "production.yaml"


@pytest.fixture(scope="module")
def engine():
    """The production set."""
    return Engine(load(read_documents(PRODUCTION), catalogue()))


def judged(engine, text, namespace="default"):
    """Judge the documents of a text."""
    return list(judge(engine, parse_documents(text.encode(), "x.yaml"), namespace, NOW))


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: %s}
spec:
  replicas: 11
  template:
    spec:
      containers:
        - name: app
          image: nginx:1.21
"""
UNKNOWN = "could not be decided, since namespace labels could not be looked up. Add Namespace shop to the manifests."
FINDINGS = (
    Finding(
        "image-registries",
        "spec.template.spec.containers[name=app].image",
        'spec.template.spec.containers[name=app].image: "nginx:1.21" comes from docker.io; images must come from '
        "approved registry registry.company.com. Push it there, or ask for an exception.",
    ),
    Finding(
        "replica-limits",
        "spec.replicas",
        "spec.replicas: 11; production workloads cannot exceed 10 replicas. Set it to 10 or less.",
    ),
    Finding(
        "resource-limits",
        "spec.template.spec.containers[name=app].resources.limits",
        "spec.template.spec.containers[name=app].resources.limits: cpu and memory missing; resource limits required "
        "in production. Set both.",
    ),
)


def test_a_denial_has_all_findings(engine):
    """Every violation, with the policy and the field."""
    (found,) = judged(engine, DEPLOYMENT % "production")
    assert (found.title, found.namespace, found.verdict) == ("Deployment production/shop", "production", "denied")
    assert (found.findings, found.operations) == (FINDINGS, ())


def test_what_names_no_namespace_goes_where_it_is_said_to(engine):
    """As with kubectl's --namespace, which does not move what names its own."""
    text = DEPLOYMENT.replace(", namespace: %s", "")
    assert judged(engine, text, "production")[0].verdict == "denied"
    assert judged(engine, DEPLOYMENT % "production", "default")[0].verdict == "denied"


def test_labels_of_namespaces_that_are_there_are_known(engine):
    """A Namespace among the manifests, before or after, says whether a selector holds."""
    production = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {environment: production}}\n"
    staging = "apiVersion: v1\nkind: Namespace\nmetadata: {name: lab}\n"
    text = "---\n".join([DEPLOYMENT % "shop", production, DEPLOYMENT % "lab", staging])
    assert [(each.title, each.verdict) for each in judged(engine, text)] == [
        ("Deployment shop/shop", "denied"),
        ("Namespace shop", "unmatched"),
        ("Deployment lab/shop", "unmatched"),
        ("Namespace lab", "unmatched"),
    ]


def test_labels_that_are_not_known_are_an_error(engine):
    """It could be production: nobody can say, and nobody says it is fine."""
    (found,) = judged(engine, DEPLOYMENT % "shop")
    assert (found.verdict, found.findings) == (
        "error",
        tuple(Finding(policy, "", UNKNOWN) for policy in ("image-registries", "replica-limits", "resource-limits")),
    )


def test_what_no_policy_looks_at_is_unmatched(engine):
    """It is not called allowed, since nobody judged it."""
    (found,) = judged(engine, "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}\ndata: {a: b}\n")
    assert (found.title, found.verdict, found.findings) == ("ConfigMap default/a-*", "unmatched", ())


def test_a_list_is_judged_item_by_item(engine):
    """Each item has its own verdict and its own line."""
    items = "".join(
        f"- apiVersion: apps/v1\n  kind: Deployment\n  metadata: {{name: {name}, namespace: production}}\n"
        f"  spec: {{replicas: {replicas}}}\n"
        for name, replicas in (("a", 3), ("b", 30))
    )
    found = judged(engine, f"apiVersion: v1\nkind: List\nitems:\n{items}")
    assert [(each.title, each.verdict, each.document.where()) for each in found] == [
        ("Deployment production/a", "allowed", "x.yaml:4"),
        ("Deployment production/b", "denied", "x.yaml:8"),
    ]


def test_a_webapp_is_judged_with_its_defaults(engine):
    """The API server fills in the schema's defaults before a webhook sees the object: limits are there."""
    (found,) = judged(
        engine,
        "apiVersion: example.com/v1\nkind: WebApp\nmetadata: {name: shop, namespace: production}\n"
        "spec: {replicas: 3, image: registry.company.com/shop:1}\n",
    )
    assert (found.verdict, found.findings) == ("mutated", ())
    operations = {operation["path"]: (operation["op"], operation["value"]) for operation in found.operations}
    assert operations == {
        "/metadata/labels": ("add", {"managed-by": "webapp-operator", "version": "v1"}),
        "/spec/securityContext": (
            "add",
            {"runAsNonRoot": True, "runAsUser": 1000, "allowPrivilegeEscalation": False},
        ),
    }


def test_warnings_are_findings():
    """A policy that only warns lets in, and is heard."""
    text = (
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: few}\n"
        "spec: {policy: replica-limits, params: {maximum: 2}, validationActions: [Warn]}\n"
    )
    engine = Engine(load(parse_documents(text.encode(), "p.yaml"), catalogue()))
    (found,) = judged(engine, DEPLOYMENT % "shop")
    message = "spec.replicas: 11; production workloads cannot exceed 2 replicas. Set it to 2 or less."
    assert (found.verdict, found.findings) == ("warned", (Finding("few", "spec.replicas", message),))


def test_budgets_and_workloads_beside_each_other_are_compared():
    """Of one namespace, each is held against the others among the documents."""
    text = (
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: evictions}\n"
        "spec: {policy: disruption-budgets, params: {workloads: true}}\n"
    )
    engine = Engine(load(parse_documents(text.encode(), "p.yaml"), catalogue()))
    workload = (
        "kind: StatefulSet\napiVersion: apps/v1\nmetadata: {name: db}\n"
        "spec: {replicas: 2, template: {metadata: {labels: {app: db}}}}"
    )
    budget = (
        "kind: PodDisruptionBudget\napiVersion: policy/v1\nmetadata: {name: db, namespace: %s}\n"
        "spec: {minAvailable: 2, selector: {matchLabels: {app: db}}}"
    )
    found = judged(engine, "\n---\n".join((workload, budget % "default", budget % "elsewhere")))
    assert [(each.title, each.verdict) for each in found] == [
        ("StatefulSet default/db", "denied"),
        ("PodDisruptionBudget default/db", "denied"),
        ("PodDisruptionBudget elsewhere/db", "allowed"),
    ]


def test_what_could_not_be_decided_and_is_ignored_is_a_warning():
    """A policy that may fail says that it did, about no field."""
    text = (
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: few}\n"
        "spec: {policy: replica-limits, failurePolicy: Ignore, match: {any: [{namespaceSelector: {}}]}}\n"
    )
    engine = Engine(load(parse_documents(text.encode(), "p.yaml"), catalogue()))
    (found,) = judged(engine, DEPLOYMENT % "shop")
    assert (found.verdict, found.findings) == ("warned", (Finding("few", "", UNKNOWN),))


def test_no_warning_is_left_out():
    """The API server's budget is for its clients; here everything is told, however much it is."""
    text = (
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: limits}\n"
        "spec: {policy: resource-limits, validationActions: [Warn]}\n"
    )
    engine = Engine(load(parse_documents(text.encode(), "p.yaml"), catalogue()))
    containers = ", ".join(f"{{name: c{number}}}" for number in range(60))
    pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: it}}\nspec: {{containers: [{containers}]}}\n"
    (found,) = judged(engine, pod)
    assert [finding.path for finding in found.findings] == [
        f"spec.containers[name=c{number}].resources.limits" for number in range(60)
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a\n", "x.yaml:1: apiVersion: missing; every object of the API has one"),
        ("kind: Pod\nmetadata: {name: a}\n", "x.yaml:1: apiVersion: missing; every object of the API has one"),
        ("apiVersion: v1\nmetadata: {name: a}\n", "x.yaml:1: kind: missing; every object of the API has one"),
        ("apiVersion: v1\nkind: ''\nmetadata: {}\n", "x.yaml:2: kind: missing; every object of the API has one"),
        ("apiVersion: 1\nkind: Pod\nmetadata: {}\n", "x.yaml:1: apiVersion: missing; every object of the API has one"),
        ("apiVersion: v1\nkind: Pod\n", "x.yaml:1: metadata: missing, or not an object"),
        ("apiVersion: v1\nkind: Pod\nmetadata:\n- a\n", "x.yaml:3: metadata: missing, or not an object"),
        ("apiVersion: v1\nkind: Pod\nmetadata:\n  name: 5\n", "x.yaml:4: metadata.name: must be a string"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  namespace: [b]\n",
            "x.yaml:5: metadata.namespace: must be a string",
        ),
        (
            "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  labels: [b]\n",
            "x.yaml:5: metadata.labels: must be an object",
        ),
        (
            "apiVersion: v1/\nkind: Pod\nmetadata: {name: a}\n",
            "x.yaml:1: request.kind: must name group, version, kind",
        ),
        (
            f"{DEPLOYMENT % 'production'}---\nkind: Pod\n",
            "x.yaml:12: apiVersion: missing; every object of the API has one",
        ),
    ],
)
def test_what_is_no_object_is_told(engine, text, told):
    """File, line and field; nothing is judged when one document cannot be."""
    with pytest.raises(DocumentError) as error:
        judged(engine, text)
    assert str(error.value) == told


def test_a_namespace_is_in_itself():
    """A policy for some namespaces judges the Namespaces too, by name and by label, as the webhook would."""
    text = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: team}
spec:
  policy: required-labels
  params: {labels: {team: "*"}}
  match: {any: [{namespaces: [shop]}, {namespaceSelector: {matchLabels: {environment: production}}}]}
"""
    labels = Engine(load(parse_documents(text.encode(), "policies.yaml"), catalogue()))
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {environment: %s}}\n"
    text = "---\n".join(namespace % each for each in (("shop", "lab"), ("toys", "production"), ("toys", "lab")))
    assert [(each.title, each.verdict) for each in judged(labels, text)] == [
        ("Namespace shop", "denied"),
        ("Namespace toys", "denied"),
        ("Namespace toys", "unmatched"),
    ]
