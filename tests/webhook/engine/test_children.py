"""Planned children are judged with their parent, as the API server would later."""

from datetime import UTC, datetime

import pytest

from config.api.match import MatchSpec
from tests.webhook.asking import about, in_force
from tests.webhook.engine.outcomes import reported, tolerated
from webhook.engine import (
    NAMESPACE_LABELS,
    NOW,
    SERVED,
    Attributes,
    ControllerUser,
    Engine,
    NotLookedUpError,
    Patch,
    PlannedChildren,
    PlannedObject,
    Planner,
    Planners,
    Policy,
    Request,
    Verdict,
    Violation,
)
from webhook.engine.exemptions import Exemption, Exemptions
from webhook.engine.globs import Globs
from webhook.engine.kinds import KINDS, Kind
from webhook.engine.match import compile_match

DENY = frozenset({"Deny"})
TODAY = datetime(2026, 11, 21, tzinfo=UTC)
SHOP, MALL = Kind("x.example", "Shop", "shops", ("v2",)), Kind("x.example", "Mall", "malls")
DEPLOYMENT, SERVICE, BUDGET = (
    KINDS["apps", "Deployment"],
    KINDS["", "Service"],
    KINDS["policy", "PodDisruptionBudget"],
)
GROUPS = ("system:serviceaccounts", "system:serviceaccounts:gates", "system:authenticated")
CONTROLLER = ControllerUser("system:serviceaccount:gates:controller", GROUPS)


def plan_shop(shop, now, served):
    """Plan a Deployment and a Service, and a budget for several replicas."""
    del served
    assert now == TODAY
    spec, name = shop["spec"], shop["metadata"]["name"]
    if not isinstance(spec["size"], int):
        return PlannedChildren(
            refused=[Violation("spec.size", str(spec["size"]), "must be an integer", "correct it")]
        )
    if spec["size"] == 13:
        raise KeyError("unlucky")
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "app", "image": spec["image"]}]},
    }
    deployment = {"replicas": spec["size"], "template": template}
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}
    origin = {"metadata.name": "metadata.name", "spec.replicas": "spec.size"}
    origin |= {"spec.template.spec.containers[name=app].image": "spec.image"}
    made = [
        PlannedObject(
            DEPLOYMENT,
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name},
                "spec": deployment,
            },
            origin,
        ),
        PlannedObject(
            SERVICE,
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name},
                "spec": {"ports": []},
            },
        ),
    ]
    if spec["size"] > 1:
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
            "spec": budget,
        }
        made.append(PlannedObject(BUDGET, budget, {"spec.minAvailable": "spec.size"}))
    return PlannedChildren(made)


def plan_mall(mall, now, served):
    """Plan a Shop."""
    del now, served
    metadata = {"name": f"{mall['metadata']['name']}-shop"}
    spec = {"size": 1, "image": mall["spec"]["image"]} | mall["spec"]["shop"]
    shop = {"apiVersion": "x.example/v2", "kind": "Shop", "metadata": metadata, "spec": spec}
    return PlannedChildren(
        [PlannedObject(SHOP, shop, {"spec": "spec.shop", "spec.image": "spec.image"})]
    )


SHOPS = Planner(SHOP, (DEPLOYMENT, SERVICE, BUDGET), plan_shop, replicas="spec.size")
MALLS = Planner(MALL, (SHOP,), plan_mall)


def shop(name="toys", *, size=1, image="good/app", **metadata):
    """A Shop."""
    return {
        "apiVersion": "x.example/v2",
        "kind": "Shop",
        "metadata": {"name": name, "namespace": "shop"} | metadata,
        "spec": {"size": size, "image": image},
    }


def mall(image="good/app", **spec):
    """A Mall."""
    written = {"image": image, "shop": spec}
    return {
        "apiVersion": "x.example/v1",
        "kind": "Mall",
        "metadata": {"name": "big"},
        "spec": written,
    }


def request(object, old=None, subresource="", *, looked_up=None, **changes):
    """Return a request for a Shop or a Mall."""
    kind = MALL if object["kind"] == "Mall" else SHOP
    attributes = Attributes(
        uid="u-1",
        operation="UPDATE" if old is not None or subresource else "CREATE",
        group=kind.group,
        version="v1",
        kind=object["kind"],
        resource_group=kind.group,
        resource=kind.plural,
        subresource=subresource,
        name=object["metadata"].get("name", ""),
        namespace="shop",
        username="jane",
    )
    return Request(attributes._replace(**changes), object, old, {NOW: TODAY} | (looked_up or {}))


def engine(*policies):
    """Return an engine with planners of Shops and Malls."""
    return Engine(policies, Planners([SHOPS, MALLS], CONTROLLER))


def images(request, _):
    """Report images that are not good."""
    for container in request.containers():
        if not (container.string("image") or "").startswith("good/"):
            yield Violation(
                container.path("image"), container.string("image"), "images are good", "use another"
            )


def sizes(request, _):
    """Report more than three replicas."""
    size = request.integer("spec.replicas") or 0
    if size > 3:
        yield Violation("spec.replicas", size, "three are enough", "lower it", excess=size - 3)


def services(request, _):
    """Report every Service."""
    yield Violation("spec.type", "unset", "services have types", "set it")


IMAGES = in_force(Policy("images", validate=images))
SIZES = in_force(Policy("sizes", validate=sizes, kinds=("Deployment",)))
SERVICES = in_force(Policy("services", validate=services, kinds=("Service",)))
BAD_IMAGE = Violation("spec.image", "bad/app", "images are good", "use another")


def found(verdict):
    """Return the denials of a verdict."""
    return [each for outcome in verdict.outcomes if outcome.denies for each in outcome.violations]


def test_a_violation_names_the_parents_field():
    """It is the field that the child's field comes from; without one, the message names the child."""
    verdict = engine(IMAGES, SIZES, SERVICES).validate(request(shop(size=4, image="bad/app")))
    assert found(verdict) == [
        BAD_IMAGE,
        Violation("spec.size", 4, "three are enough", "lower it", excess=1),
        Violation("spec.type", "unset", "services have types", "set it", of="Service/toys"),
    ]
    assert (
        found(verdict)[2].message == "Service/toys: spec.type: unset; services have types. Set it."
    )
    assert engine(IMAGES, SIZES).validate(request(shop())).allowed


def test_grandchildren_are_judged():
    """Their violations are mapped to fields of the first parent."""
    verdict = engine(IMAGES, SIZES, SERVICES).validate(request(mall(image="bad/app", size=4)))
    assert found(verdict) == [
        BAD_IMAGE,
        Violation("spec.shop.size", 4, "three are enough", "lower it", excess=1),
        Violation("spec.type", "unset", "services have types", "set it", of="Service/big-shop"),
    ]


def seen(policies=(), kinds=("Deployment",), needs=()):
    """Return a policy that records its requests, and an engine with it and others."""
    requests = []

    def note(request, _):
        requests.append(request)
        return iter(())

    return requests, engine(
        in_force(Policy("notes", validate=note, kinds=kinds, needs=needs)), *policies
    )


def test_each_child_is_a_request_of_the_controller():
    """The user is the controller's account, the object has namespace and owner; a dry run stays a dry run."""
    requests, judging = seen()
    judging.validate(request(shop(uid="u-7"), dry_run=True))
    (asked,) = requests
    attributes = asked.attributes
    assert (
        attributes.operation,
        attributes.group,
        attributes.version,
        attributes.kind,
        attributes.resource,
    ) == (*("CREATE", "apps", "v1", "Deployment", "deployments"),)
    assert (attributes.name, attributes.namespace, attributes.dry_run, attributes.subresource) == (
        "toys",
        "shop",
        True,
        "",
    )
    assert attributes.username == "system:serviceaccount:gates:controller"
    assert attributes.groups == GROUPS
    assert asked.object["metadata"] == {
        "name": "toys",
        "namespace": "shop",
        "ownerReferences": [
            {
                "apiVersion": "x.example/v2",
                "kind": "Shop",
                "name": "toys",
                "uid": "u-7",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def test_a_generated_name_has_its_final_length():
    """Children are named after a parent with `generateName`, whose name is not complete yet."""
    requests, judging = seen()
    judging.validate(request(shop(name="", generateName="toys-")))
    assert [each.attributes.name for each in requests] == ["toys-xxxxx"]


def test_an_update_of_the_parent_updates_existing_children():
    """A child's old object is the plan of the old parent; a child that is new is created."""
    requests, judging = seen(kinds=("Deployment", "PodDisruptionBudget"))
    judging.validate(request(shop(size=2), shop(size=1)))
    deployment, budget = requests
    assert (deployment.attributes.operation, deployment.old_object["spec"]["replicas"]) == (
        "UPDATE",
        1,
    )
    assert (budget.attributes.operation, budget.old_object) == ("CREATE", None)


def test_a_create_only_child_is_not_judged_again():
    """The controller never changes it, so an update of its parent is not denied for it."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}}
    made = PlannedChildren([PlannedObject(KINDS["", "Secret"], secret, once=True, owned=False)])
    planner = Planner(SHOP, (KINDS["", "Secret"],), lambda shop, now, served: made)

    def shows_its_owner(request, _):
        yield Violation("data", str(request.mapping("metadata")), "no", "x")

    refused = in_force(
        Policy("never", validate=shows_its_owner, kinds=("Secret",)), tolerates_existing=False
    )
    judging = Engine([refused], Planners([planner]))
    assert [each.found for each in found(judging.validate(request(shop())))] == [
        "{'name': 'key', 'namespace': 'shop'}"
    ]
    assert judging.validate(request(shop(size=2), shop())) == Verdict()


def test_outside_the_controllers_namespaces_nothing_is_planned():
    """With `namespaces` set, custom resources elsewhere are judged without children."""
    judging = Engine([SIZES], Planners([SHOPS], CONTROLLER, ["other"]))
    assert judging.validate(request(shop(size=4))) == Verdict()
    assert not judging.validate(request(shop(size=4), namespace="other")).allowed


def test_an_existing_violation_of_a_child_is_tolerated():
    """An unrelated update passes with a warning; a worse violation is denied."""
    old = shop(size=5, image="bad/app")
    verdict = engine(IMAGES, SIZES).validate(request(shop(size=4, image="bad/app"), old))
    large = Violation("spec.size", 4, "three are enough", "lower it", excess=1)
    assert tolerated(verdict) == [("images", (BAD_IMAGE,)), ("sizes", (large,))]
    assert reported(verdict) == [("images", ()), ("sizes", ())]
    assert [each.found for each in found(engine(SIZES).validate(request(shop(size=6), old)))] == [6]
    strict = in_force(SIZES.policy, tolerates_existing=False)
    assert [each.found for each in found(engine(strict).validate(request(shop(size=4), old)))] == [
        4
    ]


def test_children_are_mutated_before_they_are_judged():
    """A child is judged as it would be stored, and on update its old object has the fields set on creation."""

    def set_image(request, _):
        if request.attributes.operation == "CREATE":
            yield Patch(
                ("spec", "template", "spec", "containers", 0, "image"),
                "good/instead",
                overwrite=True,
            )

    sets = in_force(Policy("sets", mutate=set_image, kinds=("Deployment",)))
    requests, judging = seen([IMAGES, sets])
    for parent in (
        request(shop(image="bad/app")),
        request(shop(image="bad/app", size=2), shop(image="bad/app")),
    ):
        verdict = judging.validate(parent)
        assert (verdict.allowed, [each.patched for each in verdict.outcomes]) == (
            True,
            [False] * len(verdict.outcomes),
        )
    states = [
        state
        for asked in requests
        for state in (asked.object, asked.old_object)
        if state is not None
    ]
    assert [each["spec"]["template"]["spec"]["containers"][0]["image"] for each in states] == [
        "good/instead"
    ] * 3


def test_a_mutation_of_a_child_that_may_fail_is_reported():
    """The child is judged unchanged; the warning names the failed policy."""

    def fails(request, _params):
        if request.name:  # the emptiest object, of which the engine asks when it is built, has none
            raise KeyError("nothing")
        yield from ()

    sets = in_force(Policy("sets", mutate=fails, kinds=("Deployment",)), fails_closed=False)
    failed, judged = engine(sets, IMAGES).validate(request(shop(image="bad/app"))).outcomes
    assert (failed.policy, type(failed.error), failed.denies, judged.policy) == (
        "sets",
        KeyError,
        False,
        "images",
    )


def test_a_mutation_sets_one_field_of_a_child():
    """The planner may use the same labels for the object and for its pods."""
    labels = {"app": "toys"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "toys", "labels": labels},
        "spec": {"template": {"metadata": {"labels": labels}}},
    }
    planner = Planner(
        SHOP, (DEPLOYMENT,), lambda *_: PlannedChildren([PlannedObject(DEPLOYMENT, deployment)])
    )

    def set_label(_request, _params):
        yield Patch(("spec", "template", "metadata", "labels", "team"), "x")

    def shows_its_labels(request, _):
        yield Violation(
            "metadata.labels", str(request.mapping("metadata.labels")), "are reported", "continue"
        )

    sets = in_force(Policy("sets", mutate=set_label, kinds=("Deployment",)))
    shows = in_force(Policy("shows", validate=shows_its_labels, kinds=("Deployment",)))
    verdict = Engine([sets, shows], Planners([planner])).validate(request(shop()))
    assert [each.found for each in found(verdict)] == ["{'app': 'toys'}"]


def test_a_failed_mutation_of_a_child_denies_the_parent():
    """The child is not judged further."""

    def below_a_name(_request, _params):
        yield Patch(("spec", "replicas", "field"), 1)

    sets = in_force(Policy("sets", mutate=below_a_name, kinds=("Deployment",)))
    (outcome,) = engine(sets, SIZES).validate(request(shop(size=4))).outcomes
    assert outcome.malformed == Violation(
        "spec.size", "4 is an integer", "it must be an object", "correct its type"
    )


def test_no_problem_is_reported_twice():
    """A violation of both the parent and a child is reported once."""

    def on_both(request, _):
        path = "spec.size" if request.kind == "Shop" else "spec.replicas"
        yield Violation(path, request.integer(path), "none are needed", "lower it")

    both = in_force(Policy("both", validate=on_both, kinds=(SHOP, "Deployment")))
    expected = (Violation("spec.size", 2, "none are needed", "lower it"),)
    created = engine(both).validate(request(shop(size=2)))
    assert (reported(created), tolerated(created)) == ([("both", expected)], [("both", ())])
    updated = engine(both).validate(request(shop(size=2), shop(size=2)))
    assert (reported(updated), tolerated(updated)) == ([("both", ())], [("both", expected)])


def named(most):
    """Return a rule for the length of names."""

    def validate(request, _):
        if len(request.attributes.name) > most:
            yield Violation(
                "metadata.name", request.attributes.name, f"at most {most}", "shorten it"
            )

    return validate


def test_an_invalid_name_is_reported_once():
    """Violations of derived names are reported only if the parent's own name is valid."""
    shops = in_force(Policy("shops", validate=named(9), kinds=(SHOP,)))
    deployments = in_force(Policy("deployments", validate=named(5), kinds=("Deployment",)))
    on_both = engine(shops, deployments)
    assert found(on_both.validate(request(shop("toys-and-more")))) == [
        Violation("metadata.name", "toys-and-more", "at most 9", "shorten it")
    ]
    assert found(on_both.validate(request(shop("all-toys")))) == [
        Violation("metadata.name", "all-toys", "at most 5", "shorten it")
    ]


def test_a_tolerated_violation_of_the_parent_is_denied_for_a_new_child():
    """The child is judged separately: a warning about the parent hides no denial of a child."""

    def on_both(request, _):
        path = "spec.size" if request.kind == "Shop" else "spec.minAvailable"
        yield Violation(path, "x", "none are needed", "lower it")

    both = in_force(Policy("both", validate=on_both, kinds=(SHOP, "PodDisruptionBudget")))
    expected = (Violation("spec.size", "x", "none are needed", "lower it"),)
    verdict = engine(both).validate(request(shop(size=2), shop(size=1)))
    assert tolerated(verdict) == [("both", expected), ("both", ())]
    assert reported(verdict) == [("both", ()), ("both", expected)]


@pytest.mark.parametrize(
    ("changes", "denied"),
    [
        ({}, 1),
        ({"actions": frozenset({"Warn"})}, 0),
        (
            {
                "match": {
                    "any": [
                        {"namespaces": ["shop"], "kinds": ["Deployment"], "operations": ["CREATE"]}
                    ]
                }
            },
            1,
        ),
        ({"match": {"any": [{"namespaces": ["other"]}]}}, 0),
        ({"match": {"any": [{"operations": ["UPDATE"]}]}}, 0),
        ({"match": {"any": [{"names": ["to*"]}]}}, 1),
        ({"match": {"any": [{"objectSelector": {"matchLabels": {"a": "b"}}}]}}, 0),
        ({"match": {"exclude": {"serviceAccounts": ["gates/controller"]}}}, 0),
        ({"match": {"exclude": {"users": ["jane"]}}}, 1),
        ({"namespace": "other"}, 0),
        (
            {
                "exemptions": Exemptions(
                    (Exemption(datetime(2027, 1, 1, tzinfo=UTC), kinds=frozenset({"Deployment"})),)
                )
            },
            0,
        ),
        (
            {
                "exemptions": Exemptions(
                    [Exemption(datetime(2027, 1, 1, tzinfo=UTC), kinds=frozenset({"Shop"}))]
                )
            },
            1,
        ),
        (
            {
                "exemptions": Exemptions(
                    [Exemption(datetime(2026, 1, 1, tzinfo=UTC), names=Globs(["toys"]))]
                )
            },
            1,
        ),
    ],
)
def test_match_and_exceptions_apply_to_the_child(changes, denied):
    """Namespaces, names, labels, users, operations, exceptions and actions are those of the child's request."""
    if "match" in changes:
        changes = changes | {"match": compile_match(MatchSpec.model_validate(changes["match"]))}
    verdict = engine(in_force(SIZES.policy, **changes)).validate(request(shop(size=4)))
    assert len(found(verdict)) == denied
    if "actions" in changes:
        (outcome,) = verdict.outcomes
        assert [each.path for each in outcome.violations] == ["spec.size"]


def test_a_policy_error_about_a_child_is_an_error_of_the_parent():
    """Its failurePolicy decides, once, for any number of children."""

    def looks(request, _):
        yield request.lookup("limit_ranges")

    for fails_closed in (True, False):
        policy = in_force(
            Policy("looks", validate=looks, kinds=("Deployment", "Service")),
            fails_closed=fails_closed,
        )
        verdict = engine(policy).validate(request(shop()))
        (outcome,) = verdict.outcomes
        assert (type(outcome.error), outcome.fails_closed, verdict.allowed) == (
            *(NotLookedUpError, fails_closed, not fails_closed),
        )


def test_a_planner_that_raises_denies():
    """The failure is an outcome that denies, with an identifiable name."""
    verdict = engine().validate(request(shop(size=13)))
    (outcome,) = verdict.outcomes
    assert (outcome.policy, repr(outcome.error), verdict.allowed) == (
        "shop-plan",
        "KeyError('unlucky')",
        False,
    )
    (outcome,) = engine().validate(request(shop(), looked_up={NOW: None})).outcomes
    assert (outcome.policy, type(outcome.error)) == ("shop-plan", AssertionError)


def test_a_schema_violation_of_a_child_is_denied_with_the_parents_field():
    """A child that the API server would reject denies its parent, and its own children are not planned."""
    verdict = engine(SERVICES).validate(request(mall(size="big")))
    wrong = Violation("spec.shop.size", "big", "must be an integer", "correct it")
    assert (reported(verdict), verdict.allowed) == ([("shop-schema", (wrong,))], False)


def test_an_existing_schema_violation_of_a_child_is_tolerated():
    """An update that leaves a field unchanged passes, although a newer type rejects it."""
    assert engine().validate(request(shop(size="big"), shop(size="big"))) == Verdict()
    assert not engine().validate(request(shop(size="large"), shop(size="big"))).allowed
    requests, judging = seen()
    judging.validate(request(shop(size=2), shop(size="big")))
    assert [each.attributes.operation for each in requests] == ["CREATE"]


SCALE = {
    "apiVersion": "autoscaling/v1",
    "kind": "Scale",
    "metadata": {"name": "toys"},
    "spec": {"replicas": 4},
}


def test_scaling_plans_the_children_again():
    """A /scale request plans the parent with another number; an unknown parent is an error."""
    asked = request(SCALE, None, "scale", looked_up={"parent": shop(size=2, image="bad/app")})
    verdict = engine(IMAGES, SIZES).validate(asked)
    assert found(verdict) == [Violation("spec.size", 4, "three are enough", "lower it", excess=1)]
    assert [outcome.tolerated for outcome in verdict.outcomes] == [(BAD_IMAGE,), ()]
    assert (
        engine(SIZES).validate(request(SCALE, None, "scale", looked_up={"parent": {}})) == Verdict()
    )
    (outcome,) = engine(SIZES).validate(request(SCALE, None, "scale")).outcomes
    assert (outcome.policy, str(outcome.error)) == ("shop-plan", "parent")


def test_a_child_finds_earlier_siblings():
    """Look-ups include the siblings as they would be stored, mutations included."""
    requests, judging = seen(
        kinds=("Service", "PodDisruptionBudget"), needs=("workloads", "services")
    )
    there = {
        "kind": "Deployment",
        "metadata": {"name": "toys", "namespace": "shop"},
        "spec": {"replicas": 1},
    }
    other = {"kind": "Deployment", "metadata": {"name": "other", "namespace": "shop"}, "spec": {}}
    judging.validate(
        request(shop(size=2), shop(), looked_up={"workloads": [there, other], "services": []})
    )
    service, budget = (
        {name: asked.lookup(name) for name in ("workloads", "services")} for asked in requests
    )
    assert [each["metadata"]["name"] for each in service["workloads"]] == ["other", "toys"]
    assert service["workloads"][1]["spec"]["replicas"] == 2
    assert (service["services"], [each["kind"] for each in budget["services"]]) == ([], ["Service"])


def test_a_deleted_object_has_no_children():
    """Nothing is planned for an object being deleted, for a status update, or on DELETE."""
    ending = shop(size=13, deletionTimestamp="2026-11-21T00:00:00Z")
    assert engine(SIZES).validate(request(ending, ending)) == Verdict()
    assert engine(SIZES).validate(request(shop(size=13), shop(), "status")) == Verdict()
    assert engine(SIZES).validate(request(shop(size=13), shop(), operation="DELETE")) == Verdict()


def test_look_ups_of_children_are_look_ups_of_the_parent():
    """The server gets the look-ups of all generations; mutating the parent needs none of them."""
    looks = in_force(
        Policy("looks", validate=images, kinds=("Deployment",), needs=("limit_ranges",))
    )
    judging = engine(looks)
    assert (
        judging.needs(request(shop()).attributes)
        == judging.needs(request(mall()).attributes)
        == {NOW, "limit_ranges"}
    )
    assert judging.needs(request(shop(), None, "scale").attributes) == {
        NOW,
        "limit_ranges",
        "parent",
    }
    assert judging.requirements(request(shop()).attributes, mutating=True) is None
    assert judging.needs(request(shop(), shop(), operation="DELETE").attributes) == frozenset()
    selects = compile_match(
        MatchSpec.model_validate({"any": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]})
    )
    selecting = engine(in_force(SIZES.policy, match=selects))
    assert selecting.needs(request(shop()).attributes) == {NOW, NAMESPACE_LABELS}
    own = in_force(Policy("own", validate=images, kinds=("WebApp",), needs=("services",)))
    planner = Planner(KINDS["example.com", "WebApp"], (DEPLOYMENT,), plan_shop)
    assert Engine([looks, own], Planners([planner])).needs(about("WebApp")) == {
        NOW,
        "limit_ranges",
        "services",
    }


def test_no_children_are_planned_for_an_object_that_is_being_deleted():
    """The controller creates no children, so that only the object itself is judged."""
    ending = {"deletionTimestamp": "2026-11-21T00:00:00Z", "finalizers": ["a"]}
    judging = engine(in_force(SIZES.policy, tolerates_existing=False))
    assert not judging.validate(request(shop(size=6), shop(size=5))).allowed
    assert judging.validate(request(shop(size=6, **ending), shop(size=5, **ending))) == Verdict()


def judged(*policies):
    """Return the kinds that are judged."""
    return sorted(kind.kind for kind in engine(*policies).judged_kinds)


def test_a_parent_is_judged_if_a_child_can_be_denied():
    """A Mall always is, because a Shop's type may reject its child; a Shop is if a policy looks at its children."""
    assert judged() == ["Mall"]
    assert judged(SIZES) == ["Deployment", "Mall", "Shop"]
    assert judged(in_force(Policy("jobs", validate=images, kinds=("Job",)))) == ["Job", "Mall"]
    sets = in_force(
        Policy("sets", mutate=lambda _request, _params: iter(()), kinds=("Deployment",))
    )
    assert judged(sets) == ["Mall", "Shop"]


def plan_kiosk(kiosk, now, served):
    """Plan a Service; with another port if PodDisruptionBudgets are served."""
    del now
    spec = {"ports": [{"port": 2 if ("policy", "poddisruptionbudgets") in served else 1}]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": spec}
    return PlannedChildren([PlannedObject(SERVICE, service)])


def ports(request, _):
    """Report the port."""
    yield Violation(
        "spec.ports", str(request.object["spec"]["ports"][0]["port"]), "is reported", "continue"
    )


def test_available_apis_decide_the_children():
    """Optional APIs are looked up, also for grandparents; without an answer there is no verdict."""
    kiosk = Planner(SHOP, (SERVICE,), plan_kiosk, optional=(BUDGET,))
    policy = in_force(Policy("ports", validate=ports, kinds=(SERVICE,)))
    judging = Engine([policy], Planners([kiosk, MALLS], CONTROLLER))
    assert (
        judging.needs(request(shop()).attributes)
        == judging.needs(request(mall()).attributes)
        == {NOW, SERVED}
    )
    found = []
    for served in ((), {("policy", "poddisruptionbudgets")}):
        (outcome,) = judging.validate(request(shop(), looked_up={SERVED: served})).outcomes
        found.append(outcome.violations[0].found)
    assert found == ["1", "2"]
    (outcome,) = judging.validate(request(shop())).outcomes
    assert isinstance(outcome.error, NotLookedUpError)
