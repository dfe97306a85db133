"""A single change to a policy set, for mutation testing."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from webhook.harness.subject import Subject
from webhook.policy_sets.policy_set import Catalogue

UNCHANGED = object()  # returned by a Change that does not apply to a value
Change = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: the policy, a description, and a function to the changed policies; None if not applicable."""

    policy: str
    description: str
    change: Callable[[Subject, Catalogue], tuple[Subject, Catalogue] | None]


def in_spec(
    index: int, path: tuple[str | int, ...], default: Any, change: Change
) -> Callable[[Subject, Catalogue], tuple[Subject, Catalogue] | None]:
    """Return the change of the field at `path` in the spec of the policy object at `index`."""

    def changed(subject: Subject, catalogue: Catalogue) -> tuple[Subject, Catalogue] | None:
        value = copy.deepcopy(subject.documents[index].value)
        parent: Any = value["spec"]
        for step in path[:-1]:
            parent = parent[step] if isinstance(step, int) else parent.setdefault(step, {})
        old = parent.get(path[-1], default)
        new = change(old)
        if new is UNCHANGED or new == old:
            return None
        parent[path[-1]] = new
        return subject.with_value(index, value), catalogue

    return changed
