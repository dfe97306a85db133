"""Converted rules about containers: one for each list, and messages that name the containers."""

import pytest

from gatewright.tools.cel_text import conjuncts
from tests.gatewright.tools.migrate.converted import cluster_policy, converted, judging

TAGGED = {"image": "*:*"}
PATTERN = {"spec": {"=(initContainers)": [TAGGED], "containers": [TAGGED]}}
FOREACH = [
    {"list": f"request.object.spec.{field}", "pattern": TAGGED}
    for field in ("initContainers", "containers")
]


def containers(*images):
    """Return containers with these images, named a, b and so on."""
    return [{"name": "abc"[at], "image": each} for at, each in enumerate(images)]


@pytest.mark.parametrize("check", [{"pattern": PATTERN}, {"foreach": FOREACH}])
@pytest.mark.parametrize(
    ("images", "init", "messages"),
    [
        (["x:1"], ["y:1"], []),
        (["x", "y:1", "z"], ["y:1"], ["containers a, c: a tag is required"]),
        (["x:1"], ["y:1", "z"], ["initContainers b: a tag is required"]),
        (["x"], ["y"], ["containers a: a tag is required", "initContainers a: a tag is required"]),
    ],
)
def test_a_message_names_the_containers(check, images, init, messages):
    """Both of a pattern and of foreach, and in pod templates."""
    rule = {"message": "a tag is required", **check}
    judged = judging(each.object for each in converted(cluster_policy(rule)).converted)
    pod = {"containers": containers(*images), "initContainers": containers(*init)}
    for kind, spec in (("Pod", pod), ("Deployment", {"template": {"spec": pod}})):
        found = sorted(each.violation.message for each in judged(kind, spec=spec).findings)
        assert found == messages


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a && b", ["a", "b"]),
        ("a && (b || c)", ["a", "b || c"]),
        ("(a && b) || c", ["(a && b) || c"]),
        ("(a) && (b)", ["a", "b"]),
        ("f('x && y') && a ? b : c", ["f('x && y') && a ? b : c"]),
        ("f('x && y') && (a ? b : c)", ["f('x && y')", "a ? b : c"]),
        ("(a || b) + (c || d)", ["(a || b) + (c || d)"]),
        ("!(a && b) && c.all(x, x && y)", ["!(a && b)", "c.all(x, x && y)"]),
    ],
)
def test_conjuncts_are_the_operands_of_the_outer_and(text, parts):
    """Text and what is in brackets is no operator."""
    assert conjuncts(text) == parts
