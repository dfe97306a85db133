"""Finds the fields that a policy's CEL rules read, and test objects that the rules do not read."""

from collections.abc import Iterable, Iterator
from typing import Any

from config.faults import did_you_mean
from webhook.cel import Steps, fields_read
from webhook.policy_sets.rules import RulePolicy

SUBJECTS = frozenset({"object", "oldObject", "request", "namespaceObject", "authorizer"})
KIND = frozenset({"apiVersion", "kind"})
ROUTING = {
    "object": KIND,
    "oldObject": KIND,
    "request": frozenset({"operation", "kind", "resource"}),
}


def looks(policy: RulePolicy) -> bool:
    """Whether the rules read more of a request than its kind and operation.

    Always true for mutations, whose result is compared with the object.
    """
    read = (
        steps for source in policy.sources for steps in fields_read(source) if steps[0] in SUBJECTS
    )
    return policy.mutate is not None or any(
        ROUTING.get(steps[0], KIND).isdisjoint(steps[1:2]) for steps in read
    )


def unread(object: dict[str, Any], policies: Iterable[RulePolicy]) -> Iterator[tuple[str, str]]:
    """Yield path and message for each field that no rule reads.

    Used for objects of a kind without a known schema.
    """
    sources = (source for policy in policies for source in policy.sources)
    read = {
        steps[1:]
        for source in sources
        for steps in fields_read(source)
        if steps[0] in ("object", "oldObject")
    }
    own = {key: value for key, value in object.items() if key not in {*KIND, "metadata"}}
    return _unread(own, (), read)


def _unread(value: Any, above: Steps, read: set[Steps]) -> Iterator[tuple[str, str]]:
    if any(above[: len(steps)] == steps for steps in read):
        return  # a rule reads all of it
    if not isinstance(value, dict):
        yield ".".join(above), "must be an object: a rule reads fields of it"
        return
    read_keys = {steps[len(above)] for steps in read if steps[: len(above)] == above}
    for key, below in value.items():
        if key in read_keys:
            yield from _unread(below, (*above, key), read)
        else:
            yield ".".join((*above, key)), f"no rule reads this field{did_you_mean(key, read_keys)}"
