"""Exceptions leave out what they say, for whom they say it, until they expire, and nothing else."""

import re
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from config.documents import parse_documents
from tests.webhook.asking import ask
from webhook.engine import NOW, Engine, NotLookedUpError
from webhook.engine.policy_set import PolicySet, PolicySetError, bind, in_force, load
from webhook.policies import catalogue

TODAY = datetime(2026, 11, 21, tzinfo=UTC)
POD = {
    "kind": "Pod",
    "metadata": {"name": "shop-1"},
    "spec": {
        "containers": [
            {"name": "app", "image": "a.io/app:1"},
            {"name": "sidecar", "image": "docker.io/team/proxy:2"},
            {"name": "debug", "image": "quay.io/debug/tools"},
        ]
    },
}


def policy(**changes):
    """An image policy for everything, changed by what a test names."""
    return {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": "images"},
        "spec": {"policy": "image-registries", "params": {"registries": ["a.io"]}},
    } | changes


def exception(*, namespace=None, expires="2026-12-01T00:00:00Z", **entry):
    """An exception from it, with what a test names."""
    return {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "PolicyException",
        "metadata": {"name": "why-not"} | ({"namespace": namespace} if namespace else {}),
        "spec": {"reason": "moving", "expires": expires, "exceptions": [{"policy": "images"} | entry]},
    }


def engine(policy, *exceptions, home=None):
    """An engine of one policy object and exceptions from it."""
    written = PolicySet((bind(policy, catalogue()),), tuple(bind(each, catalogue()) for each in exceptions))
    return Engine(in_force(written, catalogue(), home))


def denied(*exceptions, home=None, of=None, now=TODAY, request=None):
    """Return what is still denied of a Pod: names of containers, or None where the policy was not asked."""
    request = request or ask(POD, name="shop-1", looked_up={} if now is None else {NOW: now})
    outcomes = [
        each
        for each in engine(of or policy(), *exceptions, home=home).validate(request).outcomes
        if each.policy.endswith("images")
    ]
    if not outcomes:
        return None
    (outcome,) = outcomes
    if outcome.error is not None:
        raise outcome.error
    return [each.path.partition("name=")[2].partition("]")[0] for each in outcome.violations]


def test_without_exceptions():
    """Two images come from elsewhere; the time is nobody's business."""
    assert denied(now=None) == ["sidecar", "debug"]


@pytest.mark.parametrize(
    ("entry", "left"),
    [
        ({}, None),
        ({"names": ["shop-*"]}, None),
        ({"names": ["other"]}, ["sidecar", "debug"]),
        ({"namespaces": ["shop"]}, None),
        ({"namespaces": ["lab", "test-*"]}, ["sidecar", "debug"]),
        ({"kinds": ["Pod"]}, None),
        ({"kinds": ["Deployment"]}, ["sidecar", "debug"]),
        ({"names": ["shop-*"], "namespaces": ["lab"]}, ["sidecar", "debug"]),
        ({"containers": ["debug"]}, ["sidecar"]),
        ({"containers": ["side*"]}, ["debug"]),
        ({"containers": ["none"]}, ["sidecar", "debug"]),
        ({"images": ["docker.io/team/*"]}, ["debug"]),
        ({"images": ["*"], "containers": ["debug"]}, ["sidecar"]),
        ({"images": ["docker.io/*"], "containers": ["debug"]}, ["sidecar", "debug"]),
        ({"containers": ["debug"], "names": ["other"]}, ["sidecar", "debug"]),
        ({"params": {"registries": ["a.io", "quay.io"]}}, ["sidecar"]),
    ],
)
def test_an_exception_is_as_wide_as_it_says(entry, left):
    """All that an entry sets must hold; what it does not reach is judged as ever."""
    assert denied(exception(**entry)) == left


@pytest.mark.parametrize(
    ("exceptions", "left"),
    [
        ([{"containers": ["debug"], "params": {"registries": ["quay.io"]}}], ["sidecar"]),
        ([{"containers": ["debug"], "params": {"registries": ["gcr.io"]}}], ["sidecar", "debug"]),
        ([{"images": ["quay.io/*"], "params": {"registries": ["gcr.io"]}}], ["sidecar", "debug"]),
        ([{"containers": ["app"], "params": {"registries": ["gcr.io"]}}], ["sidecar", "debug", "app"]),
        (
            [{"containers": ["debug"], "params": {"registries": ["gcr.io"]}}, {"images": ["quay.io/*"]}],
            ["sidecar", "debug"],
        ),
        (
            [
                {"containers": ["debug"], "params": {"registries": ["quay.io"]}},
                {"containers": ["*"], "params": {"registries": ["docker.io"]}},
                {"containers": ["*"]},
            ],
            ["app"],
        ),
    ],
)
def test_parameters_for_some_containers_are_for_those(exceptions, left):
    """They are judged by other parameters, not left alone; where several are about one container, the first counts."""
    assert denied(*(exception(**each) for each in exceptions)) == left


def test_an_exception_for_a_container_holds_for_the_container_as_a_whole():
    """Also where a policy names no field of it."""
    probes = policy(spec={"policy": "probes", "params": {"enough": "one"}})
    judge = engine(probes, exception(containers=["debug"]))
    (outcome,) = judge.validate(ask(POD, looked_up={NOW: TODAY})).outcomes
    assert [each.path for each in outcome.violations] == ["spec.containers[name=app]", "spec.containers[name=sidecar]"]


def test_an_exception_for_images_holds_for_image_volumes():
    """They are images too; a volume has a container's name by chance only."""
    volumes = [{"name": name, "image": {"reference": f"quay.io/{name}"}} for name in ("models", "tools")]
    pod = POD | {"spec": {"containers": POD["spec"]["containers"][:1], "volumes": volumes}}
    request = ask(pod, looked_up={NOW: TODAY})
    assert denied(exception(images=["quay.io/mo*"]), request=request) == ["tools"]
    assert denied(exception(containers=["models"]), request=request) == ["models", "tools"]


@pytest.mark.parametrize(
    ("glob", "image", "is_excepted"),
    [
        ("docker.io/library/redis:*", "redis:7", True),
        ("docker.io/library/redis:*", "index.docker.io/redis:7", True),
        ("docker.io/*", "team/proxy", True),
        ("redis:*", "redis:7", True),
        ("redis:*", "docker.io/library/redis:7", False),
        ("docker.io/library/redis:*", "quay.io/library/redis:7", False),
        ("docker.io/library/redis:*", "library.evil/redis:7", False),
        ("docker.io/*", "Not An Image", False),
    ],
)
def test_an_exception_names_an_image_in_full_or_as_it_is_written(glob, image, is_excepted):
    """A denial of `redis:7` says that it comes from docker.io, so an exception can say so too."""
    request = ask(POD | {"spec": {"containers": [{"name": "app", "image": image}]}}, looked_up={NOW: TODAY})
    assert denied(exception(images=[glob]), request=request) == ([] if is_excepted else ["app"])


def test_exceptions_for_containers_add_up():
    """Each takes out what it is about."""
    assert denied(exception(containers=["debug"]), exception(images=["docker.io/*"])) == []


def test_parameters_are_laid_over_the_policys_own():
    """What the exception does not name stays as the policy has it."""
    limits = policy(spec={"policy": "resource-limits", "params": {"tier": "staging"}})
    judge = engine(limits, exception(params={"required": ["cpu"]}))
    (outcome,) = judge.validate(ask(POD, looked_up={NOW: TODAY})).outcomes
    assert {(each.found, each.rule) for each in outcome.violations} == {
        ("cpu missing", "resource limits required in staging")
    }


@pytest.mark.parametrize(
    ("expires", "left"),
    [
        ("2026-11-21T00:00:01Z", None),
        ("2026-11-21T00:00:00Z", ["sidecar", "debug"]),
        ("2026-11-21T01:00:01+01:00", None),
        ("2026-11-20T23:59:59Z", ["sidecar", "debug"]),
    ],
)
def test_an_exception_ends(expires, left):
    """From the second it expires it is as if it were not there."""
    assert denied(exception(expires=expires)) == left


def test_where_there_are_exceptions_the_time_must_be_known():
    """An exception that nobody can date does not widen anything: the policy cannot be decided."""
    with pytest.raises(NotLookedUpError, match=r"^now$"):
        denied(exception(), now=None)
    assert engine(policy(), exception()).needs(ask(POD).attributes) == {NOW}


@pytest.mark.parametrize(
    ("namespace", "home", "left"),
    [
        ("gatewright-system", "gatewright-system", None),
        ("shop", "gatewright-system", ["sidecar", "debug"]),
        ("gatewright-system", None, ["sidecar", "debug"]),
        (None, None, None),
    ],
)
def test_an_exception_from_a_cluster_policy_counts_at_home(namespace, home, left):
    """Who may write into some namespace cannot except himself from the cluster's policies."""
    assert denied(exception(namespace=namespace), home=home) == left


@pytest.mark.parametrize(
    ("namespace", "left"),
    [("shop", None), ("gatewright-system", ["sidecar", "debug"]), ("lab", ["sidecar", "debug"])],
)
def test_an_exception_from_a_tenants_policy_is_the_tenants(namespace, left):
    """It counts in the policy's own namespace, and nowhere else."""
    tenants = policy(kind="AdmissionPolicy", metadata={"name": "images", "namespace": "shop"})
    assert denied(exception(namespace=namespace), home="gatewright-system", of=tenants) == left


def test_thousands_of_tenants_with_exceptions_cost_a_change_little():
    """Each is held against the policies that it may be one from."""
    own = bind(policy(kind="AdmissionPolicy", metadata={"name": "images", "namespace": "a"}), catalogue())
    excepted = bind(exception(namespace="a"), catalogue())
    written = PolicySet(
        tuple(replace(own, namespace=f"team-{number}") for number in range(3000)),
        tuple(replace(excepted, namespace=f"team-{number}") for number in range(3000)),
    )
    started = time.process_time()
    assert [len(each.exempt) for each in in_force(written, {})] == [1] * 3000
    assert time.process_time() - started < 1.0


def test_what_does_not_fit_its_policy_does_not_count():
    """An exception with parameters that the policy has not widens nothing."""
    assert denied(exception(params={"registry": ["quay.io"]})) == ["sidecar", "debug"]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (
            "exceptions:\n  - policy: image\n",
            'x.yaml:15: PolicyException why-not: spec.exceptions[0].policy: no policy object "image"; '
            'did you mean "images"?',
        ),
        (
            "exceptions:\n  - policy: images\n    params:\n      registry: [b.io]\n",
            "x.yaml:17: PolicyException why-not: spec.exceptions[0].params.registry: unknown parameter; "
            'did you mean "registries"?',
        ),
        (
            "exceptions: []\n",
            "x.yaml:14: PolicyException why-not: spec.exceptions: []: List should have at least 1 item after "
            "validation, not 0",
        ),
        (
            "exceptions:\n  - {policy: images, name: [a]}\n",
            'x.yaml:15: PolicyException why-not: spec.exceptions[0].name: unknown field; did you mean "names"?',
        ),
    ],
)
def test_faults_of_exceptions_are_told(written, told):
    """An exception from nothing, or one that says nothing, is a fault and no silence."""
    text = (
        "apiVersion: gatewright.io/v1alpha1\nkind: ClusterAdmissionPolicy\nmetadata: {name: images}\n"
        "spec:\n  policy: image-registries\n  params: {registries: [a.io]}\n---\n"
        "apiVersion: gatewright.io/v1alpha1\nkind: PolicyException\nmetadata: {name: why-not}\n"
        "spec:\n  reason: moving\n  expires: 2026-12-01T00:00:00Z\n"
    )
    indented = "".join(f"  {line}\n" for line in written.splitlines())
    with pytest.raises(PolicySetError) as error:
        load(parse_documents((text + indented).encode(), "x.yaml"), catalogue())
    assert str(error.value) == told


@pytest.mark.parametrize("expires", ["never", None])
def test_an_exception_has_an_end(expires):
    """No end at all is refused."""
    with pytest.raises(ValueError, match=r"^spec\.expires: "):
        bind(exception(expires=expires), catalogue())


@pytest.mark.parametrize("expires", ["2026-12-01", "2026-12-01T00:00:00"])
def test_the_end_of_an_exception_has_a_time_and_a_zone(expires):
    """A date without a time, or a time without a zone, is refused with an example."""
    wanted = f'spec.expires: "{expires}": should have a time and a zone, such as 2027-01-31T00:00:00Z'
    with pytest.raises(ValueError, match=f"^{re.escape(wanted)}$"):
        bind(exception(expires=expires), catalogue())
