import pytest

from config.api.webapp import WebApp, WebAppStatus
from controller.rights import PolicyRule, of_definitions
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Plan
from kube.resource import Resource
from tests.config import chart_rights
from tests.controlplane.plane import ControlPlane

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
MONITORS = Resource("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor")


def kind(**says) -> PlannedKind[WebApp]:
    """A kind that declares only the given parts."""
    return PlannedKind(WebApp, plan=lambda *_: Plan((), WebAppStatus()), **says)


def verbs(rules: list[PolicyRule], group: str, resource: str) -> set[str]:
    """Return the verbs of the only rule for a resource."""
    (rule,) = [
        rule for rule in rules if rule["apiGroups"] == [group] and resource in rule["resources"]
    ]
    return set(rule["verbs"])


@pytest.mark.parametrize(
    ("says", "group", "resource", "expected"),
    [
        ({}, "example.com", "webapps", {"get", "list", "watch"}),
        (
            {"finalizer": "example.com/done"},
            "example.com",
            "webapps",
            {"get", "list", "watch", "patch"},
        ),
        ({}, "example.com", "webapps/status", {"patch"}),
        ({}, "example.com", "webapps/finalizers", {"update"}),
        (
            {"owns": [DEPLOYMENTS]},
            "apps",
            "deployments",
            {"get", "list", "watch", "create", "patch"},
        ),
        (
            {"owns": [NODES], "creates_only": [NODES]},
            "",
            "nodes",
            {"get", "list", "watch", "create", "patch"},
        ),
        ({"reads": [NODES]}, "", "nodes", {"get", "list", "watch"}),
        (
            {"owns": [DEPLOYMENTS], "reads": [DEPLOYMENTS]},
            "apps",
            "deployments",
            {"get", "list", "watch", "create", "patch"},
        ),
        ({"reads": [NODES], "patches": [NODES]}, "", "nodes", {"get", "list", "watch", "patch"}),
        (
            {"owns": [DEPLOYMENTS], "deletes": [DEPLOYMENTS]},
            "apps",
            "deployments",
            {"get", "list", "watch", "create", "patch", "delete"},
        ),
        ({}, "events.k8s.io", "events", {"create", "patch"}),
    ],
)
def test_the_controller_gets_the_rights_of_its_kinds(says, group, resource, expected):
    """Each declaration grants exactly the necessary verbs."""
    assert verbs(chart_rights.controller([kind(**says)]), group, resource) == expected


def test_the_crds_of_optional_resources_may_be_seen_and_no_others():
    """Their installation is noticed by a watch of these names; Kubernetes' own kinds have no CRD."""
    resources = (NODES, DEPLOYMENTS, MONITORS)
    rules = of_definitions(kind(reads=resources, optional=resources).optional)
    assert rules == [
        {
            "apiGroups": ["apiextensions.k8s.io"],
            "resources": ["customresourcedefinitions"],
            "verbs": ["list", "watch"],
            "resourceNames": ["servicemonitors.monitoring.coreos.com"],
        }
    ]
    assert of_definitions([NODES]) == []


def test_undeclared_rights_are_not_granted():
    """Without kinds, only events, the policies' status, and the policies' CRDs remain."""
    rules = chart_rights.controller([])
    assert rules[-1]["resourceNames"] == [
        "admissionpolicies.gatewright.io",
        "clusteradmissionpolicies.gatewright.io",
        "policyexceptions.gatewright.io",
    ]
    assert [rule["resources"] for rule in rules] == [
        ["events"],
        ["admissionpolicies"],
        ["admissionpolicies/status"],
        ["clusteradmissionpolicies"],
        ["clusteradmissionpolicies/status"],
        ["policyexceptions"],
        ["policyexceptions/status"],
        ["customresourcedefinitions"],
    ]


def test_the_webhook_writes_nothing():
    """The process that parses users' requests has read rights only."""
    assert {verb for rule in chart_rights.webhook([DEPLOYMENTS]) for verb in rule["verbs"]} == {
        "get",
        "list",
        "watch",
    }


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("view", {"get", "list", "watch"}),
        ("edit", {"get", "list", "watch", "create", "delete", "patch", "update"}),
        (
            "admin",
            {"get", "list", "watch", "create", "delete", "patch", "update", "deletecollection"},
        ),
    ],
)
def test_people_get_the_rights_of_their_role(role, expected):
    """The built-in roles include Gatewright's kinds and their scale subresource."""
    rules = chart_rights.people([kind()])[role]
    assert verbs(rules, "example.com", "webapps") == expected
    assert verbs(rules, "example.com", "webapps/scale") == expected


CONTROLLER = "gatewright-controller-manager"
WEBHOOK = "gatewright-webhook"
OURS = "-n=gatewright-system"


@pytest.mark.controlplane
@pytest.mark.parametrize(
    ("account", "question", "expected"),
    [
        (CONTROLLER, ["list", "webapps", "-A"], "yes"),
        (CONTROLLER, ["patch", "webapps", "--subresource=status"], "yes"),
        (CONTROLLER, ["delete", "webapps"], "no"),
        (CONTROLLER, ["create", "deployments"], "yes"),
        (CONTROLLER, ["delete", "configmaps"], "no"),
        (CONTROLLER, ["patch", "validatingwebhookconfigurations/gatewright", "-A"], "yes"),
        (CONTROLLER, ["create", "validatingwebhookconfigurations", "-A"], "no"),
        (CONTROLLER, ["patch", "validatingwebhookconfigurations/other", "-A"], "no"),
        (CONTROLLER, ["update", "leases/gatewright-controller-lock", OURS], "yes"),
        (CONTROLLER, ["update", "leases/other", OURS], "no"),
        (CONTROLLER, ["watch", "secrets/gatewright-ca", OURS], "yes"),
        (CONTROLLER, ["create", "secrets"], "yes"),
        (CONTROLLER, ["patch", "secrets"], "yes"),  # to adopt those of a restored namespace
        (CONTROLLER, ["update", "secrets"], "no"),
        (CONTROLLER, ["delete", "secrets"], "no"),
        (WEBHOOK, ["watch", "namespaces", "-A"], "yes"),
        (WEBHOOK, ["get", "secrets", OURS], "no"),
        (WEBHOOK, ["create", "events"], "no"),
        (WEBHOOK, ["list", "webapps", "-A"], "yes"),
        (WEBHOOK, ["patch", "webapps"], "no"),
        (WEBHOOK, ["list", "configmaps"], "no"),
    ],
)
def test_the_api_server_grants_these_rights(served: ControlPlane, account, question, expected):
    """The API server's access reviews for Gatewright's ServiceAccounts agree."""
    user = f"--as=system:serviceaccount:gatewright-system:{account}"
    assert served.kubectl("auth", "can-i", *question, user, check=False).stdout.strip() == expected
