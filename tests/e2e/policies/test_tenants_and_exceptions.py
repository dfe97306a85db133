"""Tenants restrict and exempt only their own namespace; the platform team restricts and exempts all namespaces."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kube.resource import JsonObject
from tests.e2e import manifests
from tests.e2e.policies.conftest import (
    HOME,
    Installation,
    exception,
    few,
    tenants,
    too_many,
)
from tests.e2e.test_production import forbidden

pytestmark = pytest.mark.controlplane("kube-controller-manager")


@pytest.fixture
def tenant(installation: Installation, namespace: str) -> Path:
    """The kubeconfig of alice, who has the role admin in the namespace and no other right."""
    binding = (
        "create",
        "rolebinding",
        "alice",
        "--clusterrole=admin",
        "--user=alice",
        "-n",
        namespace,
    )
    installation.kubectl(*binding)
    kubeconfig = installation.plane.kubeconfig_for("alice", namespace=namespace)
    may = ("auth", "can-i", "create", "admissionpolicies.gatewright.io", "-n", namespace)
    plane = installation.plane
    installation.until(
        "admin", lambda: plane.kubectl(*may, kubeconfig=kubeconfig, check=False).returncode == 0
    )
    return kubeconfig


def apply(installation: Installation, kubeconfig: Path, object: JsonObject) -> str:
    """Return the output of kubectl for a user who applies an object."""
    result = installation.plane.kubectl(
        "apply", "-f-", input=object, kubeconfig=kubeconfig, check=False
    )
    return result.stdout + result.stderr


def test_a_tenant_restricts_its_own_namespace(
    installation: Installation, namespace: str, tenant: Path
) -> None:
    """Its policy is in force there and nowhere else, and messages call it by namespace and name."""
    own = tenants(namespace)
    assert apply(installation, tenant, own) == "admissionpolicy.gatewright.io/own created\n"
    installation.until("in force", lambda: installation.generations(own) == [1, 1])
    installation.until("registered", lambda: installation.denied(namespace, manifests.deployment()))
    said = apply(
        installation,
        tenant,
        manifests.deployment() | {"metadata": {"name": "shop", "namespace": namespace}},
    )
    assert said == forbidden(too_many(2, 1, name=f"{namespace}/own", tier="our"))
    assert not installation.denied("default", manifests.deployment())
    assert installation.ready(own) == ("True", "InForce", "")


@pytest.mark.parametrize("kind", ["a cluster policy", "an exception at home", "a policy elsewhere"])
def test_a_tenant_decides_nothing_else(
    installation: Installation, namespace: str, tenant: Path, kind: str
) -> None:
    """RBAC forbids other policies, whatever the object contains."""
    object, plural, where = {
        "a cluster policy": (few(namespace), "clusteradmissionpolicies", "at the cluster scope"),
        "an exception at home": (exception(), "policyexceptions", f'in the namespace "{HOME}"'),
        "a policy elsewhere": (
            tenants("default"),
            "admissionpolicies",
            'in the namespace "default"',
        ),
    }[kind]
    result = installation.plane.kubectl(
        "create", "-f-", input=object, kubeconfig=tenant, check=False
    )
    assert result.stderr == (
        f'Error from server (Forbidden): error when creating "STDIN": {plural}.gatewright.io is forbidden: '
        f'User "alice" cannot create resource "{plural}" in API group "gatewright.io" {where}\n'
    )


def test_a_tenants_exception_is_from_its_own_policies_only(
    installation: Installation, namespace: str, tenant: Path
) -> None:
    """It applies to the AdmissionPolicy of its namespace; for the cluster's policy, the status has the reason."""
    installation.apply(few(namespace), tenants(namespace))
    four = manifests.deployment(replicas=4)
    installation.until("registered", lambda: installation.denied(namespace, four))
    both = exception(namespace)
    both["spec"]["exceptions"].append({"policy": "own"})
    assert apply(installation, tenant, both) == "policyexception.gatewright.io/why-not created\n"
    installation.until(
        "excepted", lambda: not installation.denied(namespace, manifests.deployment(replicas=3))
    )
    said = installation.refusal("create", "-n", namespace, "-f-", input=four)
    assert said == forbidden(too_many(4, 3))
    assert installation.ready(both) == (
        "False",
        "Invalid",
        f'spec.exceptions[0].policy: "few" is a cluster policy; exceptions from it count in namespace {HOME} only',
    )


def test_an_exception_ends_at_once(installation: Installation, namespace: str) -> None:
    """It is in force until its last second, and then the status reports its end without any other event."""
    installation.apply(few(namespace))
    installation.until(
        "denied", lambda: installation.denied(namespace, manifests.deployment(replicas=4))
    )
    expires = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=6)
    written = exception(expires=f"{expires:%Y-%m-%dT%H:%M:%SZ}")
    installation.kubectl("apply", "-f-", input=written)
    installation.until(
        "excepted", lambda: not installation.denied(namespace, manifests.deployment(replicas=4))
    )
    assert datetime.now(UTC) < expires
    assert installation.ready(written) == ("True", "InForce", "")
    installation.until(
        "ended", lambda: installation.denied(namespace, manifests.deployment(replicas=4))
    )
    assert timedelta(0) <= datetime.now(UTC) - expires < timedelta(seconds=2)
    installation.until("told", lambda: installation.ready(written)[1] == "Expired")
    message = f"it expired at {expires:%Y-%m-%dT%H:%M:%SZ}. Delete it, or set a later spec.expires"
    assert installation.ready(written) == ("False", "Expired", message)


def test_an_exception_brings_parameters_of_its_own(
    installation: Installation, namespace: str
) -> None:
    """The named objects are judged by its parameters, and all others as before."""
    installation.apply(few(namespace))
    big = manifests.deployment("big-shop", replicas=6)
    installation.until("registered", lambda: installation.denied(namespace, big))
    installation.kubectl(
        "apply", "-f-", input=exception(names=["big*"], kinds=["Deployment"], params={"maximum": 6})
    )
    installation.until("excepted", lambda: not installation.denied(namespace, big))
    said = installation.refusal(
        "create", "-n", namespace, "-f-", input=manifests.deployment("big-shop", replicas=7)
    )
    assert said == forbidden(too_many(7, 6))
    said = installation.refusal(
        "create", "-n", namespace, "-f-", input=manifests.deployment("shop", replicas=6)
    )
    assert said == forbidden(too_many(6, 3))


@pytest.mark.parametrize("entry", [{"containers": ["side*"]}, {"images": ["docker.io/team/*"]}])
def test_an_exception_for_one_container_leaves_the_others(
    installation: Installation, namespace: str, entry: JsonObject
) -> None:
    """A container is selected by its name or by its image."""
    params = {"registries": ["registry.company.com"]}
    installation.apply(few(namespace, policy="image-registries", params=params))
    pod = manifests.pod()
    pod["spec"]["containers"].append({"name": "sidecar", "image": "docker.io/team/proxy:2"})
    installation.until("registered", lambda: installation.denied(namespace, pod))
    installation.kubectl("apply", "-f-", input=exception(**entry))
    installation.until("excepted", lambda: not installation.denied(namespace, pod))
    pod["spec"]["containers"].append({"name": "debug", "image": "quay.io/debug"})
    said = installation.refusal("create", "-n", namespace, "-f-", input=pod)
    assert said == forbidden(
        'few: spec.containers[name=debug].image: "quay.io/debug" comes from quay.io; images must come from approved '
        "registry registry.company.com. Push it there, or ask for an exception."
    )


def test_an_exception_from_an_unknown_policy_is_reported_until_the_policy_exists(
    installation: Installation, namespace: str
) -> None:
    """A misspelt policy is reported in the status; the status follows the policies."""
    installation.apply(few(namespace, name="fewer"))
    installation.kubectl("apply", "-f-", input=exception())
    message = 'spec.exceptions[0].policy: no policy object "few"; did you mean "fewer"?'
    installation.until(
        "told", lambda: installation.ready(exception()) == ("False", "Invalid", message)
    )
    installation.apply(few(namespace))
    installation.until(
        "in force", lambda: installation.ready(exception()) == ("True", "InForce", "")
    )
    installation.kubectl("delete", "cap/few")
    installation.until(
        "told", lambda: installation.ready(exception()) == ("False", "Invalid", message)
    )
    table = installation.kubectl("get", "polex", "-n", HOME, "--no-headers").split()
    assert table[:4] == ["why-not", "2099-01-01T00:00:00Z", "moving", "False"]
