"""The scope and the actions of a policy, as kubectl and the audit log show them."""

import json
from typing import Any

import pytest

from config.settings import Settings
from gatewright.processes.planners import planners_of
from kube.resource import JsonObject
from tests.e2e import manifests
from tests.e2e.policies.conftest import (
    API_VERSION,
    HOME,
    OPEN,
    ROLLOUTS,
    Installation,
    few,
    too_many,
)
from tests.e2e.test_production import denial, forbidden
from tests.gatewright.started import unnumber_webhooks

pytestmark = pytest.mark.controlplane("kube-controller-manager")

SO_BEFORE = "(Already present before this update; not denied.)"


def warned(*lines: str) -> str:
    """Return the warnings that kubectl prints."""
    return "".join(f"Warning: {line}\n" for line in lines)


def said(
    installation: Installation, *args: str, input: JsonObject | None = None
) -> tuple[int, str]:
    """Return the exit code and the stderr of kubectl."""
    result = installation.plane.kubectl(*args, input=input, check=False)
    return result.returncode, unnumber_webhooks(result.stderr)


@pytest.fixture
def big(installation: Installation, namespace: str) -> str:
    """A namespace with a Deployment of 20 replicas and a finalizer that is older than the policy against it."""
    deployment = manifests.deployment("big", replicas=20)
    deployment["metadata"]["finalizers"] = ["example.com/hold"]
    installation.kubectl("create", "-n", namespace, "-f-", input=deployment)
    installation.apply(few(namespace))
    installation.until(
        "denied", lambda: installation.denied(namespace, manifests.deployment(replicas=4))
    )
    return namespace


def test_an_update_that_makes_nothing_worse_is_allowed(
    installation: Installation, big: str
) -> None:
    """Another image, or fewer but still too many replicas, is allowed with a warning; more replicas are denied."""
    image = ("set", "image", "deployment/big", "app=registry.company.com/shop:1.5", "-n", big)
    assert said(installation, *image) == (0, warned(f"{too_many(20, 3)} {SO_BEFORE}"))

    def patched(replicas: int) -> tuple[int, str]:
        patch = f'--patch={{"spec":{{"replicas":{replicas}}}}}'
        return said(installation, "patch", "deployment/big", "-n", big, "--type=merge", patch)

    assert patched(30) == (1, f"Error from server (Forbidden): {denial(too_many(30, 3))}")
    assert patched(15) == (0, warned(f"{too_many(15, 3)} {SO_BEFORE}"))
    assert patched(20) == (1, f"Error from server (Forbidden): {denial(too_many(20, 3))}")
    scale = ("scale", "deployment/big", "-n", big)
    assert said(installation, *scale, "--replicas=16") == (
        1,
        f"Error from server (Forbidden): {denial(too_many(16, 3))}",
    )
    assert said(installation, *scale, "--replicas=10") == (
        0,
        warned(f"{too_many(10, 3)} {SO_BEFORE}"),
    )
    assert patched(3) == (0, "")
    assert patched(4) == (1, f"Error from server (Forbidden): {denial(too_many(4, 3))}")


def test_a_violating_object_can_be_deleted(installation: Installation, big: str) -> None:
    """Deletion and the removal of its finalizer are allowed without a warning, though nothing is tolerated."""
    installation.apply(few(big, allowExistingViolations=False))
    assert said(installation, "delete", "deployment/big", "-n", big, "--wait=false") == (0, "")
    assert "deletionTimestamp" in installation.get("deployment/big", big)["metadata"]
    patch = '--patch={"metadata":{"finalizers":null}}'
    assert said(installation, "patch", "deployment/big", "-n", big, "--type=merge", patch) == (
        0,
        "",
    )
    installation.wait("deployment/big", "delete", big)


def test_a_policy_may_insist(installation: Installation, big: str) -> None:
    """With allowExistingViolations: false an update must fix existing violations."""
    installation.apply(few(big, allowExistingViolations=False))
    image = ("set", "image", "deployment/big", "app=registry.company.com/shop:1.5", "-n", big)
    code, told = said(installation, *image)
    assert (code, told) == (
        1,
        f"error: failed to patch image update to pod template: {denial(too_many(20, 3))}",
    )
    patch = '--patch={"spec":{"replicas":3}}'
    assert said(installation, "patch", "deployment/big", "-n", big, "--type=merge", patch) == (
        0,
        "",
    )


def test_a_mirror_changes_pods_and_no_replica_set(
    installation: Installation, namespace: str
) -> None:
    """A Deployment from before the policy rolls out once: its controller recognizes the new ReplicaSet."""
    shop = ("deployment/shop", "-n", namespace)
    deployment, mirrored = (
        manifests.deployment(replicas=1, image="nginx:1.21"),
        "mirror.example/library/nginx:1.21",
    )
    installation.kubectl("create", "-n", namespace, "-f-", input=deployment)
    mirrors = {"mirrors": {"docker.io": "mirror.example"}}
    installation.apply(few(namespace, name="mirror", policy="registry-rewrite", params=mirrors))

    def images(of: str) -> set[str]:
        path = (
            "{.items[*].spec.containers[*].image}{.items[*].spec.template.spec.containers[*].image}"
        )
        return set(installation.kubectl("get", of, "-n", namespace, f"-o=jsonpath={path}").split())

    def is_mirrored() -> bool:
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments?dryRun=All"
        return mirrored in str(
            installation.api.request("POST", path, deployment | {"metadata": {"name": "other"}})
        )

    installation.until("registered", is_mirrored)
    change = {"spec": {"template": {"metadata": {"annotations": {"look": "again"}}}}}
    installation.kubectl("patch", *shop, "--type=merge", f"-p={json.dumps(change)}")
    for sign in ("observedGeneration}=2", "updatedReplicas}=1"):
        installation.kubectl("wait", *shop, f"--for=jsonpath={{.status.{sign}", "--timeout=90s")
    installation.until("created", lambda: mirrored in images("pods"))
    assert (images("deployments"), images("replicasets")) == ({"nginx:1.21"}, {"nginx:1.21"})
    assert len(installation.kubectl("get", "replicasets", "-n", namespace, "-o=name").split()) == 2


def annotated(installation: Installation, mark: int, namespace: str) -> list[dict[str, str]]:
    """Return our annotations in the audit log of each creation of a Deployment, in order."""
    events = installation.plane.audit_events(
        mark, verb="create", resource="deployments", namespace=namespace
    )
    return [
        {
            key.partition("/")[2]: value
            for key, value in event.get("annotations", {}).items()
            if "gatewright.io/" in key
        }
        for event in events
    ]


@pytest.mark.parametrize(
    "actions",
    [["Warn", "Audit"], ["Deny", "Warn", "Audit"]],
    ids="+".join,
)
def test_actions_in_any_combination(
    installation: Installation, namespace: str, actions: list[str]
) -> None:
    """Deny refuses, Warn tells, Audit writes; each action that found something is in the audit log under its name."""
    mark = installation.plane.audit_mark()
    installation.apply(few(namespace, validationActions=actions))
    line = too_many(4, 3)

    def judged() -> bool:
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments?dryRun=All"
        installation.api.request("POST", path, manifests.deployment(replicas=4))
        return bool(annotated(installation, mark, namespace)[-1])

    installation.until("judged", judged)
    mark = installation.plane.audit_mark()
    code, told = said(
        installation, "create", "-n", namespace, "-f-", input=manifests.deployment(replicas=4)
    )
    assert code == ("Deny" in actions)
    warning = warned(line) if "Warn" in actions else ""
    assert told == warning + (forbidden(line) if "Deny" in actions else "")
    assert annotated(installation, mark, namespace) == [
        {action.lower(): line for action in actions}
    ]


def test_what_was_tolerated_is_in_the_audit_log(installation: Installation, big: str) -> None:
    """An update admitted with a violation is reported."""
    mark = installation.plane.audit_mark()
    installation.kubectl("label", "deployment/big", "-n", big, "a=b")
    (event,) = installation.plane.audit_events(
        mark, verb="patch", resource="deployments", namespace=big
    )
    ours = {
        unnumber_webhooks(key): value
        for key, value in event["annotations"].items()
        if "gatewright.io/" in key
    }
    assert ours == {"validate.gatewright.io/tolerated": too_many(20, 3)}


@pytest.mark.parametrize(
    ("clause", "judged"),
    [
        ({"subresources": [""], "names": ["sh?p"]}, {"create", "patch"}),
        (
            {"objectSelector": {"matchLabels": {"tier": "web"}}},
            {"create", "patch", "scale"},
        ),  # by the parent's labels
        (
            {"kinds": ["Deployment"], "operations": ["UPDATE"], "subresources": ["", "scale"]},
            {"patch", "scale"},
        ),
    ],
    ids=["object and name", "labels", "kind, operation and subresource"],
)
def test_a_match_clause_selects_exactly_its_requests(
    installation: Installation, namespace: str, clause: JsonObject, judged: set[str]
) -> None:
    """Of creation, patch and scale of a Deployment, only the selected ones are denied."""
    policy = few(namespace, match={"any": [clause | {"namespaces": [namespace]}]})
    guard = few(namespace, 100, name="guard")  # sees to it that all three are sent to the webhook
    installation.apply(policy, guard)
    installation.until(
        "registered", lambda: installation.denied(namespace, manifests.deployment(replicas=101))
    )
    labels = {"labels": {"tier": "web"}}
    shop = manifests.deployment(replicas=3)
    shop["metadata"] |= labels
    installation.kubectl("create", "-n", namespace, "-f-", input=shop)
    other = manifests.deployment(replicas=4)
    other["metadata"] |= labels
    root = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    stored = json.loads(installation.api.request("GET", f"{root}/shop")[1])
    scale = json.loads(installation.api.request("GET", f"{root}/shop/scale")[1])
    installation.kubectl("delete", "deployment/shop", "-n", namespace)

    def codes() -> dict[str, int]:
        create = installation.api.request("POST", f"{root}?dryRun=All", other)[0]
        installation.kubectl("create", "-n", namespace, "-f-", input=shop)
        for object in (stored, scale):
            object["metadata"].pop("resourceVersion", None)
            object["metadata"].pop("uid", None)
            object["spec"]["replicas"] = 4
        put = installation.api.request("PUT", f"{root}/shop?dryRun=All", stored)[0]
        scaled = installation.api.request("PUT", f"{root}/shop/scale?dryRun=All", scale)[0]
        return {"create": create, "patch": put, "scale": scaled}

    assert {each for each, code in codes().items() if code == 403} == judged


def test_excluded_users_are_not_judged(installation: Installation, namespace: str) -> None:
    """Users, groups and ServiceAccounts by globs; everybody else is denied."""
    exclude = {
        "users": ["bob*"],
        "groups": ["break-glass"],
        "serviceAccounts": ["kube-*/*", f"{namespace}/robot"],
    }
    installation.apply(
        few(namespace, match={"any": [{"namespaces": [namespace]}], "exclude": exclude})
    )
    installation.until(
        "denied", lambda: installation.denied(namespace, manifests.deployment(replicas=4))
    )

    def code(user: str, *groups: str) -> int:
        who = [f"--as={user}", *(f"--as-group={group}" for group in ("system:masters", *groups))]
        create = ("create", "-n", namespace, "-f-", "--dry-run=server")
        return said(installation, *create, *who, input=manifests.deployment(replicas=4))[0]

    account = "system:serviceaccount"
    left_alone = {
        user: not code(user, *groups)
        for user, *groups in (
            ("bobby",),
            ("alice", "break-glass"),
            (f"{account}:kube-system:job-controller",),
            (f"{account}:{namespace}:robot",),
            ("rob",),
            (f"{account}:{namespace}:default",),
            (f"{account}:default:robot",),
        )
    }
    assert [user for user, alone in left_alone.items() if not alone] == [
        "rob",
        f"{account}:{namespace}:default",
        f"{account}:default:robot",
    ]


def makers(*plurals: str) -> set[tuple[str, str, str]]:
    """Return the kinds to register if policies judge these: also those that create such objects."""
    planners = planners_of(Settings(), HOME)
    targets = [
        target
        for planner in planners
        if {kind.plural for kind in planners.reach(planner)} & set(plurals)
        for target in planner.targets
    ]
    return {
        (
            target.kind.group,
            "/".join(filter(None, (target.kind.plural, target.subresource))),
            operation,
        )
        for target in targets
        for operation in target.operations
    }


def test_the_registration_follows_the_policies(installation: Installation, namespace: str) -> None:
    """The registration covers the kinds that policies judge, and their planned parents.

    It widens and narrows again.
    """
    ours = {"gatewright.io"} | {planner.kind.group for planner in planners_of(Settings(), HOME)}
    installation.until(
        "nothing but our own", lambda: {group for group, *_ in installation.rules()} == ours
    )
    before = installation.rules()
    assert {operation for *_, operation in before} == {"CREATE", "UPDATE"}
    service_types = few(namespace, name="services", policy="service-types", params={})
    installation.apply(service_types)
    services = {("", "services", "CREATE"), ("", "services", "UPDATE")} | makers("services")
    assert ("example.com", "webapps/scale", "UPDATE") in services
    installation.until("wider", lambda: installation.rules() == before | services)
    match = {"any": [{"namespaces": [namespace], "kinds": ["StatefulSet"]}]}
    installation.apply(few(namespace, match=match))
    sets = {
        ("apps", "statefulsets", "CREATE"),
        ("apps", "statefulsets", "UPDATE"),
        ("apps", "statefulsets/scale", "UPDATE"),
    } | makers("statefulsets")
    installation.until("wider still", lambda: installation.rules() == before | services | sets)
    installation.kubectl("delete", "cap/services")
    installation.until("narrower", lambda: installation.rules() == before | sets)
    installation.kubectl("delete", "cap/few")
    installation.until("as before", lambda: installation.rules() == before)


def rollout(**metadata: Any) -> JsonObject:
    """Return an Argo Rollout."""
    template = {
        "metadata": {"labels": {"app": "shop"}},
        "spec": {"containers": [manifests.container(image="nginx:1.21")]},
    }
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "shop", **metadata},
        "spec": {"replicas": 2, "template": template},
    }


def test_a_custom_kind_with_pods_is_judged(installation: Installation, namespace: str) -> None:
    """Its declared pod path is used; the kind is registered when a policy needs it."""
    params = {"registries": ["registry.company.com"]}
    installation.apply(few(namespace, policy="image-registries", params=params))
    installation.until("denied", lambda: installation.denied(namespace, rollout()))
    assert ("argoproj.io", "rollouts", "CREATE") in installation.rules()
    assert installation.refusal("create", "-n", namespace, "-f-", input=rollout()) == forbidden(
        'few: spec.template.spec.containers[name=app].image: "nginx:1.21" comes from docker.io; images must come from '
        "approved registry registry.company.com. Push it there, or ask for an exception."
    )


def test_a_policy_module_of_a_team_is_used_like_a_built_in_policy(
    installation: Installation, namespace: str
) -> None:
    """A module from --policies-dir: named by an object of the cluster, and by a tenant's."""
    tenants = {
        "apiVersion": API_VERSION,
        "kind": "AdmissionPolicy",
        "metadata": {"name": "teams", "namespace": namespace},
        "spec": {"policy": "team-labels"},
    }
    installation.apply(few(namespace, name="labels", policy="team-labels", params={}), tenants)
    line = "metadata.labels: team missing; pods belong to a team. Add the label."
    for made in (rollout(), manifests.cron_job(), manifests.deployment()):
        installation.until("denied", lambda made=made: installation.denied(namespace, made))
        told = installation.refusal("create", "-n", namespace, "-f-", input=made)
        assert told == forbidden(f"labels: {line}", f"{namespace}/teams: {line}")
    installation.kubectl("create", "-n", namespace, "-f-", input=rollout(labels={"team": "shop"}))
    wrong = few(namespace, policy="team-label", params={})
    assert (
        'spec.policy: no policy "team-label"; did you mean "team-labels"?'
        in installation.refusal("apply", "-f-", input=wrong)
    )


def versioned(name: str, version: str, expression: str, message: str) -> JsonObject:
    """Return a policy about Widgets in one version."""
    match = {"any": [{"kinds": [f"example.net/{version}/Widget"]}]}
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"match": match, "validations": [{"expression": expression, "message": message}]},
    }


def test_policies_that_name_different_versions_see_a_custom_kind_in_theirs(
    installation: Installation, namespace: str
) -> None:
    """The API server converts what a user sends in one version for the policy about another."""
    served = {"served": True, "schema": {"openAPIV3Schema": OPEN}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    versions = [
        {"name": "v1", "storage": True, **served},
        {"name": "v1beta1", "storage": False, **served},
    ]
    definition = ROLLOUTS | {
        "metadata": {"name": "widgets.example.net"},
        "spec": {
            "group": "example.net",
            "scope": "Namespaced",
            "names": names,
            "versions": versions,
        },
    }
    installation.kubectl("apply", "-f-", input=definition)
    installation.kubectl("wait", "--for=condition=Established", "crd/widgets.example.net")
    in_v1 = versioned("new", "v1", "object.apiVersion.endsWith('/v1')", "not sent as v1")
    in_beta = versioned("old", "v1beta1", "object.apiVersion.endsWith('/v1beta1')", "not as beta")
    nothing = versioned("size", "v1beta1", "!has(object.size)", "has a size")
    installation.apply(in_v1, in_beta, nothing)
    for version in ("v1", "v1beta1"):
        widget = {
            "apiVersion": f"example.net/{version}",
            "kind": "Widget",
            "metadata": {"name": "it"},
        }
        installation.until(
            "judged",
            lambda it=widget: installation.denied(namespace, it | {"size": 1}),
        )
        refusal = installation.refusal("create", "-n", namespace, "-f-", input=widget | {"size": 1})
        assert refusal.endswith("denied the request: 1 violation\n- size: has a size\n")
        assert not installation.denied(namespace, widget)
