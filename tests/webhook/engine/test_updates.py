"""An update may keep a violation or reduce it, and nothing else: raw values are compared, never messages."""

from datetime import UTC, datetime

import pytest

from tests.webhook.asking import ask
from webhook.engine import NOW, PARENT, Engine, Request
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySet, in_force

LONG = "x" * 300
TODAY = datetime(2026, 11, 21, tzinfo=UTC)


def written(kind, spec, **metadata):
    """Return an object of a policy set."""
    return {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "it"} | metadata,
        "spec": spec,
    }


def engine(policy, *exceptions, match=None, **params):
    """Return an engine of one policy, with exceptions from it."""
    spec = {"policy": policy, "params": params} | ({"match": match} if match else {})
    objects = [
        bind(value, catalogue()) for value in (written("ClusterAdmissionPolicy", spec), *exceptions)
    ]
    return Engine(in_force(PolicySet((objects[0],), tuple(objects[1:])), catalogue()))


def excepting(expires="2026-12-01T00:00:00Z", **entry):
    """Return an exception from that policy."""
    entries = [{"policy": "it"} | entry]
    spec = {"reason": "moving", "expires": expires, "exceptions": entries}
    return written("PolicyException", spec, name="moving", namespace=None)


def pod(labels=None, **spec):
    """Write a Pod."""
    return {"kind": "Pod", "metadata": {"labels": labels or {}}, "spec": spec}


def container(**fields):
    """Write a Pod of one container."""
    return pod(containers=[{"name": "app", "image": "a.io/app"} | fields])


def host_path(path):
    """Write a Pod that mounts a path of its node."""
    return pod(volumes=[{"name": "data", "hostPath": {"path": path}}])


def sysctl(value):
    """Write a Pod that sets a sysctl."""
    return pod(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": value}]})


def limits(**amounts):
    """Write a Pod whose container has these limits."""
    return container(resources={"limits": amounts})


def dropping(*capabilities):
    """Write a Pod whose container drops these capabilities."""
    return container(securityContext={"capabilities": {"drop": list(capabilities)}})


def flex_volume(**options):
    """Write a Pod with a volume of a driver."""
    return pod(volumes=[{"name": "data", "flexVolume": {"driver": "a/b", "options": options}}])


def host_port(address):
    """Write a Pod that opens a port of its node on an address."""
    return container(ports=[{"containerPort": 80, "hostPort": 80, "hostIP": address}])


def outcome(judge, object, old, **changes):
    """Return the verdict on an update; None if the policy was not run."""
    looked_up = {NOW: TODAY} | changes.pop("looked_up", {})
    asked = ask(object, old_object=old, looked_up=looked_up, **{"operation": "UPDATE", **changes})
    return next((each for each in judge.validate(asked).outcomes if each.policy == "it"), None)


@pytest.mark.parametrize(
    ("policy", "params", "old", "new"),
    [
        ("volume-types", {}, host_path("/var/log/app"), host_path("/")),
        ("pod-security", {"level": "restricted", "excluded_checks": []}, host_path("/var/log"), host_path("/")),
        ("host-path-volumes", {}, host_path(f"/{LONG}/var/log"), host_path(f"/{LONG}/etc/kubernetes")),
        ("image-registries", {"registries": ["a.io"]}, container(image=f"b.io/{LONG[:200]}/{LONG[:50]}1"),
         container(image=f"b.io/{LONG[:200]}/{LONG[:50]}2-evil")),
        ("sysctls", {}, sysctl("1"), sysctl("999999999")),
        ("resource-limits", {}, limits(cpu="1"), limits(memory="1Gi")),
        ("resource-limits", {}, limits(cpu="1"), limits()),
        ("required-labels", {"labels": {"1": "*", "2": "*"}}, pod({"2": "x"}), pod({"1": "x"})),
        ("capabilities", {}, dropping("NET_RAW", "MKNOD"), dropping("NET_RAW")),
        ("flex-volume-drivers", {}, flex_volume(), flex_volume(share="evil")),
        ("host-ports", {}, host_port("127.0.0.1"), host_port("0.0.0.0")),
        ("replica-limits", {"maximum": 3}, {"kind": "Deployment", "spec": {"replicas": 5}},
         {"kind": "Deployment", "spec": {"replicas": 6}}),
    ],
)  # fmt: skip
def test_a_worse_violation_is_denied(policy, params, old, new):
    """The same policy was violated at the same field before."""
    found = outcome(engine(policy, **params), new, old, kind=new["kind"])
    assert found.denies
    assert [each.path for each in found.violations]


@pytest.mark.parametrize(
    ("policy", "params", "old", "new"),
    [
        ("volume-types", {}, host_path("/var/log/app"), host_path("/var/log/app")),
        ("resource-limits", {}, limits(), limits(cpu="1")),
        ("resource-requests", {}, limits(), limits(memory="1Gi")),
        ("capabilities", {}, dropping(), dropping("NET_RAW")),
        ("capabilities", {}, dropping("NET_RAW"), dropping("NET_RAW", "MKNOD")),
        ("privileged-containers", {}, container(securityContext={"privileged": True}, image="a.io/app:1"),
         container(securityContext={"privileged": True}, image="a.io/app:2")),
        ("replica-limits", {"maximum": 3}, {"kind": "Deployment", "spec": {"replicas": 9}},
         {"kind": "Deployment", "spec": {"replicas": 6}}),
    ],
)  # fmt: skip
def test_a_violation_that_is_no_worse_is_allowed_with_a_warning(policy, params, old, new):
    """An existing object can be updated, and repaired step by step."""
    found = outcome(engine(policy, **params), new, old, kind=new["kind"])
    assert (found.denies, found.violations, len(found.tolerated)) == (False, (), 1)


def grants(resources, verbs, groups=("apps",)):
    """Write a Role of one rule."""
    rule = {"apiGroups": list(groups), "resources": resources, "verbs": verbs}
    return {"kind": "Role", "metadata": {"name": "it"}, "rules": [rule]}


@pytest.mark.parametrize(
    ("policy", "old", "new", "count"),
    [
        ("wildcard-rights", grants(["*"], ["*"]), grants(["pods"], ["*"]), 1),
        ("wildcard-rights", grants(["*"], ["*"]), grants(["*"], ["get", "list"]), 1),
        ("wildcard-rights", grants(["*"], ["*"]), grants(["*"], ["*", "get"]), 2),
        ("escalation-rights", grants(["*"], ["*"], ["*"]), grants(["roles"], ["*"], ["*"]), 1),
    ],
)
def test_a_role_with_wildcards_can_be_narrowed_step_by_step(policy, old, new, count):
    """Rights that a wildcard includes do not exceed the wildcard."""
    found = outcome(engine(policy), new, old, kind="Role")
    assert (found.violations, len(found.tolerated)) == ((), count)


def test_a_role_with_a_wildcard_gets_no_wider():
    """Another resource or verb is more, as is a wildcard in place of names."""
    for old, new in (
        (grants(["pods"], ["*"]), grants(["pods", "nodes"], ["*"])),
        (grants(["pods"], ["*"]), grants(["*"], ["*"])),
        (grants(["*"], ["get"]), grants(["*"], ["get", "delete"])),
        (named(grants(["*"], ["get"]), "*"), named(grants(["*"], ["get"]), "a")),
    ):
        assert outcome(engine("wildcard-rights"), new, old, kind="Role").denies


def named(role, *names):
    """Return a Role for some names: `*` is a name like any other there."""
    (rule,) = role["rules"]
    return role | {"rules": [rule | {"resourceNames": list(names)}]}


@pytest.mark.parametrize(
    ("policy", "bad", "good"),
    [
        ("run-as-user", {"runAsUser": 0}, {"runAsUser": 1}),
        ("run-as-non-root", {"runAsNonRoot": False}, {"runAsNonRoot": True}),
        ("group-ids", {"runAsGroup": 0}, {"runAsGroup": 1}),
        (
            "seccomp-profiles",
            {"seccompProfile": {"type": "Unconfined"}},
            {"seccompProfile": {"type": "RuntimeDefault"}},
        ),
        (
            "app-armor",
            {"appArmorProfile": {"type": "Unconfined"}},
            {"appArmorProfile": {"type": "RuntimeDefault"}},
        ),
        (
            "selinux-options",
            {"seLinuxOptions": {"type": "spc_t"}},
            {"seLinuxOptions": {"type": "container_t"}},
        ),
    ],
)
def test_a_tolerated_field_of_a_pod_covers_no_new_container(policy, bad, good):
    """A new container, or one that no longer sets its own value, would inherit it.

    One with its own value would not.
    """

    def inheriting(*inherits):
        contexts = ({"securityContext": None if each else good} for each in inherits)
        containers = [
            {"name": f"c{index}", "image": "a.io/app", **each}
            for index, each in enumerate(contexts)
        ]
        return pod(securityContext=bad, containers=containers)

    judge = engine(policy)
    assert not outcome(judge, inheriting(True, False), inheriting(True, False)).denies
    assert not outcome(judge, inheriting(False, False), inheriting(True, False)).denies
    assert not outcome(judge, inheriting(True, False, False), inheriting(True, False)).denies
    assert outcome(judge, inheriting(True, True), inheriting(True, False)).denies
    assert outcome(judge, inheriting(True, False, True), inheriting(True, False)).denies


ANONYMOUS = "system:anonymous"


def binding(*users):
    """Write a ClusterRoleBinding of some users."""
    subjects = [{"kind": "User", "name": user} for user in users]
    reference = {"roleRef": {"kind": "ClusterRole", "name": "edit"}, "subjects": subjects}
    return {"kind": "ClusterRoleBinding", "metadata": {"name": "it"}, **reference}


def service(*addresses):
    """Write a Service that takes some addresses."""
    return {"kind": "Service", "metadata": {"name": "it"}, "spec": {"externalIPs": list(addresses)}}


def ingress(*hosts):
    """Write an Ingress with a rule for each host."""
    rules = [{"host": host} if host else {} for host in hosts]
    return {"kind": "Ingress", "metadata": {"name": "it"}, "spec": {"rules": rules}}


def role(*rules):
    """Write a ClusterRole whose rules give all verbs on some resources each."""
    given = [
        {"apiGroups": [""], "resources": list(resources), "verbs": ["*"]} for resources in rules
    ]
    return {"kind": "ClusterRole", "metadata": {"name": "it"}, "rules": given}


@pytest.mark.parametrize(
    ("policy", "old", "new", "is_denied"),
    [
        ("anonymous-bindings", binding("jane", ANONYMOUS), binding(ANONYMOUS), False),
        ("anonymous-bindings", binding(ANONYMOUS), binding("jane", ANONYMOUS), False),
        ("external-ips", service("192.0.2.1", "192.0.2.2"), service("192.0.2.2"), False),
        ("external-ips", service("192.0.2.1", "192.0.2.2"), service("192.0.2.3"), True),
        ("ingress-hosts", ingress("a.example", ""), ingress(""), False),
        ("ingress-hosts", ingress(""), ingress("", ""), True),
        ("ingress-tls", ingress("a.example", "b.example"), ingress("b.example"), False),
        ("ingress-tls", ingress("a.example"), ingress("a.example", "b.example"), True),
        ("wildcard-rights", role(["pods"], ["secrets"]), role(["secrets"]), False),
        ("wildcard-rights", role(["pods"], ["secrets"]), role(["secrets", "pods"]), True),
    ],
)
def test_an_item_that_moves_in_its_list_is_the_same(policy, old, new, is_denied):
    """Removing an item of a list without names is no violation; adding an equal one is."""
    found = outcome(engine(policy), new, old, kind=new["kind"])
    assert (found.denies, bool(found.tolerated)) == (
        is_denied,
        not is_denied or policy == "ingress-hosts",
    )


@pytest.mark.parametrize(
    ("old", "new", "is_denied"),
    [
        ([{}], [{}, {}], True),
        ([{}], [{}, {"cpu": "1"}], True),
        ([{}, {}], [{"cpu": "1"}, {}], False),
        ([{"cpu": "1"}, {}], [{}, {}], False),
    ],
)
def test_the_number_of_violations_of_a_field_may_not_increase(old, new, is_denied):
    """A custom kind may have two containers of one name; the second is new."""

    def containers(limits):
        app = {"name": "app", "image": "a.io/app"}
        return pod(containers=[app | {"resources": {"limits": each}} for each in limits])

    found = outcome(engine("resource-limits"), containers(new), containers(old))
    assert (found.denies, bool(found.tolerated)) == (is_denied, True)


@pytest.mark.parametrize(
    ("old", "new", "is_denied"), [([], ["a"], False), (["a"], [], True), (["a"], ["b"], True)]
)
def test_a_rule_for_some_names_gives_less_than_one_for_any(old, new, is_denied):
    """Adding resourceNames to a rule does not make a role worse."""
    before, after = role(["secrets"]), role(["secrets"])
    before["rules"][0]["resourceNames"], after["rules"][0]["resourceNames"] = old, new
    assert outcome(engine("wildcard-rights"), after, before, kind="ClusterRole").denies is is_denied


DEFAULT_ROLE = {"kubernetes.io/bootstrapping": "rbac-defaults"}
SELECTED = {"any": [{"objectSelector": {"matchLabels": {"tier": "web"}}}]}
PRIVILEGED = {
    "containers": [{"name": "app", "image": "a", "securityContext": {"privileged": True}}]
}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pod({}, **PRIVILEGED), pod({"tier": "web"}, **PRIVILEGED)),
        (pod({"tier": "web"}), pod({}, **PRIVILEGED)),
        (pod({"tier": "web"}), pod({"tier": "web"}, **PRIVILEGED)),
    ],
)
def test_changing_a_label_hides_no_violation(old, new):
    """An objectSelector matches the new or the old object, and a violation it did not match was never tolerated."""
    assert outcome(engine("privileged-containers", match=SELECTED), new, old).denies


@pytest.mark.parametrize(
    ("old", "new"),
    [({}, {"tier": "web"}), ({"tier": "web"}, {}), ({"tier": "web"}, {"tier": "web"})],
)
def test_a_pod_template_is_selected_by_old_and_new_labels(old, new):
    """A podSelector matches a Deployment by its pods' labels, not by its own."""

    def deployment(labels, spec):
        template = {"metadata": {"labels": labels}, "spec": spec}
        return {"kind": "Deployment", "metadata": {"name": "it"}, "spec": {"template": template}}

    judge = engine("privileged-containers", match=OF_PODS)
    before, after = deployment(old, {}), deployment(new, PRIVILEGED)
    assert outcome(judge, after, before, kind="Deployment").denies
    assert outcome(judge, deployment({}, PRIVILEGED), deployment({}, {}), kind="Deployment") is None


def test_an_object_without_the_label_is_not_selected():
    """Neither the old nor the new object has it."""
    judge = engine("privileged-containers", match=SELECTED)
    assert outcome(judge, pod({}, **PRIVILEGED), pod({})) is None


def test_a_deleted_object_is_selected_by_its_labels():
    """On DELETE there is only the old object."""
    judge = engine("default-roles", match=SELECTED)
    role = {"kind": "Role", "metadata": {"name": "it", "labels": {"tier": "web", **DEFAULT_ROLE}}}
    assert outcome(judge, None, role, kind="Role", operation="DELETE").denies


OF_PODS = {"any": [{"podSelector": {"matchLabels": {"tier": "web"}}}]}


@pytest.mark.parametrize("match", [SELECTED, OF_PODS], ids=["object", "pod"])
@pytest.mark.parametrize(("labels", "is_denied"), [({"tier": "web"}, True), ({}, False)])
def test_a_subresource_is_selected_by_its_parents_labels(labels, is_denied, match):
    """/scale has no labels; those of the parent, or of its pod template, are looked up."""
    own = {"metadata": {"labels": labels}}
    parent = {PARENT: own if match is SELECTED else {"spec": {"template": own}}}
    judge = engine("replica-limits", match=match, maximum=3)
    scale = {"kind": "Scale", "spec": {"replicas": 50}}
    asked = {"kind": "Deployment", "subresource": "scale", "looked_up": parent}
    assert judge.needs(ask(scale, "Deployment", "scale").attributes) == {PARENT}
    found = outcome(judge, scale, scale | {"spec": {"replicas": 1}}, **asked)
    assert (found is not None and found.denies) is is_denied


@pytest.mark.parametrize(("labels", "is_allowed"), [({"tier": "web"}, False), ({}, True)])
def test_a_session_is_selected_by_its_pods_labels(labels, is_allowed):
    """The Pod of exec and attach is looked up."""
    judge = engine("interactive-sessions", match=SELECTED)
    parent = {PARENT: {"metadata": {"labels": labels}}}
    session = ask({"tty": True}, subresource="exec", operation="CONNECT")
    asked = Request(
        session.attributes._replace(kind="PodExecOptions", operation="CONNECT"),
        session.object,
        None,
        parent,
    )
    assert judge.needs(asked.attributes) == {PARENT}
    assert judge.validate(asked).allowed is is_allowed


def test_deletecollection_takes_the_name_from_the_object():
    """The request's own name is empty."""
    judge = engine("default-roles", match={"any": [{"names": ["platform-*"]}]})
    role = {"kind": "Role", "metadata": {"name": "platform-admin", "labels": DEFAULT_ROLE}}
    assert outcome(judge, None, role, kind="Role", operation="DELETE", name="").denies


def test_a_warning_names_the_exception_that_expired():
    """The exempted violation is tolerated, and the message has the reason for the warning."""
    judge = engine("privileged-containers", excepting("2026-11-01T00:00:00Z", containers=["app"]))
    found = outcome(judge, pod(**PRIVILEGED), pod(**PRIVILEGED))
    assert [each.expired for each in found.tolerated] == [
        "PolicyException moving expired 2026-11-01"
    ]


def test_an_exception_for_namespaces_exempts_no_cluster_scoped_object():
    """Such an object matches no namespace pattern."""
    judge = engine("default-roles", excepting(namespaces=["*"]))
    role = {"kind": "ClusterRole", "metadata": {"name": "it", "labels": DEFAULT_ROLE}}
    assert outcome(judge, None, role, kind="ClusterRole", operation="DELETE", namespace="").denies
    assert outcome(judge, None, role | {"kind": "Role"}, kind="Role", operation="DELETE") is None


def test_a_second_container_of_the_same_name_is_not_exempt():
    """An exception for an image exempts only the container with that image."""
    judge = engine("privileged-containers", excepting(images=["a.io/*"]))
    both = [
        {"name": "app", "image": image, "securityContext": {"privileged": True}}
        for image in ("a.io/x", "b.io/x")
    ]
    found = outcome(judge, pod(containers=both), None, operation="CREATE")
    assert [each.holder.image for each in found.violations] == ["b.io/x"]


def test_an_exception_for_an_image_of_a_webapp_exempts_nothing_else():
    """Replicas are not part of an image."""
    webapp = {
        "kind": "WebApp",
        "metadata": {"name": "it"},
        "spec": {"image": "b.io/x", "replicas": 50},
    }
    replicas = engine("replica-limits", excepting(images=["b.io/*"]), maximum=3)
    assert outcome(replicas, webapp, None, kind="WebApp", operation="CREATE").denies
    images = engine("image-registries", excepting(images=["b.io/*"]), registries=["a.io"])
    assert not outcome(images, webapp, None, kind="WebApp", operation="CREATE").denies


def test_an_exception_for_a_container_exempts_it_from_mutations():
    """The container is unchanged, and inherits no new setting of the pod."""
    judge = engine("security-defaults", excepting(containers=["debug"]))
    names = ("app", "debug")
    asked = ask(
        pod(containers=[{"name": name, "image": "a"} for name in names]), looked_up={NOW: TODAY}
    )
    spec = judge.mutate(asked).object["spec"]
    assert spec["containers"][1] == {"name": "debug", "image": "a"}
    assert "securityContext" not in spec
    assert spec["containers"][0]["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def test_an_exception_with_parameters_changes_its_container_by_those():
    """The settings are set on the container; otherwise the pod's would apply to it."""
    judge = engine(
        "security-defaults", excepting(containers=["debug"], params={"run_as_non_root": False})
    )
    asked = ask(pod(containers=[{"name": "debug", "image": "a"}]), looked_up={NOW: TODAY})
    spec = judge.mutate(asked).object["spec"]
    assert "securityContext" not in spec
    assert spec["containers"][0]["securityContext"] == {
        "seccompProfile": {"type": "RuntimeDefault"},
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def test_an_exception_for_an_image_exempts_it_from_rewriting():
    """An exempt image keeps its registry."""
    judge = engine(
        "registry-rewrite",
        excepting(images=["docker.io/team/*"]),
        mirrors={"docker.io": "mirror.io"},
    )
    images = ["docker.io/team/app:1", "docker.io/other/app:1"]
    asked = ask(
        pod(containers=[{"name": f"c{n}", "image": image} for n, image in enumerate(images)]),
        looked_up={NOW: TODAY},
    )
    assert [each["image"] for each in judge.mutate(asked).object["spec"]["containers"]] == [
        "docker.io/team/app:1",
        "mirror.io/other/app:1",
    ]


def test_a_label_cannot_change_a_namespaces_name():
    """The real name counts, not the value of its label."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "production"}}
    judge = engine(
        "required-labels", match={"any": [{"namespaceSelector": selector}]}, labels={"team": "*"}
    )
    object = {"kind": "Namespace", "metadata": {"labels": {"kubernetes.io/metadata.name": "lab"}}}
    asked = {
        "kind": "Namespace",
        "name": "production",
        "namespace": "production",
        "operation": "CREATE",
    }
    assert outcome(judge, object, None, **asked).denies
