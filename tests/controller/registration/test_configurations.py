"""The webhook configurations: which requests the API server sends to the webhook."""

import base64

import pytest

from controller.registration.configurations import (
    Service,
    Timeouts,
    WebhookClientConfig,
    published_bundles,
    registration,
)
from tests.webhook.asking import denying
from webhook.engine import BoundPolicy, Engine, Params, Policy
from webhook.engine.match import Match

BUNDLE = b"-----BEGIN CERTIFICATE-----\n"
SERVICE = WebhookClientConfig(Service("gatewright-system", "gatewright-webhook"), BUNDLE)


def bound(
    name: str, *, mutates: bool = False, fails_closed: bool = True, kinds=("Deployment",)
) -> BoundPolicy:
    """Put a policy in force that looks at some kinds."""
    function = {"mutate" if mutates else "validate": lambda request, params: iter(())}
    policy = Policy(name, Params, kinds=kinds, **function)
    return BoundPolicy(
        name, policy, Params(), Match(()), frozenset({"Deny"}), fails_closed=fails_closed
    )


def webhooks(*policies: BoundPolicy, address: WebhookClientConfig = SERVICE, **options):
    """Return the webhooks of both configurations."""
    computed = registration(Engine(policies), ["gatewright-system"])
    validating, mutating = computed.configurations("gatewright", address, **options)
    return validating["webhooks"], mutating["webhooks"]


def test_one_validating_policy_makes_one_webhook():
    """All fields are set explicitly, so that defaults of the API server cause no difference."""
    computed = registration(Engine([bound("a")]), ["gatewright-system"])
    validating, mutating = computed.configurations("gatewright", SERVICE)
    assert validating == {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "gatewright"},
        "webhooks": [
            {
                "name": "validate.gatewright.io",
                "clientConfig": {
                    "service": {
                        "namespace": "gatewright-system",
                        "name": "gatewright-webhook",
                        "port": 443,
                        "path": "/validate",
                    },
                    "caBundle": base64.b64encode(BUNDLE).decode(),
                },
                "rules": [
                    {
                        "apiGroups": ["apps"],
                        "apiVersions": ["v1"],
                        "resources": ["deployments"],
                        "operations": ["CREATE", "UPDATE"],
                        "scope": "*",
                    }
                ],
                "failurePolicy": "Fail",
                "matchPolicy": "Equivalent",
                "namespaceSelector": {
                    "matchExpressions": [
                        {
                            "key": "kubernetes.io/metadata.name",
                            "operator": "NotIn",
                            "values": ["gatewright-system", "kube-node-lease", "kube-system"],
                        }
                    ]
                },
                "objectSelector": {},
                "sideEffects": "None",
                "timeoutSeconds": 3,
                "admissionReviewVersions": ["v1"],
            }
        ],
    }
    assert mutating["webhooks"] == []


def test_a_mutating_policy_makes_a_mutating_webhook():
    """It has reinvocationPolicy IfNeeded and a short timeout."""
    validating, (webhook,) = webhooks(bound("a", mutates=True))
    assert validating == []
    assert webhook["name"] == "mutate.gatewright.io"
    assert webhook["reinvocationPolicy"] == "IfNeeded"
    assert webhook["timeoutSeconds"] == 1
    assert webhook["clientConfig"]["service"]["path"] == "/mutate"


def test_no_policy_asks_for_nothing():
    """Without policies, both configurations are empty."""
    assert webhooks() == ([], [])


def test_policies_that_fail_closed_share_a_webhook():
    """One denial has all of their violations."""
    (webhook,), _ = webhooks(bound("a"), bound("b", kinds=("Pod",)))
    assert [rule["resources"] for rule in webhook["rules"]] == [["pods"], ["deployments"]]


def test_policies_that_fail_open_have_a_webhook_of_their_own():
    """Policies that fail open do not weaken those that fail closed."""
    (closed, opened), _ = webhooks(bound("a"), bound("b", fails_closed=False, kinds=("Pod",)))
    assert (closed["name"], closed["failurePolicy"]) == ("validate.gatewright.io", "Fail")
    assert (opened["name"], opened["failurePolicy"]) == ("validate-ignore.gatewright.io", "Ignore")
    assert [rule["resources"] for rule in closed["rules"] + opened["rules"]] == [
        ["deployments"],
        ["pods"],
    ]


def test_a_rule_for_scale_has_only_update():
    """The rule for /scale has only UPDATE."""
    (webhook,), _ = webhooks(bound("a", kinds="scalable"))
    apps = [rule for rule in webhook["rules"] if rule["apiGroups"] == ["apps"]]
    assert [(rule["resources"], rule["operations"]) for rule in apps] == [
        (["deployments", "replicasets", "statefulsets"], ["CREATE", "UPDATE"]),
        (["deployments/scale", "replicasets/scale", "statefulsets/scale"], ["UPDATE"]),
    ]


@pytest.mark.parametrize("operations", [None, ["CREATE"]])
def test_a_rule_has_all_versions_of_a_custom_kind_that_a_policy_names(operations):
    """A cluster may serve only one of them; a rule without it matches no request."""
    named = [["example.com/v1/Issuer"], ["example.com/v1beta1/Issuer"]]
    clause = {"operations": operations} if operations else {}
    for match in ([[*named[0], *named[1]]], named):
        clauses = [{"kinds": kinds, **clause} for kinds in match]
        (webhook,), _ = webhooks(denying("issuers", *clauses))
        (rule,) = webhook["rules"]
        assert (rule["apiVersions"], rule["resources"]) == (["v1beta1", "v1"], ["issuers"])


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        (
            [
                denying("a", {"kinds": ["example.com/v1/Issuer"]}),
                denying("b", {"kinds": ["example.com/v1beta1/Issuer"]}),
            ],
            [["v1beta1"], ["v1"]],
        ),
        (
            [
                bound("a", kinds="scalable"),
                denying("b", {"kinds": ["autoscaling/v2/HorizontalPodAutoscaler"]}),
            ],
            [["v2"], ["v1", "v2"]],
        ),
    ],
)
def test_policies_that_name_different_versions_have_a_webhook_each(policies, expected):
    """The API server converts an object for each webhook, so that each policy sees its version."""
    found, _ = webhooks(*policies)
    assert [each["name"] for each in found] == [
        "validate.gatewright.io",
        "validate-2.gatewright.io",
    ]
    kind = found[0]["rules"][0]["resources"]
    rules = [rule for each in found for rule in each["rules"] if rule["resources"] == kind]
    assert [rule["apiVersions"] for rule in rules] == expected


def test_a_rule_matches_objects_in_namespaces_and_others():
    """Whether a custom kind is cluster-scoped is unknown to the policy that names it."""
    (webhook,), _ = webhooks(bound("a", kinds=("Namespace", "ConfigMap")))
    assert [(rule["resources"], rule["scope"]) for rule in webhook["rules"]] == [
        (["configmaps", "namespaces"], "*")
    ]


def test_a_rule_for_exec_has_only_connect():
    """The rule for exec has only CONNECT."""
    (webhook,), _ = webhooks(bound("a", kinds="exec"))
    (rule,) = webhook["rules"]
    assert (rule["resources"], rule["operations"]) == (["pods/attach", "pods/exec"], ["CONNECT"])


def test_a_rule_names_every_version_of_a_kind():
    """One rule names all versions."""
    (webhook,), _ = webhooks(bound("a", kinds=("HorizontalPodAutoscaler",)))
    assert webhook["rules"][0]["apiVersions"] == ["v1", "v2"]


@pytest.mark.parametrize("url", ["https://127.0.0.1:9443", "https://127.0.0.1:9443/"])
def test_a_url_takes_the_place_of_the_service(url):
    """A webhook outside of the cluster is registered by URL."""
    (webhook,), _ = webhooks(bound("a"), address=WebhookClientConfig(url, BUNDLE))
    assert webhook["clientConfig"]["url"] == "https://127.0.0.1:9443/validate"
    assert "service" not in webhook["clientConfig"]


def test_an_injected_bundle_is_kept():
    """A caBundle set by another controller stays; without a caBundle, there are no rules."""
    (webhook,), _ = webhooks(
        bound("a"), address=WebhookClientConfig(SERVICE.at, None), active=False
    )
    assert "caBundle" not in webhook["clientConfig"]
    assert webhook["rules"] == []


def test_the_order_of_policies_makes_no_difference():
    """The same policies are the same registration."""
    policies = [bound("a"), bound("b", kinds=("Pod",)), bound("c", kinds="scalable")]
    assert webhooks(*policies) == webhooks(*reversed(policies))


def test_published_bundles_are_read():
    """The caBundle of each webhook is read; a missing one is empty."""
    validating, _ = registration(Engine([bound("a")]), []).configurations("gatewright", SERVICE)
    assert published_bundles(validating) == [BUNDLE]
    assert published_bundles({"webhooks": [{"clientConfig": {"url": "https://x"}}]}) == [b""]
    assert (
        published_bundles({"webhooks": None})
        == published_bundles({})
        == published_bundles(None)
        == []
    )


def test_the_timeouts_of_the_webhooks_are_settings():
    """The timeouts of validation and mutation are settings, with defaults of 3 s and 1 s."""
    address = WebhookClientConfig(SERVICE.at, BUNDLE, Timeouts(validating=10, mutating=5))
    both = webhooks(bound("a"), bound("b", mutates=True), address=address)
    assert [[webhook["timeoutSeconds"] for webhook in each] for each in both] == [[10], [5]]
