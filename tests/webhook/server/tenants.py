"""Random policies and exceptions of a tenant, of at most 4 KiB, which cost as much as possible."""

import json
import random
import re
from typing import Any

from tests.webhook.cel.calls import CALLS, MACRO_CALLS, parts
from tests.webhook.server.hostile import policy, review
from webhook.cel.values import Optional

MAX_BYTES = 4 * 1024
CALLED = [call for calls in (*CALLS.values(), *MACRO_CALLS.values()) for call in calls]
GROWTH = (
    "[{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}]",
    "{0} + {0} + {0} + {0}",
    "{0}.map(x, {0})",
    "[{0}.flatten(20), {0}.distinct()]",
    "{0}.map(x, {0}.map(y, [x, y]))",
)
USES = (
    "{0}.flatten(20).size() > 0",
    "{0}.distinct().size() > 0",
    "sets.equivalent({0}, {0})",
    "{0}.indexOf({0}) < 0",
    "string({0}.map(x, string(x)).join(',')).matches('(a?){{300}}b')",
    "{0}.all(x, {0}.all(y, {0}.all(z, x == y || y == z || true)))",
    "{0} == {0}",
)
PIECES = ("*", "?", "a", "b", "*a", "?*", "/", "ab*")


def rules(draw: random.Random) -> dict[str, Any]:
    """Return a policy whose variables grow, and whose rules use them and call any functions."""
    variables = [
        {"name": "o", "expression": "dyn(object).o"},
        {"name": "v0", "expression": draw.choice(("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", "[[1]]"))},
    ]
    for number in range(draw.randint(0, 9)):
        grown = draw.choice(GROWTH).format(f"variables.v{number}")
        variables.append({"name": f"v{number + 1}", "expression": grown})
    last = f"variables.{variables[-1]['name']}"
    calls = [re.sub(r"\bo\.", "variables.o.", draw.choice(CALLED)) for _ in range(8)]
    expressions = [f"string({each}) != ''" for each in calls] + [
        draw.choice(USES).format(last) for _ in range(3)
    ]
    draw.shuffle(expressions)
    spec = {"match": {"any": [{"kinds": ["ConfigMap"]}]}, "variables": variables}
    return {**spec, "validations": [{"expression": each} for each in expressions]}


def within(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a policy without the rules that exceed the size limit."""
    while len(json.dumps(policy(spec))) > MAX_BYTES:
        spec["validations"].pop()
    return policy(spec)


def labels(draw: random.Random) -> dict[str, Any]:
    """Return a policy with many regular expressions."""
    found = {f"k{number}": rf"/(\pL{{1,{draw.randint(1, 99)}}}){{9}}b/" for number in range(90)}
    return policy({"policy": "required-labels", "params": {"labels": found}})


def exception(draw: random.Random) -> dict[str, Any]:
    """Return an exception with patterns of any shape."""
    field = draw.choice(("names", "containers", "images"))
    size = draw.randint(5, 400)
    globs = ["".join(draw.choices(PIECES, k=size))[:480] for _ in range(3000 // (size + 20) + 1)]
    entry = {"policy": "it", field: globs[:8]}
    spec = {"reason": "r", "expires": "2100-01-01", "exceptions": [entry]}
    return {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "PolicyException",
        "metadata": {"name": "it", "namespace": "shop"},
        "spec": spec,
    }


def objects(draw: random.Random) -> list[dict[str, Any]]:
    """Return the objects of a tenant: a policy, and perhaps an exception from it."""
    kind = draw.choice((rules, rules, rules, labels))
    found = [within(rules(draw)) if kind is rules else labels(draw)]
    return found + [exception(draw)] * draw.randint(0, 1)


def reviews(draw: random.Random) -> list[tuple[str, bytes]]:
    """Return reviews that those policies judge: small and large ones."""
    known = parts(draw.choice((1, 100, 1000)))
    del known["shared"]  # it would have exponentially many values as JSON
    plain = {key: each for key, each in known.items() if not has_no_json(each)}
    config = {"kind": "ConfigMap", "metadata": {"name": "a" * 250}, "o": plain}
    image = "a/" * draw.choice((1, 2000, 50_000)) + "a"
    container = {"name": "a" * draw.choice((1, 60, 4000)), "image": image}
    pod = {
        "kind": "Pod",
        "metadata": {"name": "a" * 250, "labels": {"k1": "a" * 4000}},
        "spec": {"containers": [container] * draw.choice((1, 30))},
    }
    return [("/validate", review(config, "", "configmaps")), ("/validate", review(pod, "", "pods"))]


def has_no_json(value: Any) -> bool:
    """Return whether a CEL value has no JSON form."""
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, bytes | Optional)
