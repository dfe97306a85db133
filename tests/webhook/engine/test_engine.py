"""The engine runs every policy that applies, once, in order, and keeps all their violations."""

import functools
import itertools
import sys
import time
from typing import Any

import pytest

from config.api.match import MatchSpec
from tests.webhook.asking import about, ask, in_force
from tests.webhook.engine.outcomes import reported
from webhook.engine import (
    MAX_VIOLATIONS,
    NAMESPACE_LABELS,
    Engine,
    NotLookedUpError,
    Patch,
    Policy,
    Request,
    Verdict,
    Violation,
)
from webhook.engine.kinds import KINDS, add_pod_kind
from webhook.engine.match import compile_match

DENY = frozenset({"Deny"})


def names(request, _):
    """Report two violations for every name."""
    yield Violation(
        "metadata.name", request.string("metadata.name"), "names are dull", "find another"
    )
    yield Violation("metadata.name", "again", "names are long", "shorten it")


def counts(request, _):
    """Report a count that is not zero."""
    if request.integer("spec.count"):
        yield Violation(
            "spec.count", request.integer("spec.count"), "nothing may be counted", "remove it"
        )


def fails(_request, _params):
    """Report one violation, then raise."""
    yield Violation("metadata", "x", "it is there", "remove it")
    raise RuntimeError("the secret of life")


def looks(request, _):
    """Require a look-up."""
    request.lookup("limit_ranges")
    yield from ()


def first(_request, _params):
    """Set a field."""
    yield Patch(("spec", "first"), "first")


def second(request, _):
    """Set a field to the value an earlier policy set."""
    yield Patch(("spec", "second"), request.string("spec.first"))


def nothing(_request, _params):
    """Set a field that exists."""
    yield Patch(("metadata", "name"), "other")


def below_a_name(_request, _params):
    """Set a field below a scalar."""
    yield Patch(("spec", "ok"), 1)
    yield Patch(("metadata", "name", "field"), 1)


def into_a_list(_request, _params):
    """Set a field, and then an item that does not exist."""
    yield Patch(("spec", "half"), 1)
    yield Patch(("spec", "items", 3), 1)


NAMES, COUNTS, FAILS = (
    Policy("names", validate=names),
    Policy("counts", validate=counts),
    Policy("fails", validate=fails),
)
LOOKS = Policy("looks", validate=looks, needs=("limit_ranges",))
FIRST, SECOND, NOTHING = (
    Policy("first", mutate=first),
    Policy("second", mutate=second),
    Policy("nothing", mutate=nothing),
)
BELOW = Policy("below", mutate=below_a_name)

POD = {"kind": "Pod", "metadata": {"name": "it"}, "spec": {}}


def match(*clauses):
    """Compile a match as it is written in a policy object."""
    return compile_match(MatchSpec.model_validate({"any": list(clauses)}))


def test_all_violations_are_in_the_order_of_the_policy_set():
    """Every policy that applies has an outcome with all its violations, possibly none."""
    engine = Engine(
        [in_force(COUNTS), in_force(NAMES), in_force(COUNTS, name="counts-again", actions={"Warn"})]
    )
    assert reported(engine.validate(ask(POD | {"spec": {"count": 0}}))) == [
        ("counts", ()),
        (
            "names",
            (
                Violation("metadata.name", "it", "names are dull", "find another"),
                Violation("metadata.name", "again", "names are long", "shorten it"),
            ),
        ),
        ("counts-again", ()),
    ]


def test_without_policies_there_are_no_outcomes():
    """The request is allowed."""
    assert Engine([in_force(NAMES)]).validate(ask(POD, "HorizontalPodAutoscaler")) == Verdict()
    assert Engine([]).validate(ask(POD)) == Verdict()
    assert (
        Engine([in_force(NAMES, match=match({"namespaces": ["other"]}))]).validate(ask(POD))
        == Verdict()
    )


def test_a_violation_is_one_line():
    """The message has field, value, rule and fix."""
    violation = Violation(
        "spec.replicas",
        11,
        "production workloads cannot exceed 10 replicas",
        "set it to 10 or less",
    )
    assert violation.message == (
        "spec.replicas: 11; production workloads cannot exceed 10 replicas. Set it to 10 or less."
    )


@pytest.mark.parametrize(
    ("actions", "allowed"),
    [
        ({"Deny"}, False),
        ({"Warn"}, True),
        ({"Audit"}, True),
        ({"Warn", "Audit"}, True),
        ({"Deny", "Audit"}, False),
    ],
)
def test_only_the_action_deny_denies(actions, allowed):
    """With another action a violation is only reported."""
    verdict = Engine([in_force(NAMES, actions=frozenset(actions))]).validate(ask(POD))
    assert (verdict.allowed, len(verdict.outcomes[0].violations)) == (allowed, 2)


@pytest.mark.parametrize("actions", [{"Deny"}, {"Warn"}, {"Audit"}, {"Deny", "Audit"}])
@pytest.mark.parametrize("fails_closed", [True, False])
def test_a_malformed_object_is_denied_by_policies_that_deny(actions, fails_closed):
    """A wrong JSON type is denied regardless of failurePolicy; policies with other actions only report it."""
    engine = Engine([in_force(COUNTS, actions=frozenset(actions), fails_closed=fails_closed)])
    verdict = engine.validate(ask(POD | {"spec": {"count": "3"}}))
    malformed = Violation(
        "spec.count", '"3" is a string', "it must be an integer", "correct its type"
    )
    assert reported(verdict) == [("counts", (malformed,))]
    assert verdict.allowed is ("Deny" not in actions)


@pytest.mark.parametrize("actions", [{"Deny"}, {"Warn"}])
@pytest.mark.parametrize("fails_closed", [True, False])
def test_a_policy_error_is_decided_by_its_failure_policy(fails_closed, actions):
    """The failurePolicy decides whether the outcome denies, whatever the action; the other policies run."""
    bound = in_force(FAILS, fails_closed=fails_closed, actions=frozenset(actions))
    verdict = Engine([bound, in_force(COUNTS)]).validate(ask(POD))
    failed, counted = verdict.outcomes
    assert (type(failed.error), str(failed.error), failed.violations) == (
        RuntimeError,
        "the secret of life",
        (),
    )
    assert (failed.policy, failed.fails_closed, failed.denies) == (
        "fails",
        fails_closed,
        fails_closed,
    )
    assert (counted.policy, counted.reported, counted.error) == ("counts", (), None)
    assert verdict.allowed is not fails_closed


def test_a_policy_that_ends_the_process_is_an_error():
    """Otherwise a check would end with the policy's exit code."""
    ends = Policy("ends", validate=lambda *_: sys.exit(0))
    (outcome,) = Engine([in_force(ends)]).validate(ask(POD)).outcomes
    assert (type(outcome.error), outcome.denies) == (SystemExit, True)


def test_a_missing_look_up_is_an_error():
    """A policy never takes a missing look-up for an empty one."""
    engine = Engine([in_force(LOOKS)])
    (outcome,) = engine.validate(ask(POD)).outcomes
    assert isinstance(outcome.error, NotLookedUpError)
    assert reported(engine.validate(ask(POD, looked_up={"limit_ranges": []}))) == [("looks", ())]


def test_missing_namespace_labels_are_an_error():
    """A match may need a look-up too."""
    (outcome,) = (
        Engine([in_force(NAMES, match=match({"namespaceSelector": {}}))])
        .validate(ask(POD))
        .outcomes
    )
    assert (outcome.policy, type(outcome.error), outcome.denies) == (
        "names",
        NotLookedUpError,
        True,
    )


def test_each_mutation_sees_the_one_before():
    """The patch has the changes of all policies."""
    verdict = Engine([in_force(FIRST), in_force(NOTHING), in_force(SECOND)]).mutate(ask(POD))
    patched = {each.policy: each.patched for each in verdict.outcomes}
    assert patched == {"first": True, "nothing": False, "second": True}
    assert verdict.operations == [
        {"op": "add", "path": "/spec/first", "value": "first"},
        {"op": "add", "path": "/spec/second", "value": "first"},
    ]
    assert verdict.object == {
        "kind": "Pod",
        "metadata": {"name": "it"},
        "spec": {"first": "first", "second": "first"},
    }


def test_mutations_are_idempotent():
    """A second run changes nothing."""
    engine = Engine([in_force(FIRST), in_force(SECOND)])
    once = engine.mutate(ask(POD)).object
    again = engine.mutate(ask(once))
    assert (again.operations, again.object) == ([], once)
    assert [each.patched for each in again.outcomes] == [False, False]


def test_a_mutation_below_the_wrong_type_denies():
    """A parent that cannot contain the field is malformed, and named."""
    verdict = Engine([in_force(BELOW)]).mutate(ask(POD))
    malformed = Violation(
        "metadata.name", '"it" is a string', "it must be an object", "correct its type"
    )
    assert (reported(verdict), verdict.allowed) == ([("below", (malformed,))], False)


def test_a_failed_policy_leaves_no_changes():
    """A policy that fails halfway, with failurePolicy Ignore, leaves the object unchanged."""
    half = Policy("half", mutate=into_a_list)
    verdict = Engine([in_force(half, fails_closed=False), in_force(FIRST)]).mutate(ask(POD))
    assert verdict.allowed
    assert [type(outcome.error) for outcome in verdict.outcomes] == [LookupError, type(None)]
    assert verdict.operations == [{"op": "add", "path": "/spec/first", "value": "first"}]


def test_a_deleted_object_is_judged_and_never_patched():
    """On DELETE, policies read the old object."""
    ends = ("DELETE",)
    judging, setting = (
        Policy("names", validate=names, operations=ends),
        Policy("first", mutate=first, operations=ends),
    )
    engine = Engine([in_force(judging), in_force(setting)])
    request = ask(None, old_object=POD, operation="DELETE")
    assert engine.mutate(request) == Verdict()
    assert [violation.found for violation in engine.validate(request).outcomes[0].violations] == [
        "it",
        "again",
    ]


def test_look_ups_are_those_of_the_policies_for_the_target():
    """They depend on the kind only, and only look-ups that can decide are requested."""
    engine = Engine(
        [
            in_force(
                NAMES,
                match=match({"namespaceSelector": {}, "kinds": ["Pod"]}, {"namespaces": ["shop"]}),
            ),
            in_force(LOOKS, match=match({"kinds": ["Pod", "Deployment"]})),
        ]
    )
    assert engine.needs(ask(POD).attributes) == {"limit_ranges"}
    assert engine.needs(ask(POD, namespace="other").attributes) == {
        NAMESPACE_LABELS,
        "limit_ranges",
    }
    assert engine.needs(ask(POD, "Deployment").attributes) == {"limit_ranges"}
    assert engine.needs(ask(POD, "Job").attributes) == frozenset()
    assert engine.needs(ask(POD, "HorizontalPodAutoscaler").attributes) == frozenset()


SCALABLE = Policy("scalable", validate=counts, kinds="scalable")


@pytest.mark.parametrize(
    ("kind", "subresource", "kinds", "asked"),
    [
        ("Deployment", "", None, True),
        ("Deployment", "scale", None, True),
        ("WebApp", "scale", None, True),
        ("HorizontalPodAutoscaler", "", None, True),
        ("DaemonSet", "", None, False),
        ("Pod", "", None, False),
        ("Deployment", "scale", ["Deployment"], True),
        ("Deployment", "scale", ["StatefulSet"], False),
        ("StatefulSet", "scale", ["Deployment"], False),
        ("Deployment", "status", None, False),
    ],
)
def test_a_scale_is_judged_as_its_workload(kind, subresource, kinds, asked):
    """A policy for Deployments also judges their /scale, and no other subresource."""
    clauses = [{"kinds": kinds}] if kinds else []
    verdict = Engine([in_force(SCALABLE, match=match(*clauses))]).validate(
        ask({}, kind, subresource)
    )
    assert [outcome.policy for outcome in verdict.outcomes] == (["scalable"] if asked else [])


@pytest.mark.parametrize("subresource", ["ephemeralcontainers", "resize"])
def test_pods_are_judged_through_their_subresources(subresource):
    """Subresources that change a whole pod are judged too."""
    assert len(Engine([in_force(COUNTS)]).validate(ask(POD, "Pod", subresource)).outcomes) == 1


def test_the_group_is_part_of_a_kind():
    """A kind of the same name in another group is not judged."""
    assert (
        Engine([in_force(COUNTS)]).validate(ask(POD, "Deployment", resource_group="extensions.io"))
        == Verdict()
    )


@pytest.mark.parametrize(
    "other",
    [
        {"resource_group": "extensions.io"},
        {"resource": "bindings"},
        {"subresource": "status"},
        {"operation": "DELETE"},
        {"namespace": "lab"},
    ],
    ids=str,
)
def test_memoised_matching_is_exact_to_the_target(other):
    """The engine remembers which policies a target has, for exactly this target: no client can hide another's pods."""
    engine = Engine([in_force(NAMES, match=match({"namespaces": ["shop"]}))])
    for _ in range(2):
        assert engine.validate(ask(POD, **other)) == Verdict()
        assert [outcome.policy for outcome in engine.validate(ask(POD)).outcomes] == ["names"]


def test_the_judged_kinds_are_those_with_a_validating_policy_on_create():
    """A policy that mutates, validates only on DELETE, or whose match leaves a kind out, does not add it."""
    engine = Engine(
        [
            in_force(Policy("a", validate=counts, kinds=("WebApp",))),
            in_force(Policy("ends", validate=counts, kinds=("Secret",), operations=("DELETE",))),
            in_force(Policy("b", validate=counts, kinds=("Pod", "WebApp")), fails_closed=False),
            in_force(FIRST, match=match({"kinds": ["Pod", "Job"]})),
            in_force(
                Policy("c", validate=counts, kinds=("Pod", "Secret")),
                match=match({"kinds": ["Pod"]}),
            ),
        ]
    )
    assert sorted(kind.kind for kind in engine.judged_kinds) == ["Pod", "WebApp"]


@pytest.mark.parametrize(
    ("policies", "validates", "mutates"),
    [([], False, False), ([COUNTS], True, False), ([FIRST], False, True)],
)
def test_whether_a_request_is_looked_at_is_known_before_it_is_decoded(policies, validates, mutates):
    """A review that no policy looks at is answered without its objects."""
    engine = Engine(map(in_force, policies))
    assert (engine.requirements(about()) is not None) is validates
    assert (engine.requirements(about(), mutating=True) is not None) is mutates


def test_other_operations_are_not_judged():
    """Policies judge only the operations they declare."""
    assert (
        Engine([in_force(COUNTS)]).validate(ask(None, old_object=POD, operation="DELETE"))
        == Verdict()
    )


ENDING = {"name": "it", "deletionTimestamp": "2026-11-21T00:00:00Z", "finalizers": ["a", "b"]}


def ending(metadata=ENDING, **changes):
    """Return an update of an object being deleted, changed by the test's arguments."""
    old = {"kind": "Pod", "metadata": ENDING, "spec": {}, "status": {"phase": "Running"}}
    return ask(old | {"metadata": metadata} | changes, operation="UPDATE", old_object=old)


@pytest.mark.parametrize(
    "request_",
    [
        ending(),
        ending({**ENDING, "finalizers": ["b"]}),
        ending(
            {
                "name": "it",
                "deletionTimestamp": ENDING["deletionTimestamp"],
                "generation": 2,
                "managedFields": [],
            }
        ),
        ending(status={"phase": "Failed"}),
    ],
)
def test_finalizers_can_be_removed_from_an_object_being_deleted(request_):
    """No policy prevents it, not even one that fails or tolerates nothing."""
    engine = Engine([in_force(NAMES, tolerates_existing=False), in_force(FAILS), in_force(FIRST)])
    assert (engine.validate(request_), engine.mutate(request_)) == (Verdict(), Verdict())


@pytest.mark.parametrize(
    "request_",
    [
        ending(spec={"count": 1}),
        ending({**ENDING, "finalizers": [], "labels": {"a": "b"}}, spec={"count": 1}),
    ],
)
def test_other_changes_of_an_object_being_deleted_are_judged(request_):
    """A Service works until its last finalizer is removed, so a finalizer must not open a way around policies."""
    engine = Engine([in_force(COUNTS), in_force(FIRST)])
    assert [each.path for each in engine.validate(request_).outcomes[0].violations] == [
        "spec.count"
    ]
    assert engine.mutate(request_) == Verdict()


@pytest.mark.parametrize(
    "metadata",
    [
        ENDING | {"labels": {"app": "another"}},
        ENDING | {"annotations": {"a": "b"}},
        ENDING | {"ownerReferences": []},
        [],
    ],
)
def test_other_metadata_of_an_object_being_deleted_is_judged(metadata):
    """A Service selects by labels until the pod is gone."""
    (outcome,) = (
        Engine([in_force(COUNTS, tolerates_existing=False)]).validate(ending(metadata)).outcomes
    )
    assert outcome.policy == "counts"


def test_objects_too_deep_to_compare_are_judged():
    """A review has up to 1,024 levels, more than Python 3.11 compares; newer ones compare 10,000."""
    old, new = (
        functools.reduce(lambda below, _: {"a": below}, range(50_000), dict[str, Any]())
        for _ in "ab"
    )
    old, new = (
        {"kind": "Pod", "metadata": ENDING, "spec": {"deep": deep, "count": 1}}
        for deep in (old, new)
    )
    engine = Engine([in_force(COUNTS, tolerates_existing=False)])
    assert not engine.validate(Request(about(operation="UPDATE"), new, old)).allowed


def test_a_deletion_timestamp_on_create_is_ignored():
    """The API server removes it on creation, and in a file it must not hide violations."""
    made = {"kind": "Pod", "metadata": ENDING, "spec": {"count": 1}}
    assert not Engine([in_force(COUNTS)]).validate(ask(made)).allowed
    unmarked = made | {"metadata": {"name": "it"}, "spec": {}}
    assert (
        not Engine([in_force(COUNTS)])
        .validate(ask(made, operation="UPDATE", old_object=unmarked))
        .allowed
    )


def many(request, _):
    """Report each of some thousand items, of one field and of separate fields."""
    for item in request.value["spec"]["items"]:
        yield Violation("spec.items", item, "there may be no items", "remove it")
        yield Violation(
            f"spec.items[{item}]", item, "there may be no items", "remove it", excess=item
        )


def test_thousands_of_violations_are_compared_quickly():
    """Otherwise an update of an object with many violations could block every review for minutes."""
    old, new = (
        {"kind": "Pod", "spec": {"items": list(range(first, first + 4000))}} for first in (0, 1)
    )
    started = time.process_time()
    request = ask(new, operation="UPDATE", old_object=old)
    (outcome,) = Engine([in_force(Policy("many", validate=many))]).validate(request).outcomes
    assert [each.path for each in outcome.violations] == ["spec.items", "spec.items[4000]"]
    assert len(outcome.tolerated) == 2 * 3999
    assert time.process_time() - started < 2.0


def without_end(request, _):
    """Yield violations forever, existing ones first."""
    yield from (
        Violation(f"spec.items[{number}]", "x", "there may be no items", "remove it")
        for number in range(5)
    )
    for number in itertools.count() if request.is_set("spec.more") else ():
        yield Violation(f"spec.more[{number}]", "x", "there may be no items", "remove it")


def test_a_policy_is_stopped_at_the_limit_of_violations():
    """An object has room for a hundred thousand violations, which no user would read."""
    new, old = {"kind": "Pod", "spec": {"more": True}}, {"kind": "Pod", "spec": {}}
    engine = Engine([in_force(Policy("endless", validate=without_end))])
    (outcome,) = engine.validate(ask(new)).outcomes
    assert (len(outcome.violations), outcome.tolerated) == (MAX_VIOLATIONS + 1, ())
    (outcome,) = engine.validate(ask(new, operation="UPDATE", old_object=old)).outcomes
    assert (len(outcome.violations), outcome.violations[0].path) == (
        MAX_VIOLATIONS + 1,
        "spec.more[0]",
    )
    assert len(outcome.tolerated) == 5


@pytest.fixture
def _rollouts():
    """Return a table of kinds with a custom one, for one test."""
    add_pod_kind("rollouts.argoproj.io/v1alpha1/Rollout=spec.template.spec")
    yield
    del KINDS["argoproj.io", "Rollout"]


@pytest.mark.usefixtures("_rollouts")
def test_pods_of_a_custom_kind_are_judged():
    """A registered kind with pods is judged like a built-in one, with its own paths."""
    images = Policy(
        "images", validate=lambda request, _: (_image(each) for each in request.containers())
    )
    request = ask(
        {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "x"}]}}}}, "Rollout"
    )
    verdict = Engine([in_force(images)]).validate(request)
    assert [violation.path for violation in verdict.outcomes[0].violations] == [
        "spec.template.spec.containers[name=app].image"
    ]


def _image(container):
    return Violation(
        container.path("image"), container.string("image"), "images are heavy", "run less"
    )


def limited(request, _):
    """Report a count above ten, and every name of a list."""
    count = request.integer("spec.count") or 0
    if count > 10:
        yield Violation("spec.count", count, "no more than 10", "lower it", excess=count - 10)
    for item in request.each("spec.names"):
        yield Violation(item.path(), item.string("value"), "no names", "remove it")


LIMITED = Policy("limited", validate=limited)


@pytest.mark.parametrize(
    ("old", "new", "denied", "tolerated"),
    [
        pytest.param({"count": 20}, {"count": 20}, [], ["spec.count"], id="unchanged"),
        pytest.param({"count": 20}, {"count": 15}, [], ["spec.count"], id="nearer to the limit"),
        pytest.param({"count": 20}, {"count": 21}, ["spec.count"], [], id="further from the limit"),
        pytest.param({"count": 5}, {"count": 11}, ["spec.count"], [], id="new"),
        pytest.param({"count": 20}, {"count": 5}, [], [], id="gone"),
        pytest.param({"count": "x"}, {"count": 20}, ["spec.count"], [], id="no number before"),
        pytest.param(
            {"names": [{"name": "a", "value": "v"}]},
            {"names": [{"name": "b", "value": "v"}, {"name": "a", "value": "v"}], "count": 11},
            ["spec.count", "spec.names[name=b]"],
            ["spec.names[name=a]"],
            id="existing and new ones",
        ),
        pytest.param(
            {"names": [{"name": "a", "value": "v"}]},
            {"names": [{"name": "a", "value": "w"}]},
            ["spec.names[name=a]"],
            [],
            id="another value",
        ),
    ],
)
def test_an_update_that_makes_nothing_worse_is_allowed(old, new, denied, tolerated):
    """Existing violations are tolerated and reported separately from new ones."""
    request = ask(POD | {"spec": new}, operation="UPDATE", old_object=POD | {"spec": old})
    (outcome,) = Engine([in_force(LIMITED)]).validate(request).outcomes
    assert [violation.path for violation in outcome.violations] == denied
    assert [violation.path for violation in outcome.tolerated] == tolerated
    assert outcome.denies is bool(denied)


@pytest.mark.parametrize(
    "changes",
    [
        {"operation": "CREATE", "old_object": None},
        {"in_force": {"tolerates_existing": False}},
        {"in_force": {"actions": frozenset({"Warn"})}},
    ],
)
def test_violations_that_are_not_tolerated(changes):
    """A creation has no old object, a policy object may disable it, and other actions than Deny need none."""
    bound = in_force(LIMITED, **changes.pop("in_force", {}))
    object = POD | {"spec": {"count": 11}}
    request = ask(object, **({"operation": "UPDATE", "old_object": object} | changes))
    (outcome,) = Engine([bound]).validate(request).outcomes
    assert (len(outcome.violations), outcome.tolerated) == (1, ())


def test_policies_of_the_cluster_come_before_those_of_a_namespace():
    """The order of the API server's list does not matter."""
    engine = Engine([in_force(NAMES, namespace="shop"), in_force(COUNTS), in_force(NAMES)])
    assert [outcome.policy for outcome in engine.validate(ask(POD)).outcomes] == [
        "counts",
        "names",
        "shop/names",
    ]


def test_a_tenants_policy_judges_its_own_namespace():
    """Its name includes the namespace, and it judges nothing else."""
    engine = Engine([in_force(NAMES, namespace="shop")])
    assert [outcome.policy for outcome in engine.validate(ask(POD)).outcomes] == ["shop/names"]
    assert engine.validate(ask(POD, namespace="lab")) == Verdict()
    assert engine.validate(ask(POD, namespace="")) == Verdict()
