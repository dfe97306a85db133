"""Policy sets: every error has its line, and valid policies come into force."""

from pathlib import Path

import pytest

from config.documents import parse_documents, read_documents
from tests.webhook.asking import ask
from webhook.engine import NAMESPACE, NAMESPACE_LABELS, Engine
from webhook.engine.kinds import Kind
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySetError, load, read

PRODUCTION = Path(__file__).parents[3] / "config" / "policies" / "production.yaml"
SCALABLE = sorted({target.kind.kind for target in catalogue()["replica-limits"].targets})
HOLDS = "a policy set contains gatewright.io/v1alpha1 ClusterAdmissionPolicy, AdmissionPolicy and PolicyException objects, "
HEAD = """\
apiVersion: gatewright.io/v1alpha1
kind: ClusterAdmissionPolicy
metadata: {name: replica-limits}
spec:
"""


def loaded(text, source="policies.yaml"):
    """Load a policy set from its text."""
    return load(parse_documents(text.encode(), source), catalogue())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            HEAD + "  policy: replica-limits\n  params:\n    maximun: 3\n",
            "policies.yaml:7: ClusterAdmissionPolicy replica-limits: "
            'spec.params.maximun: unknown parameter; did you mean "maximum"?',
            id="unknown parameter",
        ),
        pytest.param(
            HEAD + "  policy: replica-limits\n  params: {maximum: '10'}\n",
            "policies.yaml:6: ClusterAdmissionPolicy replica-limits: "
            'spec.params.maximum: "10": should be a valid integer',
            id="a quoted number",
        ),
        pytest.param(
            HEAD + "  policy: replica-limits\n  params: {maximum: -1}\n",
            "policies.yaml:6: ClusterAdmissionPolicy replica-limits: "
            "spec.params.maximum: -1: should be greater than or equal to 0",
            id="a parameter out of range",
        ),
        pytest.param(
            HEAD + "  policy: image-registries\n",
            "policies.yaml:4: ClusterAdmissionPolicy replica-limits: spec.params: expected at least one registry, "
            "approved or denied",
            id="a missing parameter",
        ),
        pytest.param(
            HEAD
            + "  policy: image-registries\n  params:\n    registries:\n    - a.io\n    - https://a.io\n",
            "policies.yaml:9: ClusterAdmissionPolicy replica-limits: "
            'spec.params.registries[1]: "https://a.io": it has a scheme: remove https://',
            id="an invalid registry",
        ),
        pytest.param(
            HEAD + "  policy: replica-limit\n",
            "policies.yaml:5: ClusterAdmissionPolicy replica-limits: "
            'spec.policy: no policy "replica-limit"; did you mean "replica-limits"?',
            id="unknown policy",
        ),
        pytest.param(
            HEAD + "  policy: xyz\n",
            "policies.yaml:5: ClusterAdmissionPolicy replica-limits: "
            'spec.policy: no policy "xyz"; known: ' + ", ".join(sorted(catalogue())),
            id="a policy with no similar name",
        ),
        pytest.param(
            HEAD + "  policy: replica-limits\n  match:\n    any:\n    - namespace: [a]\n",
            "policies.yaml:8: ClusterAdmissionPolicy replica-limits: "
            'spec.match.any[0].namespace: unknown field; did you mean "namespaces"?',
            id="unknown key in the match",
        ),
        pytest.param(
            HEAD + "  policy: replica-limits\n  match:\n    any:\n    - namespaces: [shop, Prod]\n",
            "policies.yaml:8: ClusterAdmissionPolicy replica-limits: "
            'spec.match.any[0].namespaces[1]: "Prod": expected a namespace: lower-case letters, digits and -, or a '
            "pattern with * and ?",
            id="a name that no namespace has",
        ),
        pytest.param(
            HEAD
            + "  policy: replica-limits\n  match:\n    any:\n    - objectSelector: {matchLabels: {tier: a b}}\n",
            "policies.yaml:8: ClusterAdmissionPolicy replica-limits: "
            'spec.match.any[0].objectSelector.matchLabels.tier: "a b": expected the value of a label',
            id="a value that no label has",
        ),
        pytest.param(
            HEAD + "  policy: replica-limits\n  match:\n    any:\n    - namespaceSelector:\n"
            "        matchExpressions: [{key: tier, operator: In}]\n",
            "policies.yaml:9: ClusterAdmissionPolicy replica-limits: "
            "spec.match.any[0].namespaceSelector.matchExpressions[0]: expected values with the operators In and NotIn, "
            "and none with Exists and DoesNotExist",
            id="an expression that holds nowhere",
        ),
        pytest.param(
            HEAD
            + "  policy: replica-limits\n  match:\n    exclude: {serviceAccounts: [kube-system/*, ci]}\n",
            "policies.yaml:7: ClusterAdmissionPolicy replica-limits: "
            'spec.match.exclude.serviceAccounts[1]: "ci": expected namespace/name, such as '
            "kube-system/replicaset-controller or kube-system/*",
            id="a service account without its namespace",
        ),
        *(
            pytest.param(
                HEAD + f"  policy: {policy}\n  match:\n    any:\n    - {{}}\n    - {clause}\n",
                f"policies.yaml:9: ClusterAdmissionPolicy replica-limits: spec.match.any[1].{fault}",
                id=f"a clause that matches nothing: {clause}",
            )
            for policy, clause, fault in (
                (
                    "replica-limits",
                    "{kinds: [HorizontalPodAutoscaler], subresources: [scale]}",
                    'subresources: matches nothing: with the rest of the clause, subresources can only be ""',
                ),
                (
                    "replica-limits",
                    "{kinds: [HorizontalPodAutoscaler, Deployment], subresources: [scale]}",
                    'kinds: "HorizontalPodAutoscaler" matches nothing: with it, subresources can only be ""',
                ),
                (
                    "replica-limits",
                    "{subresources: [scale], operations: [CREATE]}",
                    "operations: matches nothing: with the rest of the clause, operations can only be UPDATE",
                ),
                (
                    "wildcard-rights",
                    "{kinds: [ClusterRole], namespaces: [shop]}",
                    "namespaces: matches nothing: cluster-scoped objects have no namespace",
                ),
                (
                    "wildcard-rights",
                    "{kinds: [ClusterRole, Role], namespaces: [shop]}",
                    'kinds: "ClusterRole" matches nothing: cluster-scoped objects have no namespace',
                ),
                (
                    "required-labels",
                    "{kinds: [ConfigMap, Job], podSelector: {}}",
                    'kinds: "ConfigMap" matches nothing: these objects have no pods',
                ),
            )
        ),
        pytest.param(
            HEAD + "  policy: replica-limits\n  parameters: {}\n",
            "policies.yaml:6: ClusterAdmissionPolicy replica-limits: "
            'spec.parameters: unknown field; did you mean "params"?',
            id="unknown key in the spec",
        ),
        pytest.param(
            HEAD + "  policy: replica-limits\n  validationActions: [Deny, Forbid]\n",
            "policies.yaml:6: ClusterAdmissionPolicy replica-limits: "
            "spec.validationActions[1]: \"Forbid\" is not one of 'Deny', 'Warn' or 'Audit'",
            id="unknown action",
        ),
        pytest.param(
            HEAD + "  policy: replica-limits\n  validationActions: []\n",
            "policies.yaml:6: ClusterAdmissionPolicy replica-limits: "
            "spec.validationActions: []: List should have at least 1 item after validation, not 0",
            id="no action",
        ),
        pytest.param(
            HEAD + "  policy: replica-limits\n  failurePolicy: fail\n",
            "policies.yaml:6: ClusterAdmissionPolicy replica-limits: "
            "spec.failurePolicy: \"fail\" is not one of 'Fail' or 'Ignore'",
            id="unknown failure policy",
        ),
        pytest.param(
            HEAD
            + "  policy: replica-limits\n  match:\n    any:\n    - kinds:\n      - Deployment\n      - Pod\n",
            "policies.yaml:8: ClusterAdmissionPolicy replica-limits: "
            'spec.match.any[0].kinds: replica-limits does not look at "Pod"; '
            f"known: {', '.join(SCALABLE)}",
            id="a kind the policy does not judge",
        ),
        pytest.param(
            HEAD + "  policy: replica-limits\n  match: {any: [{kinds: [Deploymnt]}]}\n",
            "policies.yaml:6: ClusterAdmissionPolicy replica-limits: "
            'spec.match.any[0].kinds: replica-limits does not look at "Deploymnt"; did you mean "Deployment"?',
            id="a misspelt kind",
        ),
        pytest.param(
            HEAD + "  policy: replica-limits\n  match: {any: [{operations: [UPDATE, DELETE]}]}\n",
            "policies.yaml:6: ClusterAdmissionPolicy replica-limits: "
            'spec.match.any[0].operations: replica-limits does not look at "DELETE"; known: CREATE, UPDATE',
            id="an operation the policy does not judge",
        ),
        pytest.param(
            HEAD + "  policy: replica-limits\n  match: {any: [{subresources: ['', status]}]}\n",
            "policies.yaml:6: ClusterAdmissionPolicy replica-limits: "
            'spec.match.any[0].subresources: replica-limits does not look at "status"; known: "", scale',
            id="a subresource the policy does not judge",
        ),
        pytest.param(
            "apiVersion: gatewright.io/v1\nkind: ClusterAdmissionPolicy\nmetadata: {name: a}\n",
            f"policies.yaml:1: ClusterAdmissionPolicy a: {HOLDS}not gatewright.io/v1 ClusterAdmissionPolicy",
            id="another version",
        ),
        pytest.param(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
            f"policies.yaml:1: ConfigMap a: {HOLDS}not v1 ConfigMap",
            id="another kind",
        ),
        pytest.param(
            "a: b\n",
            f"policies.yaml:1: document: {HOLDS}not this",
            id="not an API object",
        ),
        pytest.param("- a\n", "policies.yaml:1: document: not an object", id="a list"),
        pytest.param(
            HEAD.replace("replica-limits", "Replica_Limits") + "  policy: replica-limits\n",
            'policies.yaml:3: ClusterAdmissionPolicy Replica_Limits: metadata.name: "Replica_Limits": String should '
            "match pattern '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'",
            id="an invalid name",
        ),
        pytest.param(
            HEAD,
            "policies.yaml:4: ClusterAdmissionPolicy replica-limits: spec: missing; it is required",
            id="no spec",
        ),
    ],
)
def test_errors_have_their_line(text, told):
    """The message has file, line, object, path, error and suggestion."""
    with pytest.raises(PolicySetError) as error:
        loaded(text)
    assert str(error.value) == told


def test_all_errors_of_all_documents_are_reported():
    """A second run is not needed to see the next error."""
    good = HEAD + "  policy: replica-limits\n---\n"
    text = (
        good
        + HEAD
        + "  policy: nothing\n---\n"
        + good.replace("policy: replica-limits", "policy: image-tags")
        + "kind: X\n---\n"
        + HEAD
        + "  params: {}\n  policies: a\n"
    )
    with pytest.raises(PolicySetError) as error:
        loaded(text)
    assert str(error.value).split("\n") == [
        "policies.yaml:11: ClusterAdmissionPolicy replica-limits: "
        'spec.policy: no policy "nothing"; known: ' + ", ".join(sorted(catalogue())),
        "policies.yaml:15: ClusterAdmissionPolicy replica-limits: "
        "metadata.name: another policy of this name is at policies.yaml:3; rename one of them, in a copy of a "
        "preset",
        f"policies.yaml:19: document: {HOLDS}not this",
        'policies.yaml:26: ClusterAdmissionPolicy replica-limits: spec.policies: unknown field; did you mean "policy"?',
    ]


def test_two_sets_may_share_a_policy():
    """An equal object is in force once."""
    text = HEAD + "  policy: replica-limits\n"
    assert loaded(f"{text}---\n{text}") == loaded(text)


def test_a_policy_is_in_force_as_written():
    """Parameters, match, actions and failurePolicy are the object's; absent fields have defaults."""
    always, bound = (
        loaded(HEAD + "  policy: replica-limits\n")[:-1],
        loaded(
            HEAD.replace("name: replica-limits", "name: few")
            + "  policy: replica-limits\n  params: {maximum: 3}\n  validationActions: [Warn, Audit]\n"
            "  failurePolicy: Ignore\n  match: {any: [{namespaceSelector: {matchLabels: {a: b}}}]}\n"
        )[-1],
    )
    assert (bound.name, bound.policy.name) == ("few", "replica-limits")
    assert bound.params == bound.policy.params(maximum=3)
    assert (bound.actions, bound.fails_closed, bound.match.needs()) == (
        {"Warn", "Audit"},
        False,
        {NAMESPACE_LABELS},
    )
    assert [(each.name, each.actions, each.fails_closed) for each in always] == [
        (name, {policy.action}, True) for name, policy in catalogue().items() if policy.always
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("policy: replica-limits", (True, "medium", "capacity", set())),
        (
            "policy: replica-limits, allowExistingViolations: false",
            (False, "medium", "capacity", set()),
        ),
        ("policy: replica-limits, severity: low, category: shop", (True, "low", "shop", set())),
        (
            "policy: replica-limits, matchConditions: [{name: a, expression: has(namespaceObject.spec)}]",
            (True, "medium", "capacity", {NAMESPACE}),
        ),
        (
            "validations: [{expression: has(namespaceObject.spec)}]",
            (True, "medium", "custom", {NAMESPACE}),
        ),
        ("validations: [{expression: has(object.spec)}]", (True, "medium", "custom", set())),
    ],
)
def test_unset_fields_of_a_policy_object_have_the_policys_defaults(spec, expected):
    """Unset fields have the policy's defaults, and expressions that read the namespace need a look-up."""
    (found,) = (
        each
        for each in loaded(HEAD.replace("spec:\n", f"spec: {{{spec}}}\n"))
        if not each.policy.always
    )
    policy = found.policy
    assert (found.tolerates_existing, policy.severity, policy.category, found.needs) == expected


def test_one_policy_can_be_in_force_twice():
    """Messages name the object."""
    other = HEAD.replace("name: replica-limits", "name: other")
    bound = loaded(HEAD + "  policy: replica-limits\n---\n" + other + "  policy: replica-limits\n")
    assert [each.name for each in bound[-2:]] == ["replica-limits", "other"]


def test_a_policy_object_replaces_a_policy_that_is_always_in_force():
    """The object decides its scope and actions, under its own name."""
    assert {each.name for each in loaded("")} == {
        name for name, policy in catalogue().items() if policy.always
    }
    text = (
        HEAD.replace("name: replica-limits", "name: ours")
        + "  policy: webapp-names\n  validationActions: [Audit]\n"
    )
    bound = {each.policy.name: each for each in loaded(text)}
    assert (bound["webapp-names"].name, bound["webapp-names"].actions) == ("ours", {"Audit"})
    assert bound["webapp-labels"].name == "webapp-labels"


def test_the_production_set_is_for_production():
    """The shipped set applies in production, and in namespaces labelled as production."""
    engine = Engine(load(read_documents(PRODUCTION), catalogue()))
    pod = {
        "kind": "Pod",
        "metadata": {"name": "it"},
        "spec": {"containers": [{"name": "app", "image": "nginx"}]},
    }

    def denied_by(namespace, labels):
        verdict = engine.validate(
            ask(pod, namespace=namespace, looked_up={NAMESPACE_LABELS: labels})
        )
        return [outcome.policy for outcome in verdict.outcomes if outcome.denies]

    assert denied_by("production", {}) == ["image-registries", "resource-limits"]
    assert denied_by("shop", {"environment": "production"}) == [
        "image-registries",
        "resource-limits",
    ]
    assert denied_by("shop", {"environment": "staging"}) == []


TENANT = HEAD.replace("ClusterAdmissionPolicy", "AdmissionPolicy")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            TENANT + "  policy: replica-limits\n",
            "policies.yaml:3: AdmissionPolicy replica-limits: "
            "metadata.namespace: missing; an AdmissionPolicy is in force in its own namespace",
        ),
        (
            TENANT.replace("{name", "{namespace: shop, name") + "  policy: webapp-labels\n",
            "policies.yaml:5: AdmissionPolicy replica-limits: "
            "spec.policy: webapp-labels changes objects; an AdmissionPolicy can only deny",
        ),
    ],
)
def test_a_tenant_can_only_restrict_its_own_namespace(text, told):
    """A tenant's policy has a namespace, and no mutations."""
    with pytest.raises(PolicySetError) as error:
        loaded(text)
    assert str(error.value) == told


def test_tenants_policies_are_named_with_their_namespace():
    """The same name in two namespaces, or in none, is a different object."""
    tenants = [
        TENANT.replace("{name", f"{{namespace: {namespace}, name") + "  policy: replica-limits\n"
        for namespace in ("a", "b")
    ]
    bound = loaded("---\n".join([HEAD + "  policy: replica-limits\n", *tenants]))
    assert [each.title for each in bound[-3:]] == [
        "replica-limits",
        "a/replica-limits",
        "b/replica-limits",
    ]


def test_a_tenant_does_not_replace_a_policy_that_is_always_in_force():
    """Only a cluster policy can replace it."""
    text = (
        TENANT.replace("{name: replica-limits", "{namespace: shop, name: ours")
        + "  policy: webapp-names\n"
    )
    assert [each.title for each in loaded(text) if each.policy.name == "webapp-names"] == [
        "webapp-names",
        "shop/ours",
    ]


def test_an_object_that_compiles_slowly_is_rejected():
    """A tenant may write policy objects, and every replica compiles them."""
    with pytest.raises(
        PolicySetError,
        match=r"policies.yaml:1: ClusterAdmissionPolicy replica-limits: has 66,\d+ bytes; ",
    ):
        loaded(
            f"{HEAD}  policy: replica-limits\n  match: {{any: [{{names: [{'a, ' * 16500}]}}]}}\n"
        )


def test_errors_are_limited():
    """The first fifty are reported."""
    text = (
        HEAD
        + "  policy: replica-limits\n  params: {"
        + ", ".join(f"k{number}: 1" for number in range(1000))
        + "}\n"
    )
    with pytest.raises(PolicySetError) as refused:
        loaded(text)
    assert len(str(refused.value).splitlines()) == 50


def test_a_wrong_plural_of_a_defined_kind_is_an_error():
    """The API server would never call the webhook for it; the definition has the right one."""
    text = f"""{HEAD}  match: {{any: [{{kinds: [NAME/v1/Person]}}]}}
  validations: [{{expression: "false", message: "no"}}]
"""
    defined = [Kind("example.com", "Person", "persona")]

    def policies(name):
        documents = parse_documents(text.replace("NAME", name).encode(), "own.yaml")
        return read(documents, catalogue(), defined).policies

    assert len(policies("persona.example.com")) == 1
    with pytest.raises(PolicySetError) as error:
        policies("example.com")
    assert str(error.value) == (
        "own.yaml:5: ClusterAdmissionPolicy replica-limits: spec.match.any[0].kinds: no API serves "
        "persons.example.com; write persona.example.com/v1/Person"
    )
