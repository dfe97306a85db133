"""Exceptions exempt exactly what they select, until they expire."""

import re
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from config.documents import parse_documents
from config.faults import FaultsError
from tests.webhook.asking import ask
from tests.webhook.asking import in_force as in_effect
from webhook.engine import NOW, Engine, NotLookedUpError, Params, Policy
from webhook.engine.exceptions import check_exception
from webhook.engine.exemptions import Exemption, Exemptions
from webhook.engine.globs import Globs
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySet, PolicySetError, in_force, load

TODAY, NEVER = datetime(2026, 11, 21, tzinfo=UTC), datetime(3026, 1, 1, tzinfo=UTC)
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
    """Return an image policy for everything, changed by the test's arguments."""
    return {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": "images"},
        "spec": {"policy": "image-registries", "params": {"registries": ["a.io"]}},
    } | changes


def exception(*, namespace=None, expires="2026-12-01T00:00:00Z", **entry):
    """Return an exception from it, with the test's arguments."""
    return {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "PolicyException",
        "metadata": {"name": "why-not"} | ({"namespace": namespace} if namespace else {}),
        "spec": {
            "reason": "moving",
            "expires": expires,
            "exceptions": [{"policy": "images"} | entry],
        },
    }


def engine(policy, *exceptions, home=None):
    """Return an engine of one policy object and its exceptions."""
    written = PolicySet(
        (bind(policy, catalogue()),), tuple(bind(each, catalogue()) for each in exceptions)
    )
    return Engine(in_force(written, catalogue(), home))


def denied(*exceptions, home=None, of=None, now=TODAY, request=None):
    """Return the denied containers of a Pod; None if the policy was not run."""
    request = request or ask(POD, name="shop-1", looked_up={} if now is None else {NOW: now})
    outcomes = [
        outcome_of_policy
        for outcome_of_policy in engine(of or policy(), *exceptions, home=home)
        .validate(request)
        .outcomes
        if outcome_of_policy.policy.endswith("images")
    ]
    if not outcomes:
        return None
    (outcome,) = outcomes
    if outcome.error is not None:
        raise outcome.error
    return [each.path.partition("name=")[2].partition("]")[0] for each in outcome.violations]


def test_without_exceptions():
    """Two images violate the policy; the time is not needed."""
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
def test_an_exception_exempts_what_it_selects(entry, left):
    """All fields of an entry must match; everything else is judged as before."""
    assert denied(exception(**entry)) == left


@pytest.mark.parametrize(
    ("exceptions", "left"),
    [
        ([{"containers": ["debug"], "params": {"registries": ["quay.io"]}}], ["sidecar"]),
        ([{"containers": ["debug"], "params": {"registries": ["gcr.io"]}}], ["sidecar", "debug"]),
        ([{"images": ["quay.io/*"], "params": {"registries": ["gcr.io"]}}], ["sidecar", "debug"]),
        (
            [{"containers": ["app"], "params": {"registries": ["gcr.io"]}}],
            ["sidecar", "debug", "app"],
        ),
        (
            [
                {"containers": ["debug"], "params": {"registries": ["gcr.io"]}},
                {"images": ["quay.io/*"]},
            ],
            ["sidecar"],
        ),
        (
            [
                {"containers": ["debug"], "params": {"registries": ["quay.io"]}},
                {"containers": ["*"], "params": {"registries": ["docker.io"]}},
                {"containers": ["*"], "params": {"registries": ["a.io"]}},
            ],
            ["app"],
        ),
        ([{"containers": ["*"], "params": {"registries": ["gcr.io"]}}, {"containers": ["*"]}], []),
    ],
)
def test_parameters_for_some_containers_apply_to_those(exceptions, left):
    """Their containers are judged by other parameters; the first of several entries wins, after those without any."""
    assert denied(*(exception(**each) for each in exceptions)) == left


def test_an_exception_without_parameters_counts_before_others():
    """It exempts the object, whichever was written first."""
    others = exception(params={"registries": ["gcr.io"]})
    assert denied(others, exception()) is None
    assert denied(others) == ["app", "sidecar", "debug"]


@pytest.mark.parametrize(
    "spec",
    [
        {"policy": "replica-limits"},
        {"policy": "required-labels", "params": {"labels": {"team": "*"}}},
        {"validations": [{"expression": "false"}]},
    ],
)
@pytest.mark.parametrize("field", ["containers", "images"])
def test_an_exception_for_containers_has_no_effect_on_other_policies(spec, field):
    """A rule in CEL, or about replicas, judges no containers, which the exception's status reports."""
    judge = bind(policy(spec=spec), catalogue())
    text = "images reports nothing about single containers; use kinds, names or namespaces"
    with pytest.raises(FaultsError) as error:
        check_exception(
            bind(exception(**{field: ["app"]}), catalogue()), [judge], "gatewright-system"
        )
    assert error.value.faults == ((f"spec.exceptions[0].{field}", text),)


@pytest.mark.parametrize(
    ("judged", "entry", "fault"),
    [
        (
            policy(
                spec={"policy": "privileged-containers", "match": {"any": [{"kinds": ["Pod"]}]}}
            ),
            {"kinds": ["Deployment"]},
            ("spec.exceptions[0].kinds", "images judges no Deployment"),
        ),
        (
            policy(kind="AdmissionPolicy", metadata={"name": "images", "namespace": "shop"}),
            {"namespaces": ["lab-*"]},
            ("spec.exceptions[0].namespaces", "images is in force in namespace shop only"),
        ),
    ],
)
def test_an_exception_outside_of_its_policys_scope_has_no_effect(judged, entry, fault):
    """The policy's `match` or namespace excludes all objects of the exception."""
    bound = bind(judged, catalogue())
    excepting = bind(exception(namespace=bound.namespace, **entry), catalogue())
    with pytest.raises(FaultsError) as error:
        check_exception(excepting, [bound], "gatewright-system")
    assert error.value.faults == (fault,)


@pytest.mark.parametrize(
    ("judged", "entry"),
    [
        (policy(), {}),
        (policy(), {"namespaces": ["lab-*"]}),
        (policy(), {"kinds": ["Service", "Deployment"]}),
        (
            policy(
                spec={"policy": "privileged-containers", "match": {"any": [{"kinds": ["Pod"]}]}}
            ),
            {"kinds": ["Pod"]},
        ),
        (policy(kind="AdmissionPolicy", metadata={"name": "images", "namespace": "shop"}), {}),
        (
            policy(kind="AdmissionPolicy", metadata={"name": "images", "namespace": "shop"}),
            {"namespaces": ["sh*"]},
        ),
    ],
)
def test_an_exception_inside_of_its_policys_scope_has_an_effect(judged, entry):
    """It is in force: no error is reported."""
    bound = bind(judged, catalogue())
    check_exception(
        bind(exception(namespace=bound.namespace, **entry), catalogue()),
        [bound],
        "gatewright-system",
    )


@pytest.mark.parametrize(
    ("of", "namespace", "text"),
    [
        (
            "shop",
            "home",
            '"images" is a policy of namespace shop; exceptions from it count there only',
        ),
        (
            "shop",
            None,
            '"images" is a policy of namespace shop; exceptions from it count there only',
        ),
        ("shop", "lab", 'no policy object "images"'),
        (
            None,
            "shop",
            '"images" is a cluster policy; exceptions from it count in namespace home only',
        ),
    ],
)
def test_an_exception_in_the_wrong_namespace_names_the_right_one(of, namespace, text):
    """The message shows a tenant's policy only to those who may write in Gatewright's namespace."""
    tenants = {"kind": "AdmissionPolicy", "metadata": {"name": "images", "namespace": of}}
    judged = bind(policy(**(tenants if of else {})), catalogue())
    with pytest.raises(FaultsError) as error:
        check_exception(bind(exception(namespace=namespace), catalogue()), [judged], "home")
    assert error.value.faults == (("spec.exceptions[0].policy", text),)


@pytest.mark.parametrize(
    "spec", [{"policy": "privileged-containers"}, {"policy": "webapp-security-defaults"}]
)
def test_an_exception_for_containers_has_an_effect_on_policies_about_them(spec):
    """These policies judge each container, or a WebApp as a container."""
    check_exception(
        bind(exception(containers=["app"]), catalogue()),
        [bind(policy(spec=spec), catalogue())],
        "home",
    )


@pytest.mark.parametrize(
    ("kinds", "judges"),
    [
        ("pods", True),
        (("Deployment", "Service"), True),
        (("WebApp",), True),
        ("all", False),
        (("Service",), False),
    ],
)
def test_a_policy_that_names_kinds_with_containers_may_judge_these(kinds, judges):
    """A user's own policy may judge containers.

    Rules without containers are about labels, replicas or API versions.
    """
    assert Policy("own", kinds=kinds).judges_containers is judges


def test_an_exception_for_a_container_exempts_all_its_fields():
    """The policy's violation need not name a field of it."""
    probes = policy(spec={"policy": "probes", "params": {"enough": "one"}})
    judge = engine(probes, exception(containers=["debug"]))
    (outcome,) = judge.validate(ask(POD, looked_up={NOW: TODAY})).outcomes
    assert [each.path for each in outcome.violations] == [
        "spec.containers[name=app]",
        "spec.containers[name=sidecar]",
    ]


def test_an_exception_for_images_includes_image_volumes():
    """An exception for containers does not include volumes of the same name."""
    volumes = [
        {"name": name, "image": {"reference": f"quay.io/{name}"}} for name in ("models", "tools")
    ]
    pod = POD | {"spec": {"containers": POD["spec"]["containers"][:1], "volumes": volumes}}
    request = ask(pod, looked_up={NOW: TODAY})
    assert denied(exception(images=["quay.io/mo*"]), request=request) == ["tools"]
    assert denied(exception(containers=["models"]), request=request) == ["models", "tools"]
    assert denied(exception(containers=["models"], images=["quay.io/*"]), request=request) == [
        "models",
        "tools",
    ]


@pytest.mark.parametrize(
    ("glob", "image", "is_excepted"),
    [
        ("docker.io/library/redis:*", "redis:7", True),
        ("docker.io/library/redis:*", "index.docker.io/redis:7", True),
        ("docker.io/*", "team/proxy", True),
        ("redis:*", "redis:7", True),
        ("redis:*", "redis", True),
        ("redis:*", "docker.io/library/redis:7", True),
        ("redis:*", f"redis:7@sha256:{'0' * 64}", True),
        ("redis:7", f"redis:7@sha256:{'0' * 64}", False),
        (f"redis@sha256:{'0' * 64}", f"redis:7@sha256:{'0' * 64}", True),
        (f"redis@sha256:{'0' * 64}", "redis:7", False),
        ("redis", "redis:latest", True),
        ("redis", "redis:7", False),
        ("redis:7*", "redis:7-alpine", True),
        ("redis*", "redis-exporter:1", True),
        ("redis:*", "redis:5000/evil/miner:1", False),
        ("redis*", "redis.evil.io/miner:1", False),
        ("redis*", "redis/miner:1", False),
        ("docker.io/library/redis:*", "docker.io/library/redis/miner:1", False),
        ("docker.io/library/redis:*", "quay.io/library/redis:7", False),
        ("docker.io/library/redis:*", "library.evil/redis:7", False),
        ("ghcr.io/team/*", "ghcr.io/team/a/b:1", True),
        ("ghcr.io/team/*", "ghcr.io/team-evil/a:1", False),
        ("ghcr.io/team*/app:1", "ghcr.io/team-a/app:1", True),
        ("ghcr.io/team*/app:1", "ghcr.io/team-a/evil/app:1", False),
        ("*.company.com/*", "eu.company.com/a/b", True),
        ("*.company.com/*", "company.com.evil.io/a/b", False),
        ("*.company.com/*", "a.company.com:5000/a/b", False),
        ("*/library/redis:*", "quay.io/library/redis:7", True),
        ("*", "quay.io/debug/tools", True),
        ("docker.io/*", "Not An Image", False),
    ],
)
def test_an_exception_compares_images_by_their_parts(glob, image, is_excepted):
    """`redis:7` is an image of docker.io; a `*` matches no other registry or repository."""
    request = ask(
        POD | {"spec": {"containers": [{"name": "app", "image": image}]}}, looked_up={NOW: TODAY}
    )
    assert denied(exception(images=[glob]), request=request) == ([] if is_excepted else ["app"])


def test_exceptions_for_containers_are_additive():
    """Each exempts its own containers."""
    assert denied(exception(containers=["debug"]), exception(images=["docker.io/*"])) == []


def test_parameters_of_an_exception_are_merged():
    """Other parameters are the policy's."""
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
def test_an_exception_expires(expires, left):
    """From the second it expires it has no effect."""
    assert denied(exception(expires=expires)) == left


def test_exceptions_need_the_time():
    """Without the time, an exception exempts nothing: the outcome of the policy is an error."""
    with pytest.raises(NotLookedUpError, match=r"^now$"):
        denied(exception(), now=None)
    assert engine(policy(), exception()).needs(ask(POD).attributes) == {NOW}


def test_parameters_of_an_exception_may_need_more():
    """Look-ups that only these parameters need are made too."""
    judge = engine(
        policy(spec={"policy": "probes", "params": {"served": False}}),
        exception(params={"served": True}),
    )
    assert judge.needs(ask(POD).attributes) == {NOW, "services"}


@pytest.mark.parametrize(
    ("exempt", "is_excepted"),
    [
        ([], False),
        ([Exemption(NEVER, params=Params())], False),
        ([Exemption(NEVER, containers=Globs(["app"]))], True),
        ([Exemption(NEVER, containers=Globs(["app"])), Exemption(NEVER, params=Params())], True),
        ([Exemption(TODAY, containers=Globs(["app"]))], False),
    ],
)
def test_a_mutation_knows_whether_containers_are_excepted_from_it(exempt, is_excepted):
    """Pod-level fields that it sets would affect them; exceptions from other policies do not matter."""
    seen = []

    def sees(request, _):
        seen.append(request.excepted)
        return iter(())

    sets = Policy("sets", mutate=sees)
    judge = Engine([in_effect(sets, exemptions=Exemptions(exempt)), in_effect(sets)])
    seen.clear()
    judge.mutate(ask(POD, looked_up={NOW: TODAY}))
    assert seen == [is_excepted, False]


@pytest.mark.parametrize(
    ("namespace", "home", "left"),
    [
        ("gatewright-system", "gatewright-system", None),
        ("shop", "gatewright-system", ["sidecar", "debug"]),
        ("gatewright-system", None, ["sidecar", "debug"]),
        (None, None, None),
    ],
)
def test_an_exception_from_a_cluster_policy_counts_in_gatewrights_namespace(namespace, home, left):
    """A user with rights in another namespace cannot exempt objects from cluster policies."""
    assert denied(exception(namespace=namespace), home=home) == left


@pytest.mark.parametrize(
    ("namespace", "left"),
    [("shop", None), ("gatewright-system", ["sidecar", "debug"]), ("lab", ["sidecar", "debug"])],
)
def test_an_exception_from_a_tenants_policy_counts_in_its_namespace(namespace, left):
    """It has no effect elsewhere."""
    tenants = policy(kind="AdmissionPolicy", metadata={"name": "images", "namespace": "shop"})
    assert denied(exception(namespace=namespace), home="gatewright-system", of=tenants) == left


def test_thousands_of_tenants_with_exceptions_load_quickly():
    """Each exception is matched only with the policies it may exempt from."""
    own = bind(
        policy(kind="AdmissionPolicy", metadata={"name": "images", "namespace": "a"}), catalogue()
    )
    excepted = bind(exception(namespace="a"), catalogue())
    written = PolicySet(
        tuple(replace(own, namespace=f"team-{number}") for number in range(3000)),
        tuple(replace(excepted, namespace=f"team-{number}") for number in range(3000)),
    )
    started = time.process_time()
    assert [len(each.exemptions) for each in in_force(written, {})] == [1] * 3000
    assert time.process_time() - started < 1.0


def test_an_exception_with_unknown_parameters_has_no_effect():
    """The exception exempts nothing."""
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
def test_errors_in_exceptions_are_reported(written, told):
    """An exception from an unknown policy, or without content, is an error."""
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
def test_an_exception_needs_an_expiry_time(expires):
    """An exception without one is rejected."""
    with pytest.raises(ValueError, match=r"^spec\.expires: "):
        bind(exception(expires=expires), catalogue())


@pytest.mark.parametrize("expires", ["2026-12-01", "2026-12-01T00:00:00"])
def test_an_expiry_time_has_a_time_and_a_zone(expires):
    """A date without a time, or a time without a zone, is rejected with an example."""
    wanted = (
        f'spec.expires: "{expires}": should have a time and a zone, such as 2027-01-31T00:00:00Z'
    )
    with pytest.raises(ValueError, match=f"^{re.escape(wanted)}$"):
        bind(exception(expires=expires), catalogue())


@pytest.mark.parametrize(("number", "is_malformed"), [(20, False), (21, True), (1000, True)])
def test_few_fields_of_a_wrong_type_are_exempt(number, is_malformed):
    """The object is judged again without each; thousands would take seconds."""
    names = [f"c{index}" for index in range(number)]
    containers = [{"name": name, "image": 5} for name in names]
    paths = [f"spec.containers[name={name}].image" for name in names]
    request = ask({"kind": "Pod", "spec": {"containers": containers}}, looked_up={NOW: TODAY})
    verdict = engine(policy(), exception(paths=paths)).validate(request)
    found = [each for each in verdict.outcomes if each.policy == "images"]
    assert [(each.malformed is not None, each.error) for each in found] == [(is_malformed, None)]
