"""The defaults of `security-defaults` never weaken or contradict a pod, for random pods."""

from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.webhook.asking import ask, in_force
from webhook.engine import Engine, Violation
from webhook.harness.bases import POD_KIND_NAMES, at, pod_path, smallest
from webhook.policies import pod_security
from webhook.policies.pod_security import PodSecurity
from webhook.policies.security_defaults import POLICY, SecurityDefaults

BOOLEAN = some.sampled_from([None, True, False])
CAPABILITIES = some.lists(
    some.sampled_from(["ALL", "NET_RAW", "NET_BIND_SERVICE", "SYS_ADMIN", "CAP_SYS_ADMIN", "KILL"]),
    max_size=3,
)
SECCOMP = some.fixed_dictionaries(
    {}, optional={"type": some.sampled_from(["RuntimeDefault", "Localhost", "Unconfined"])}
)
INHERITED: dict[str, some.SearchStrategy[Any]] = {
    "runAsNonRoot": BOOLEAN,
    "runAsUser": some.sampled_from([None, 0, 1000]),
    "runAsGroup": some.sampled_from([None, 0, 1000]),
    "seccompProfile": some.none() | SECCOMP,
}
CONTEXT = some.fixed_dictionaries(
    {},
    optional=INHERITED
    | {
        "privileged": BOOLEAN,
        "allowPrivilegeEscalation": BOOLEAN,
        "readOnlyRootFilesystem": BOOLEAN,
        "capabilities": some.none()
        | some.fixed_dictionaries(
            {}, optional={"add": CAPABILITIES, "drop": some.none() | CAPABILITIES}
        ),
    },
)
CONTAINERS = some.lists(
    some.fixed_dictionaries(
        {"image": some.just("x.example/x")}, optional={"securityContext": some.none() | CONTEXT}
    ),
    min_size=1,
    max_size=3,
)
PODS = some.fixed_dictionaries(
    {"containers": CONTAINERS},
    optional={
        "initContainers": some.none() | CONTAINERS,
        "securityContext": some.none()
        | some.fixed_dictionaries({}, optional=INHERITED | {"fsGroup": some.just(7)}),
        "hostUsers": BOOLEAN,
        "os": some.sampled_from([{"name": "linux"}, {"name": "windows"}]),
    },
)
PARAMS = some.builds(
    SecurityDefaults,
    run_as_non_root=some.booleans(),
    seccomp_profile=some.booleans(),
    privilege_escalation=some.booleans(),
    drop_capabilities=some.sampled_from([["ALL"], ["NET_RAW", "KILL"], []]),
    read_only_root_filesystem=some.booleans(),
    run_as_user=some.sampled_from([None, 1000]),
    run_as_group=some.sampled_from([None, 2000]),
    fs_group=some.sampled_from([None, 3000]),
    supplemental_groups=some.sampled_from([[], [4000]]),
    selinux_level=some.sampled_from([None, "s0:c1"]),
)
VERSIONS = some.sampled_from(
    [*(f"1.{minor}" for minor in range(pod_security.NEWEST + 1)), "latest"]
)


def mutate(
    pod: dict[str, Any], kind: str = "Pod", params: SecurityDefaults | None = None
) -> dict[str, Any]:
    """Return the admitted pod's spec; check that the patch produces it and a second run patches nothing."""
    engine = Engine([in_force(POLICY, params=params or SecurityDefaults())])
    object = smallest(kind) | at(pod_path(kind), pod)
    first = engine.mutate(ask(object, kind))
    assert [outcome.error for outcome in first.outcomes] == [None]
    assert jsonpatch.apply_patch(object, first.operations) == first.object
    assert engine.mutate(ask(first.object, kind)).operations == []
    changed = ask(first.object, kind).pod().value
    assert first.object == smallest(kind) | at(pod_path(kind), changed), (
        "nothing outside of the pod's spec"
    )
    return changed


def judge(pod: dict[str, Any], version: str = "latest") -> list[Violation]:
    """Return the violations of the restricted level."""
    return list(
        pod_security.validate(ask({"spec": pod}), PodSecurity(level="restricted", version=version))
    )


@given(PODS, some.sampled_from(POD_KIND_NAMES), PARAMS)
def test_values_of_users_are_kept(pod, kind, params):
    """All values that a user set are kept, with dropped capabilities first in their list."""
    assert_holds(mutate(pod, kind, params), pod)


def assert_holds(after: Any, before: Any) -> None:
    """Fail unless all values of `before` are in `after`."""
    if isinstance(before, dict):
        for key, value in before.items():
            if value is not None:
                assert_holds(after[key], value)
    elif isinstance(before, list) and before and isinstance(before[0], dict):
        assert len(after) == len(before)
        for one, other in zip(after, before, strict=True):
            assert_holds(one, other)
    elif isinstance(before, list):
        assert after[: len(before)] == before
    else:
        assert after == before


@given(PODS, PARAMS, VERSIONS)
def test_the_result_is_never_less_restricted(pod, params, version):
    """Violations after the mutation existed before it, at every version of the standards."""
    before = {(violation.path, violation.rule) for violation in judge(pod, version)}
    after = {
        (violation.path, violation.rule) for violation in judge(mutate(pod, params=params), version)
    }
    assert after <= before


@given(PODS, PARAMS)
def test_defaults_never_contradict_set_values(pod, params):
    """If the API server or the kubelet rejects the pod, the cause is a user's setting, never a default."""
    assert contradictions(mutate(pod, params=params)) <= contradictions(pod)


def contradictions(pod: dict[str, Any]) -> set[tuple[str, int, str]]:
    """Return the container that cannot run with its settings, and the reason."""
    outer = pod.get("securityContext") or {}
    found = set()
    for key in ("containers", "initContainers"):
        for index, container in enumerate(pod.get(key) or ()):
            own = {
                name: value
                for name, value in (container.get("securityContext") or {}).items()
                if value is not None
            }
            context = {**outer, **own}
            capabilities = own.get("capabilities") or {}
            added = set(capabilities.get("add") or ())
            if own.get("allowPrivilegeEscalation") is False and (
                own.get("privileged") or "CAP_SYS_ADMIN" in added
            ):
                found.add((key, index, "allowPrivilegeEscalation"))
            if context.get("runAsNonRoot") and context.get("runAsUser") == 0:
                found.add((key, index, "runAsNonRoot"))
            if added & set(capabilities.get("drop") or ()):
                found.add((key, index, "capabilities"))
    return found


@given(PODS, PARAMS)
def test_windows_pods_and_user_namespaces_are_unchanged(pod, params):
    """Windows pods, and pods in a user namespace, are allowed unchanged."""
    for other in ({"os": {"name": "windows"}}, {"hostUsers": False}):
        assert mutate(pod | other, params=params) == pod | other


@pytest.mark.parametrize("kind", POD_KIND_NAMES)
def test_an_unset_pod_is_restricted(kind):
    """A Linux pod without settings, with containers and init containers, passes the newest restricted level."""
    unset = {
        "containers": [{"image": "x"}, {"image": "y", "securityContext": None}],
        "initContainers": [{"image": "z"}],
    }
    assert [judge(unset) != [], judge(mutate(unset, kind))] == [True, []]
