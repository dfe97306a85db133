"""Manifests are judged as if they were applied."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from config.documents import Document, DocumentError, parse_documents, read_documents
from gatewright.checks.loaded_policies import PoliciesInForce
from tests.webhook.asking import in_force
from webhook.engine import Engine, Policy
from webhook.engine.policy import RuleError
from webhook.harness.objects import is_object
from webhook.harness.reviews import Admission, group_version_kind, review
from webhook.known import Known
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import load

NOW = datetime(2026, 11, 21, tzinfo=UTC)
PRODUCTION = Path(__file__).parents[3] / "config" / "policies" / "production.yaml"


@pytest.fixture(scope="module")
def engine():
    """The production set."""
    return Engine(load(read_documents(PRODUCTION), catalogue()))


def judged(engine, text, namespace="default"):
    """Judge the documents of a text."""
    documents = list(parse_documents(text.encode(), "x.yaml"))
    return list(PoliciesInForce((), engine, {}, NOW).judge_documents(documents, namespace))


def said(found):
    """Return policy, field and message of each violation."""
    return tuple((each.policy, each.path, each.message) for each in found.findings)


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
UNKNOWN = (
    "cannot be decided: the labels of namespace shop are unknown. Add Namespace shop to the manifests, or use "
    "--namespace-labels or --kubeconfig."
)
FINDINGS = (
    (
        "image-registries",
        "spec.template.spec.containers[name=app].image",
        'spec.template.spec.containers[name=app].image: "nginx:1.21" comes from docker.io; images must come from '
        "approved registry registry.company.com. Push it there, or ask for an exception.",
    ),
    (
        "replica-limits",
        "spec.replicas",
        "spec.replicas: 11; production workloads cannot exceed 10 replicas. Set it to 10 or less.",
    ),
    (
        "resource-limits",
        "spec.template.spec.containers[name=app].resources.limits",
        "spec.template.spec.containers[name=app].resources.limits: cpu and memory missing; resource limits required "
        "in production. Set both.",
    ),
)


def test_a_denial_has_all_violations(engine):
    """Each has its policy and field."""
    (found,) = judged(engine, DEPLOYMENT % "production")
    assert (found.title, found.namespace, found.verdict) == (
        "Deployment production/shop",
        "production",
        "denied",
    )
    assert (said(found), found.operations) == (FINDINGS, ())
    assert {each.action for each in found.findings} == {"Deny"}


def test_the_default_namespace(engine):
    """As with kubectl's --namespace, an object with a namespace keeps it."""
    text = DEPLOYMENT.replace(", namespace: %s", "")
    assert judged(engine, text, "production")[0].verdict == "denied"
    assert judged(engine, DEPLOYMENT % "production", "default")[0].verdict == "denied"


def test_labels_come_from_namespace_manifests(engine):
    """A Namespace before or after the object decides whether a selector matches."""
    production = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {environment: production}}\n"
    staging = "apiVersion: v1\nkind: Namespace\nmetadata: {name: lab}\n"
    text = "---\n".join([DEPLOYMENT % "shop", production, DEPLOYMENT % "lab", staging])
    assert [(each.title, each.verdict) for each in judged(engine, text)] == [
        ("Deployment shop/shop", "denied"),
        ("Namespace shop", "unmatched"),
        ("Deployment lab/shop", "unmatched"),
        ("Namespace lab", "unmatched"),
    ]


def test_unknown_labels_are_an_error(engine):
    """The namespace could be production, so the object is neither allowed nor denied."""
    (found,) = judged(engine, DEPLOYMENT % "shop")
    assert (found.verdict, said(found)) == (
        "error",
        tuple(
            (policy, "", UNKNOWN)
            for policy in ("image-registries", "replica-limits", "resource-limits")
        ),
    )


def test_labels_are_not_needed_without_violations(engine):
    """An object that violates no rule is allowed for any labels."""
    good = DEPLOYMENT.replace("11", "3").replace("nginx:1.21", "registry.company.com/shop:1")
    limits = "          resources: {limits: {cpu: 1, memory: 1Gi}}\n"
    (found,) = judged(engine, (good + limits) % "shop")
    assert (found.verdict, found.findings) == ("allowed", ())


def test_violations_are_reported_beside_undecided_policies(engine):
    """A malformed field denies; the rules that need labels stay undecided."""
    (found,) = judged(engine, DEPLOYMENT.replace("replicas: 11", 'replicas: "3"') % "shop")
    assert (found.verdict, [(each.policy, each.action) for each in found.findings]) == (
        "error",
        [("image-registries", "Error"), ("replica-limits", "Error"), ("resource-limits", "Error")],
    )


def test_a_selector_for_the_name_needs_no_labels():
    """The API server labels each namespace with its name."""
    policies = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: few}
spec:
  policy: replica-limits
  match: {any: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: toys}}}]}
"""
    engine = Engine(load(parse_documents(policies.encode(), "p.yaml"), catalogue()))
    assert judged(engine, DEPLOYMENT % "shop")[0].verdict == "unmatched"
    assert judged(engine, DEPLOYMENT % "toys")[0].verdict == "denied"


def test_a_mutation_needs_labels(engine):
    """Whether production's defaults apply is undecided, and so is the object."""
    (found,) = judged(
        engine,
        "apiVersion: example.com/v1\nkind: WebApp\nmetadata: {name: shop, namespace: shop}\n"
        "spec: {replicas: 3, image: registry.company.com/shop:1}\n",
    )
    assert (found.verdict, [each.policy for each in found.findings]) == (
        "error",
        ["webapp-security-defaults"],
    )


def test_defaults_already_set_need_no_labels(engine):
    """The validating policies still run."""
    text = (
        "apiVersion: example.com/v1\nkind: WebApp\nmetadata: {name: shop, namespace: shop}\nspec:\n"
        "  {replicas: 3, image: %s/shop:1, securityContext: {runAsNonRoot: true, runAsUser: 1000, "
        "allowPrivilegeEscalation: false}}\n"
    )
    (good,), (bad,) = (
        judged(engine, text % "registry.company.com"),
        judged(engine, text % "docker.io"),
    )
    assert (good.verdict, good.findings) == ("mutated", ())
    assert (bad.verdict, [each.policy for each in bad.findings]) == ("error", ["image-registries"])


def test_an_object_without_policies_is_unmatched(engine):
    """It is not called allowed, because no policy judged it."""
    (found,) = judged(
        engine, "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}\ndata: {a: b}\n"
    )
    assert (found.title, found.verdict, found.findings) == (
        "ConfigMap default/a-*",
        "unmatched",
        (),
    )


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
    """The API server applies the schema's defaults before the webhook sees the object, so limits are set."""
    (found,) = judged(
        engine,
        "apiVersion: example.com/v1\nkind: WebApp\nmetadata: {name: shop, namespace: production}\n"
        "spec: {replicas: 3, image: registry.company.com/shop:1}\n",
    )
    assert (found.verdict, found.findings) == ("mutated", ())
    operations = {
        operation["path"]: (operation["op"], operation["value"]) for operation in found.operations
    }
    assert operations == {
        "/metadata/labels": ("add", {"managed-by": "webapp-operator", "version": "v1"}),
        "/spec/securityContext": (
            "add",
            {"runAsNonRoot": True, "runAsUser": 1000, "allowPrivilegeEscalation": False},
        ),
    }


def test_warnings_are_reported():
    """A policy that only warns admits the object with a warning."""
    text = (
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: few}\n"
        "spec: {policy: replica-limits, params: {maximum: 2}, validationActions: [Warn]}\n"
    )
    engine = Engine(load(parse_documents(text.encode(), "p.yaml"), catalogue()))
    (found,) = judged(engine, DEPLOYMENT % "shop")
    message = (
        "spec.replicas: 11; production workloads cannot exceed 2 replicas. Set it to 2 or less."
    )
    assert (found.verdict, said(found), found.findings[0].action) == (
        "warned",
        (("few", "spec.replicas", message),),
        "Warn",
    )


def test_audited_violations_are_reported():
    """A policy with the action Audit denies nothing, but its violations are listed."""
    text = (
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: replica-limits}\n"
        "spec: {policy: replica-limits, validationActions: [%s]}\n"
    )
    for actions, verdict, action in (
        ("Audit", "audited", "Audit"),
        ("Warn, Audit", "warned", "Warn"),
    ):
        engine = Engine(load(parse_documents((text % actions).encode(), "p.yaml"), catalogue()))
        (found,) = judged(engine, DEPLOYMENT % "shop")
        assert (found.verdict, said(found), found.findings[0].action) == (
            verdict,
            FINDINGS[1:2],
            action,
        )


@pytest.mark.parametrize("version", ["extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"])
def test_old_versions_are_judged_by_their_kind(engine, version):
    """A Deployment is judged as one, also in a version that Kubernetes no longer serves."""
    (found,) = judged(engine, DEPLOYMENT.replace("apps/v1", version) % "production")
    assert (found.verdict, said(found)) == ("denied", FINDINGS)


@pytest.mark.parametrize(
    ("version", "kind", "error"),
    [
        (
            "apps/v1",
            "Deploymnt",
            'x.yaml:2: kind: apps/v1 has no kind "Deploymnt"; did you mean "Deployment"?',
        ),
        (
            "v1",
            "NameSpace",
            'x.yaml:2: kind: v1 has no kind "NameSpace"; did you mean "Namespace"?',
        ),
        ("v1", "PersistentVolume", None),
        ("serving.knative.dev/v1", "Services", None),
        ("apps/v1", "ControllerRevision", None),
    ],
)
def test_a_mistyped_kind_is_an_error(engine, version, kind, error):
    """It resembles a kind of a built-in group; other groups may have any kinds."""
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n"
    if error is None:
        assert judged(engine, text)[0].verdict == "unmatched"
    else:
        with pytest.raises(DocumentError) as raised:
            judged(engine, text)
        assert str(raised.value) == error


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", True),
        ("kind: Pod\n", True),
        ("apiVersion: v1\nmetadata: {name: a}\n", True),
        ("apiVersion: v2\nname: chart\nversion: 1.0.0\n", False),
        (
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: a}\n",
            False,
        ),
        ("resources: [a.yaml]\n", False),
        ("apiVersion: v1\nkind: Config\nclusters: []\n", False),
        ("apiVersion: kind.x-k8s.io/v1alpha4\nkind: Cluster\n", False),
        ("[a, b]\n", False),
    ],
)
def test_which_documents_are_objects(text, expected):
    """An incomplete object counts as an object, with an error; files of other tools do not."""
    (document,) = parse_documents(text.encode(), "x.yaml")
    assert is_object(document) is expected


def test_budgets_and_workloads_are_compared():
    """Budgets and workloads of the namespace are looked up among the documents."""
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


IGNORED = (
    "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: it}\n"
    "spec: {failurePolicy: Ignore, %s}\n"
)


def test_an_ignored_policy_error_is_a_warning():
    """The warning has no field."""

    def fails(request, params):
        raise RuleError("the rule failed")

    policy = in_force(Policy("it", validate=fails), fails_closed=False)
    (found,) = judged(Engine([policy]), DEPLOYMENT % "shop")
    assert (found.verdict, said(found)) == ("warned", (("it", "", "the rule failed"),))


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            "policy: replica-limits, match: {any: [{namespaceSelector: {matchLabels: {a: b}}}]}",
            UNKNOWN,
        ),
        (
            "policy: image-pins, params: {images: [registry.company.com]}",
            "images are not verified: only their registries know. Use --registry-access.",
        ),
    ],
)
def test_a_missing_look_up_is_an_error_whatever_the_failure_policy(policy, message):
    """It is never a pass: failurePolicy is for failures in a cluster."""
    engine = Engine(load(parse_documents((IGNORED % policy).encode(), "p.yaml"), catalogue()))
    deployment = (DEPLOYMENT % "shop").replace("image: ", "image: registry.company.com/")
    (found,) = judged(engine, deployment)
    assert (found.verdict, said(found)) == ("error", (("it", "", message),))


SIGNED_AND_PINNED = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: image-pins}
spec: {policy: image-pins, failurePolicy: %s, params: {images: [registry.company.com]}}
---
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: image-signatures}
spec:
  policy: image-signatures
  params:
    signatures:
      - images: [registry.company.com]
        keys:
          - |
            -----BEGIN PUBLIC KEY-----
            MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEb6u8yeaEb5ibLUlsXR2NnODYQDU0
            YAbxdydAPEI4A9iicv5Tqd0PtpyzKgRf/99usKTW0mFKuvMlnzubzBOGmg==
            -----END PUBLIC KEY-----
---
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: image-digests}
spec: {policy: image-digests}
---
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: replica-limits}
spec: {policy: replica-limits, params: {maximum: %d}}
"""


def recorded_creation(text):
    """Return the recorded review of an object's creation."""
    (document,) = parse_documents(text.encode(), "x.yaml")
    admission = Admission(document.value, namespace="shop", sent=group_version_kind(document.value))
    return Document.of_object(json.loads(review(admission)), "reviews.jsonl")


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
def test_images_that_would_be_pinned_are_undecided_and_all_else_is_judged(failure_policy):
    """No policy denies an image for the digest that image-pins would have added."""
    deployment = (DEPLOYMENT % "shop").replace("image: ", "image: registry.company.com/")
    undecided = tuple(
        (policy, "", "images are not verified: only their registries know. Use --registry-access.")
        for policy in ("image-pins", "image-signatures", "image-digests")
    )
    verdicts = {}
    for maximum in (10, 11):
        text = SIGNED_AND_PINNED % (failure_policy, maximum)
        engine = Engine(load(parse_documents(text.encode(), "p.yaml"), catalogue()))
        (found,) = judged(engine, deployment)
        verdicts[maximum] = found.verdict, said(found)
        judge = PoliciesInForce((), engine, {}, NOW).judge(Known(), "default")
        recorded = judge.review(recorded_creation(deployment))
        assert (recorded.verdict, said(recorded)) == verdicts[maximum]
    assert verdicts == {10: ("denied", (*undecided, FINDINGS[1])), 11: ("error", undecided)}


def test_no_warning_is_left_out():
    """The API server's limit does not apply here."""
    text = (
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: limits}\n"
        "spec: {policy: resource-limits, validationActions: [Warn]}\n"
    )
    engine = Engine(load(parse_documents(text.encode(), "p.yaml"), catalogue()))
    containers = ", ".join(f"{{name: c{number}}}" for number in range(60))
    pod = (
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: it}}\nspec: {{containers: [{containers}]}}\n"
    )
    (found,) = judged(engine, pod)
    assert [finding.path for finding in found.findings] == [
        f"spec.containers[name=c{number}].resources.limits" for number in range(60)
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a\n", "x.yaml:1: apiVersion: missing; every Kubernetes object has one"),
        (
            "kind: Pod\nmetadata: {name: a}\n",
            "x.yaml:1: apiVersion: missing; every Kubernetes object has one",
        ),
        (
            "apiVersion: v1\nmetadata: {name: a}\n",
            "x.yaml:1: kind: missing; every Kubernetes object has one",
        ),
        (
            "apiVersion: v1\nkind: ''\nmetadata: {}\n",
            "x.yaml:2: kind: missing; every Kubernetes object has one",
        ),
        (
            "apiVersion: 1\nkind: Pod\nmetadata: {}\n",
            "x.yaml:1: apiVersion: missing; every Kubernetes object has one",
        ),
        ("apiVersion: v1\nkind: Pod\n", "x.yaml:1: metadata: missing, or not an object"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata:\n- a\n",
            "x.yaml:3: metadata: missing, or not an object",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: 5\n",
            "x.yaml:4: metadata.name: must be a string",
        ),
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
            "x.yaml:1: request.kind.version: Expected `str` of length >= 1",
        ),
        (
            f"{DEPLOYMENT % 'production'}---\nkind: Pod\n",
            "x.yaml:12: apiVersion: missing; every Kubernetes object has one",
        ),
    ],
)
def test_a_document_that_is_no_object_is_an_error(engine, text, told):
    """The error has file, line and field, and nothing is judged."""
    with pytest.raises(DocumentError) as error:
        judged(engine, text)
    assert str(error.value) == told


def test_a_namespace_object_is_in_its_own_namespace():
    """Policies for some namespaces judge these Namespace objects too, by name and label, as in the webhook."""
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
    text = "---\n".join(
        namespace % values for values in (("shop", "lab"), ("toys", "production"), ("toys", "lab"))
    )
    assert [(each.title, each.verdict) for each in judged(labels, text)] == [
        ("Namespace shop", "denied"),
        ("Namespace toys", "denied"),
        ("Namespace toys", "unmatched"),
    ]


RULE = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: gizmo-names}
spec:
  match: {any: [{kinds: [gizmoes.example.test/v1/Gizmo]}]}
  validations: [{expression: "object.metadata.name != 'bad'", message: a bad name}]
"""
OF_KUBERNETES = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: gizmo-names}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.test], operations: [CREATE], resources: [gizmoes]}]}
  validations: [{expression: "object.metadata.name != 'bad'", message: a bad name}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: gizmo-names}
spec: {policyName: gizmo-names}
"""
GIZMO = "apiVersion: example.test/v1\nkind: Gizmo\nmetadata: {name: bad}\n"
DEFINITION = """\
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmoes.example.test}
spec: {group: example.test, names: {kind: Gizmo, plural: gizmoes}}
"""


@pytest.mark.parametrize(
    ("policy", "manifests"), [(RULE, GIZMO), (OF_KUBERNETES, GIZMO + DEFINITION)]
)
def test_an_irregular_plural_comes_from_the_policy_or_from_a_definition_in_the_files(
    policy, manifests
):
    """A policy of Kubernetes names only the plural, so that the kind must be defined in the files."""
    names = Engine(load(parse_documents(policy.encode(), "p.yaml"), catalogue()))
    assert said(judged(names, manifests)[0]) == (("gizmo-names", "", "a bad name"),)


def test_a_kind_that_the_files_define_as_cluster_scoped_has_no_namespace(engine):
    """It does not get the default namespace."""
    gizmo, _ = judged(engine, GIZMO + DEFINITION.replace("spec: {", "spec: {scope: Cluster, "))
    assert gizmo.title == "Gizmo bad"


def policy_of(name, **params):
    """An engine of one built-in policy."""
    document = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": name},
    }
    spec = {"policy": name, "params": params}
    return Engine(
        load(parse_documents(json.dumps(document | {"spec": spec}).encode(), "p.yaml"), catalogue())
    )


LABELLED = "metadata: {name: other, namespace: shop, labels: {a: b}}"


@pytest.mark.parametrize(
    ("policy", "params", "judged_object", "looked_up", "version"),
    [
        (
            "disruption-budgets",
            {"workloads": True},
            "kind: PodDisruptionBudget, apiVersion: policy/v1, spec: {minAvailable: 1, selector: {}}",
            "kind: Deployment, spec: {replicas: 1, template: {}}",
            "apps/v1",
        ),
        (
            "disruption-budgets",
            {"workloads": True},
            "kind: Deployment, apiVersion: apps/v1, spec: {replicas: 1, template: {}}",
            "kind: PodDisruptionBudget, spec: {minAvailable: 1, selector: {}}",
            "policy/v1",
        ),
        (
            "probes",
            {"served": True},
            "kind: Deployment, apiVersion: apps/v1, spec: {template: {metadata: {labels: {a: b}}, spec: "
            "{containers: [{name: app, image: a, ports: [{containerPort: 80}]}]}}}",
            "kind: Service, spec: {selector: {a: b}, ports: [{port: 80}]}",
            "v1",
        ),
        (
            "unique-ingress-hosts",
            {},
            "kind: Ingress, apiVersion: networking.k8s.io/v1, spec: {rules: [{host: a.example}]}",
            "kind: Ingress, spec: {rules: [{host: a.example}]}",
            "networking.k8s.io/v1",
        ),
    ],
)
def test_only_the_built_in_kind_is_looked_up(policy, params, judged_object, looked_up, version):
    """A custom resource of another group may have the same name of a kind."""
    first = f"{{metadata: {{name: it, namespace: shop}}, {judged_object}}}\n---\n"
    for group, verdict in ((version, "denied"), ("example.com/v1", "allowed")):
        found = judged(
            policy_of(policy, **params),
            f"{first}{{apiVersion: {group}, {LABELLED}, {looked_up}}}\n",
        )
        assert found[0].verdict == verdict


def test_a_workload_of_an_old_group_is_looked_up():
    """A Deployment of extensions/v1beta1 counts as one of apps."""
    text = """\
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: it}, spec: {minAvailable: 1, selector: {}}}
---
{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: shop}, spec: {replicas: 1, template: {}}}
"""
    assert judged(policy_of("disruption-budgets", workloads=True), text)[0].verdict == "denied"


@pytest.mark.parametrize("kind", ["Namespace", "ClusterRole", "Node"])
def test_a_custom_kind_with_the_name_of_a_cluster_scoped_one_has_a_namespace(engine, kind):
    """It does not change the scope of the built-in kind."""
    text = f"""\
{{apiVersion: example.com/v1, kind: {kind}, metadata: {{name: shop, namespace: toys, labels: {{environment: x}}}}}}
---
{DEPLOYMENT % "shop"}"""
    custom, deployment = judged(engine, text)
    assert (custom.namespace, deployment.verdict) == ("toys", "error")
