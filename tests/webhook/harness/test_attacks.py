"""Ways to make a suite pass without testing anything: each is an error with its place, or a difference."""

import pytest

from config.documents import DocumentError
from webhook.harness.cases import load_trials
from webhook.harness.trial import differences
from webhook.policy_sets.catalogue import catalogue

HEAD = "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: few}\nspec:\n"
LIMITS = f"{HEAD}  policy: replica-limits\n  params: {{maximum: 2}}\n"
IN_CEL = (
    HEAD
    + "  match: {any: [{kinds: [Deployment]}]}\n  validations: [{expression: '%s', message: few}]\n"
)
CERTIFICATES = (
    f"{HEAD}  match: {{any: [{{kinds: [certificates.cert-manager.io/v1/Certificate]}}]}}\n"
    "  validations: [{expression: '!has(object.spec.insecure) && object.spec.issuer.name != \"\"', message: few}]\n"
)
CERTIFICATE = "apiVersion: cert-manager.io/v1, kind: Certificate"
BINDING = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [x]}]}
  validations: [{expression: object.spec.replicas < 5}]
"""
MANY = "object: {kind: Deployment, spec: {replicas: 9}}"
NOTHING = "no policy read the object, so nothing was tested (use `expect: not-matched` if that is intended)"
JUDGED = (
    "- {name: judged, object: {kind: Deployment, metadata: {namespace: judged}}, expect: allowed}\n"
)


@pytest.fixture
def told(tmp_path):
    """Return the faults or the differences of a case of a policy or a policy set, without the directory."""

    def _told(case, policies="", head="policy: replica-limits", more=JUDGED):
        (tmp_path / "set.yaml").write_text(policies)
        file = tmp_path / "cases.yaml"
        file.write_text(
            f"{'policies: set.yaml' if policies else head}\ncases:\n- {{name: a, {case}}}\n{more}"
        )
        try:
            first, *_ = load_trials(file, catalogue())
            return differences(first)
        except DocumentError as error:
            return str(error).replace(f"{tmp_path}/", "").split("\n")

    return _told


@pytest.mark.parametrize(
    ("case", "fault"),
    [
        (
            f"{MANY}, expect: {{denied: null}}",
            "cases[0].expect.denied: null: should be a valid array",
        ),
        (
            "object: {kind: Pod}, old_object: null",
            "cases[0]: old_object: null; give it a value, or leave it out",
        ),
        (
            "object: {kind: Pod}, also: []",
            "cases[0].also: []: List should have at least 1 item after validation, not 0",
        ),
        ("object: {kind: Pod}, now: 5", "cases[0].now: 5: should be a valid datetime"),
        (
            "object: {kind: Pod}, namespace: ''",
            'cases[0].namespace: "": expected a namespace: lower-case letters, digits and -',
        ),
        (
            "namespace: shop, object: {kind: Deployment, metadata: {namespace: web}}",
            'cases[0].object.metadata.namespace: differs from `namespace`, which is "shop"',
        ),
        (
            "object: {kind: Deployment}, namespace_labels: {kubernetes.io/metadata.name: shop}",
            "cases[0].namespace_labels.kubernetes.io/metadata.name: is the name of the namespace: use `namespace`",
        ),
        (
            "object: {apiVersion: app/v1, kind: Deployment}",
            'cases[0].object.apiVersion: no policy names a Deployment of "app/v1"; expected apps/v1',
        ),
        (
            "object: {apiVersion: apps/v1beta9, kind: Deployment, sepc: {}}",
            'cases[0].object.sepc: unknown field; did you mean "spec"?',
        ),
        (
            "object: {kind: Deployment, metadata: null}",
            "cases[0].object.metadata: must be an object",
        ),
        (
            "object: {kind: Pod}, pod: {containers: [{name: a, image: b, env: {A: b}}]}",
            "cases[0].pod.containers[0].env: must be a list",
        ),
        (
            "pod: {hostNetwork: true}, object: {kind: Pod, spec: {hostNetwork: false}}",
            "cases[0].pod: `object` sets the same field to another value",
        ),
        (
            "object: {kind: Deployment}, old_object: {metadata: {name: b}}",
            "cases[0].old_object.metadata.name: an update does not change it; leave it out",
        ),
        (
            "object: {kind: Deployment}, old_object: {kind: Pod}",
            "cases[0].old_object.kind: an update does not change it; leave it out",
        ),
    ],
)
def test_an_impossible_request_is_an_error(told, case, fault):
    """An incomplete or contradictory case would test something else than it states."""
    assert told(case if "expect" in case else f"{case}, expect: allowed") == [
        f"cases.yaml:3: {fault}"
    ]


def test_a_file_that_judges_nothing_is_an_error(told):
    """One typo in a match or a label would make all cases of it true."""
    fault = "cases.yaml:1: every case expects not-matched, so nothing is tested; add a case that is judged"
    assert told(
        f"{MANY}, expect: not-matched", LIMITS + "  match: {any: [{namespaces: [prod]}]}\n", more=""
    ) == [fault]


@pytest.mark.parametrize(
    "policies", ["# none yet\n", BINDING], ids=["an empty set", "a policy without a binding"]
)
def test_a_set_without_a_policy_in_force_is_an_error(told, policies):
    """The policies that are always in force do not count."""
    assert told("object: {kind: PolicyException}, expect: allowed", policies) == [
        "cases.yaml:1: policies: no policy in this file is in force, so nothing is tested"
    ]


@pytest.mark.parametrize("rule", ["true", 'object.kind != "Pod"', 'request.operation == "CREATE"'])
def test_a_rule_that_reads_no_more_than_the_kind_is_not_matched(told, rule):
    """Such a rule is like a policy in Python that returns early."""
    assert told(f"{MANY}, expect: allowed", IN_CEL % rule) == [NOTHING]
    assert told(f"{MANY}, expect: allowed", IN_CEL % f"{rule} && object.spec.replicas > 1") == []
    assert (
        told(f"{MANY}, expect: allowed", IN_CEL % f'{rule} && request.userInfo.username != ""')
        == []
    )


@pytest.mark.parametrize(
    ("object", "fault"),
    [
        (
            "spec: {insecrue: true}",
            'object.spec.insecrue: no rule reads this field; did you mean "insecure"?',
        ),
        (
            "spec: {issuer: {nam: a}}",
            'object.spec.issuer.nam: no rule reads this field; did you mean "name"?',
        ),
        ("spec: issuer", "object.spec: must be an object: a rule reads fields of it"),
        ("metadata: {lables: {}}", 'object.metadata.lables: unknown field; did you mean "labels"?'),
        (
            "spec: {issuer: {name: a, group: b}}",
            "object.spec.issuer.group: no rule reads this field; known: name",
        ),
    ],
)
def test_a_typo_in_a_kind_without_a_schema_is_an_error(told, object, fault):
    """Rules in CEL name the fields that count."""
    case = f"object: {{{CERTIFICATE}, {object}}}, expect: allowed"
    assert told(case, CERTIFICATES, more="") == [f"cases.yaml:3: cases[0].{fault}"]
    assert (
        told(
            f"object: {{{CERTIFICATE}, spec: {{issuer: {{name: a}}}}}}, expect: allowed",
            CERTIFICATES,
            more="",
        )
        == []
    )


def test_a_denied_object_of_a_kind_without_a_schema_may_have_other_fields(told):
    """Its denial shows that a rule reads the tested field."""
    denied = "expect: {denied: [{path: '', message: few}]}"
    case = f"object: {{{CERTIFICATE}, spec: {{issuer: {{name: '', group: b}}}}}}, {denied}"
    assert told(case, CERTIFICATES, more="") == []


def test_a_kind_that_a_policy_names_in_full_needs_its_version(told):
    """It is not in the table of kinds."""
    assert told("object: {kind: Certificate}, expect: allowed", CERTIFICATES, more="") == [
        "cases.yaml:3: cases[0].object.apiVersion: missing; a policy names cert-manager.io/v1 Certificate"
    ]


def test_a_label_of_the_namespace_that_no_selector_names_is_a_difference(told):
    """A typo there would make `not-matched` true."""
    selected = (
        LIMITS
        + "  match: {any: [{namespaceSelector: {matchLabels: {tier: small}}}, {namespaces: [judged]}]}\n"
    )
    assert told(f"namespace_labels: {{teir: small}}, {MANY}, expect: not-matched", selected) == [
        'namespace_labels.teir: no policy selects by this label; did you mean "tier"?'
    ]
    assert told(f"namespace_labels: {{tier: large}}, {MANY}, expect: not-matched", selected) == []


def test_a_label_of_an_unmatched_object_that_no_selector_names_is_a_difference(told):
    """The same holds for labels of the namespace; an object that a policy judges may have any labels."""
    selected = (
        LIMITS
        + "  match: {any: [{objectSelector: {matchLabels: {tier: small}}}, {namespaces: [judged]}]}\n"
    )
    case = "object: {kind: Deployment, metadata: {labels: {%s: large}}, spec: {replicas: %s}}, expect: %s"
    assert told(case % ("teir", 9, "not-matched"), selected) == [
        'object.metadata.labels.teir: no policy selects by this label; did you mean "tier"?'
    ]
    assert told(case % ("tier", 9, "not-matched"), selected) == []
    assert told(f"namespace: judged, {case % ('teir', 1, 'allowed')}", selected) == []


@pytest.mark.parametrize(
    ("head", "case", "fault"),
    [
        (
            "policy: service-selectors",
            "object: {kind: Service}, looked_up: {services: [{metadata: {name: b, namespace: other}}]}",
            'services[0].metadata.namespace: only namespace "default" is looked up, that of the request',
        ),
        (
            "policy: unique-ingress-hosts",
            "object: {kind: Ingress}, looked_up: {ingresses: [{name: b, namespace: c, hosts: case.example}]}",
            "ingresses[0].hosts: must be a list",
        ),
    ],
)
def test_a_look_up_has_what_the_webhook_looks_up(told, head, case, fault):
    """Objects of the request's namespace, but Ingresses of all."""
    assert told(f"{case}, expect: allowed", head=head, more="") == [
        f"cases.yaml:3: cases[0].looked_up.{fault}"
    ]


def test_a_rule_that_reads_a_field_that_its_kinds_do_not_have_is_an_error(told):
    """It would be true, or false, of every object."""
    rules = (
        f"{HEAD}  match: {{any: [{{kinds: [Deployment]}}]}}\n"
        '  validations: [{expression: "!has(object.spec.replics)", message: few}]\n'
    )
    assert told("object: {kind: Deployment}, expect: not-matched", rules) == [
        "set.yaml:6: ClusterAdmissionPolicy few: spec.validations[0].expression: line 1, column 18: "
        "undefined field 'replics' of 'DeploymentSpec'; did you mean \"replicas\"?"
    ]
