"""Gatekeeper's mutators: what they change, what they leave, and which are listed instead."""

import pytest

from tests.gatewright.tools.migrate.converted import converted, mutated, reasons, verdict

NEAREST = "a mutation in CEL, `security-defaults` or `resource-defaults`"
OMIT = "nothing: omit it"
PULL = "spec.containers[name:*].imagePullPolicy"
PODS = [{"groups": [""], "versions": ["v1"], "kinds": ["Pod"]}]


def mutator(kind, location, **parameters):
    """Return a mutator of Pods."""
    return {
        "apiVersion": "mutations.gatekeeper.sh/v1",
        "kind": kind,
        "metadata": {"name": "m"},
        "spec": {"applyTo": PODS, "location": location, "parameters": parameters},
    }


def assign(location, value="Always", **parameters):
    """Return an Assign."""
    return mutator("Assign", location, assign={"value": value}, **parameters)


def exists(path):
    """Return a path test."""
    return {"subPath": path, "condition": "MustExist"}


def missing(path):
    """Return a path test."""
    return {"subPath": path, "condition": "MustNotExist"}


def containers(*given, sort="containers", by):
    """Return the containers after a mutator."""
    named = [{"name": name, "image": "a:1"} | fields for name, fields in given]
    return mutated(converted(by), spec={sort: named})["spec"][sort]


def test_a_label_is_assigned_where_it_is_missing():
    """AssignMetadata never changes an existing label."""
    by = mutator("AssignMetadata", "metadata.labels.owner", assign={"value": "team"})
    assert mutated(converted(by))["metadata"]["labels"] == {"owner": "team"}
    labels = {"owner": "me", "app": "web"}
    assert mutated(converted(by), metadata={"labels": labels})["metadata"]["labels"] == labels


def test_a_field_is_assigned_with_the_parents_that_it_lacks():
    """With MustNotExist, only an unset field is assigned."""
    location = 'spec.nodeSelector."example.com/pool"'
    other = {"nodeSelector": {"example.com/pool": "b", "c": "d"}}
    always = converted(assign(location, "a"))
    assert mutated(always)["spec"]["nodeSelector"] == {"example.com/pool": "a"}
    assert mutated(always, spec=other)["spec"]["nodeSelector"] == {
        "example.com/pool": "a",
        "c": "d",
    }
    unset = converted(assign(location, "a", pathTests=[missing(location)]))
    assert mutated(unset)["spec"]["nodeSelector"] == {"example.com/pool": "a"}
    assert mutated(unset, spec=other)["spec"]["nodeSelector"] == other["nodeSelector"]


def test_a_parent_can_be_a_condition():
    """MustExist changes objects with the parent, MustNotExist objects without it."""
    location, parent = "spec.dnsConfig.nameservers", "spec.dnsConfig"
    own = {"searches": ["shop"]}
    within = converted(assign(location, ["1.1.1.1"], pathTests=[exists(parent)]))
    assert "dnsConfig" not in mutated(within)["spec"]
    changed = own | {"nameservers": ["1.1.1.1"]}
    assert mutated(within, spec={"dnsConfig": own})["spec"]["dnsConfig"] == changed
    without = converted(assign(location, ["1.1.1.1"], pathTests=[missing(parent)]))
    assert mutated(without)["spec"]["dnsConfig"] == {"nameservers": ["1.1.1.1"]}
    assert mutated(without, spec={"dnsConfig": own})["spec"]["dnsConfig"] == own


def test_a_field_of_every_item_of_a_list_is_assigned():
    """Missing parents in each item are created; a missing list is not."""
    by = assign("spec.containers[name:*].securityContext.runAsUser", 1000)
    assert containers(
        ("a", {}), ("b", {"securityContext": {"runAsUser": 0, "privileged": False}}), by=by
    ) == [
        {"name": "a", "image": "a:1", "securityContext": {"runAsUser": 1000}},
        {"name": "b", "image": "a:1", "securityContext": {"runAsUser": 1000, "privileged": False}},
    ]  # fmt: skip
    inits = assign("spec.initContainers[name:*].imagePullPolicy")
    assert verdict(converted(inits)) == "allowed"


def test_a_field_of_items_is_assigned_where_it_is_missing():
    """MustNotExist is tested in each item, as gatekeeper-library's samples do."""
    options = {"level": "s1:c234,c567", "user": "sysadm_u"}
    location = "spec.containers[name:*].securityContext.seLinuxOptions"
    by = assign(location, options, pathTests=[missing(location)])
    own = {"securityContext": {"seLinuxOptions": {"type": "t"}}}
    assert containers(("a", {}), ("b", own), by=by) == [
        {"name": "a", "image": "a:1", "securityContext": {"seLinuxOptions": options}},
        {"name": "b", "image": "a:1"} | own,
    ]


def test_one_item_is_changed_where_it_must_exist():
    """Other items do not change, and none is added."""
    location = 'spec.containers[name: "side-car"].imagePullPolicy'
    by = assign(location, pathTests=[exists('spec.containers[name: "side-car"]')])
    assert containers(("a", {}), ("side-car", {}), by=by) == [
        {"name": "a", "image": "a:1"},
        {"name": "side-car", "image": "a:1", "imagePullPolicy": "Always"},
    ]
    assert containers(("a", {}), by=by) == [{"name": "a", "image": "a:1"}]


def test_lists_within_lists():
    """Every port of every container is changed."""
    by = assign("spec.containers[name:*].ports[containerPort:*].protocol", "UDP")
    ports = {"ports": [{"containerPort": 1}, {"containerPort": 2, "protocol": "TCP"}]}
    assert containers(("a", ports), ("b", {}), by=by) == [
        {
            "name": "a",
            "image": "a:1",
            "ports": [
                {"containerPort": 1, "protocol": "UDP"},
                {"containerPort": 2, "protocol": "UDP"},
            ],
        },
        {"name": "b", "image": "a:1"},
    ]


@pytest.mark.parametrize(
    ("image", "domain", "path", "tag"),
    [
        ("gcr.io/some-image/hello:latest", "gcr.io/", "some-image/hello", ":latest"),
        ("some-image/hello@sha256:abcde", "", "some-image/hello", "@sha256:abcde"),
        ("alpine", "", "alpine", ""),
        ("_/alpine:latest", "", "_/alpine", ":latest"),
        ("this.that.com:5000/repo/alpine", "this.that.com:5000/", "repo/alpine", ""),
        ("localhost:5000/repo/alpine:1", "localhost:5000/", "repo/alpine", ":1"),
        ("localhost/alpine", "localhost/", "alpine", ""),
        ("x.y.z/gcr.io/repo:latest", "x.y.z/", "gcr.io/repo", ":latest"),
        (
            "x.io/get/ready4.//this/not.good:404@yikes/bad/string",
            "x.io/",
            "get/ready4.//this/not.good",
            ":404@yikes/bad/string",
        ),
    ],
)
def test_parts_of_an_image_are_assigned(image, domain, path, tag):
    """The images and their parts are those of Gatekeeper's own test of its parser."""
    for parts, expected in (
        ({"assignDomain": "reg.example.com"}, f"reg.example.com/{path}{tag}"),
        ({"assignPath": "team/app"}, f"{domain}team/app{tag}"),
        ({"assignTag": ":v2"}, f"{domain}{path}:v2"),
        ({"assignDomain": "r.io:5", "assignTag": "@sha256:f"}, f"r.io:5/{path}@sha256:f"),
        ({"assignDomain": "r.io", "assignPath": "p", "assignTag": ":t"}, "r.io/p:t"),
    ):
        by = mutator("AssignImage", "spec.containers[name:*].image", **parts)
        assert containers(("a", {"image": image}), by=by) == [{"name": "a", "image": expected}]


def test_values_are_merged_into_a_set_and_pruned_from_it():
    """Values are added in order; only a merge creates a missing list."""
    location = "spec.containers[name:*].securityContext.capabilities.add"
    own = {"securityContext": {"capabilities": {"add": ["CHOWN", "KILL"]}}}
    values = {"fromList": ["KILL", "NET_RAW"]}
    for operation, of_own, of_none in (
        ({}, ["CHOWN", "KILL", "NET_RAW"], {"securityContext": {"capabilities": {"add": values["fromList"]}}}),
        ({"operation": "merge"}, ["CHOWN", "KILL", "NET_RAW"], {"securityContext": {"capabilities": {"add": values["fromList"]}}}),
        ({"operation": "prune"}, ["CHOWN"], {}),
    ):  # fmt: skip
        by = mutator("ModifySet", location, values=values, **operation)
        assert containers(("a", own), ("b", {}), by=by) == [
            {
                "name": "a",
                "image": "a:1",
                "securityContext": {"capabilities": {"add": of_own}},
            },
            {"name": "b", "image": "a:1"} | of_none,
        ]


def test_namespaces_that_the_config_excludes_are_not_changed():
    """The Config has a separate process for mutators."""
    match = [
        {"processes": ["mutation-webhook"], "excludedNamespaces": ["bank-*"]},
        {"processes": ["webhook"], "excludedNamespaces": ["shop"]},
        {"processes": ["*"], "excludedNamespaces": ["all"]},
    ]
    config = {
        "apiVersion": "config.gatekeeper.sh/v1alpha1",
        "kind": "Config",
        "metadata": {"name": "config"},
        "spec": {"match": match},
    }
    migration = converted(config, assign(PULL))
    for namespace, expected in (("bank-1", "unmatched"), ("all", "unmatched"), ("shop", "mutated")):
        assert verdict(migration, namespace=namespace) == expected


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (assign("spec.containers[name: app].imagePullPolicy"), "it may add an item to a list; only existing items are changed"),
        (assign("spec.containers[name: app]", {"name": "app"}), "it may add an item to a list; only existing items are changed"),
        (
            assign(PULL, pathTests=[missing("spec.containers")]),
            "it tests that the list that it changes is missing",
        ),
        (assign("spec.containers[name:*"), "the location spec.containers[name:* cannot be read"),
        (assign("[name:*].a"), "the location [name:*].a cannot be read"),
        (assign("spec.dnsPolicy", pathTests=[exists("spec.hostname")]), "its pathTests are about other paths than its location"),
        (
            mutator("Assign", "spec.dnsPolicy", assign={"fromMetadata": {"field": "name"}}),
            "it changes more than fields at fixed paths",
        ),
        (
            mutator("ModifySet", "spec.tolerations", values={"fromList": [{"key": "a"}]}),
            "its values are not distinct texts",
        ),
        (
            mutator("ModifySet", "spec.a", operation="prune", values={"fromList": ["a"]},
                    pathTests=[missing("spec.a")]),
            "it never changes anything",
        ),
    ],
)  # fmt: skip
def test_a_mutator_that_cannot_be_shown_equal_is_listed(given, reason):
    """The nearest equivalent is listed with it."""
    nearest = OMIT if reason == "it never changes anything" else NEAREST
    assert reasons(given) == [(f"{given['kind']} m", reason, nearest)]


def test_kinds_that_match_and_apply_to_have_in_common():
    """Without a common kind, a mutator never applies."""
    given = assign(PULL)
    given["spec"]["match"] = {"kinds": [{"apiGroups": ["*"], "kinds": ["Pod", "Service"]}]}
    assert converted(given).converted[0].spec["match"] == {"any": [{"kinds": ["Pod"]}]}
    given["spec"]["match"] = {"kinds": [{"apiGroups": ["*"], "kinds": ["Service"]}]}
    reason = "`match` and `applyTo` have no kind in common"
    assert reasons(given) == [("Assign m", reason, OMIT)]
