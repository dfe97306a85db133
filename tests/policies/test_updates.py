"""Updates of each denied case: an unrelated change is allowed, a worse value is denied."""

import copy
import re
from dataclasses import replace
from functools import cache

import pytest

from tests.policies.trials import FILES, trials_of
from webhook import review
from webhook.harness.reviews import review as encode

PLACE = re.compile(
    r"\[[0-9]+\]|(?<=ports)\[name=[^]]+\]"
)  # of an item that has no name to know it by
SAFE = {  # a container that inherits nothing from its pod
    "name": "unrelated",
    "image": "x.example/unrelated:1",
    "securityContext": {
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
        "appArmorProfile": {"type": "RuntimeDefault"},
        "seLinuxOptions": {"type": "container_t"},
        "windowsOptions": {"hostProcess": False},
    },
}


def judged(trial, new, old=None):
    """The denied and the tolerated violations of a creation, or of an update from an old object."""
    asked = replace(
        trial.admission, object=new, old_object=old, operation="UPDATE" if old else "CREATE"
    )
    outcomes = trial.engine.validate(
        review.read(encode(asked)).with_looked_up(trial.looked_up)
    ).outcomes
    denied = [each for outcome in outcomes for each in outcome.violations]
    return denied, [each for outcome in outcomes for each in outcome.tolerated]


def message(violation):
    """The message, without indexes of list items."""
    return PLACE.sub("[]", violation.message)


def lists_of(value, path=()):
    """Yield each list in an object, with its path."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    if isinstance(value, list):
        yield path, value
    for key, item in list(items):
        yield from lists_of(item, (*path, key))


def leaves_of(value, path=()):
    """Yield each number, text and boolean in an object, with its path."""
    if not isinstance(value, dict | list):
        yield path, value
        return
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield from leaves_of(item, (*path, key))


def at(value, path):
    """Return the value at a path."""
    for step in path:
        value = value[step]
    return value


def named(object, *names):
    """The lists of objects with these names."""
    found = [items for path, items in lists_of(object) if path[-1] in names]
    return [items for items in found if all(isinstance(each, dict) for each in items)]


def nothing(object):
    """Change nothing."""


def another_label(object):
    """Add a label and an annotation."""
    for field in ("labels", "annotations"):
        object["metadata"][field] = (object["metadata"].get(field) or {}) | {"unrelated": "x"}


def another_order(object):
    """Turn all lists of objects around."""
    for path, items in list(lists_of(object)):
        if all(isinstance(each, dict) for each in items) and path[-1] != "initContainers":
            items.reverse()


def other_port_names(object):
    """Rename the ports of containers and Services."""
    for items in named(object, "ports"):
        for index, each in enumerate(items):
            each["name"] = f"renamed-{index}"


def more_in_containers(object):
    """Insert another variable, port, mount and directory in each container, before the existing ones."""
    more = {
        "env": {"name": "UNRELATED"},
        "ports": {"containerPort": 7777},
        "volumeMounts": {"mountPath": "/unrelated"},
    }
    for items in named(object, "containers", "initContainers"):
        for container in items:
            container.update(
                {field: [item, *(container.get(field) or ())] for field, item in more.items()},
                workingDir="/x",
            )


def another_container(object):
    """Put another container before the others."""
    for items in named(object, "containers"):
        items.insert(0, copy.deepcopy(SAFE))


def another_volume(object):
    """Put another volume before the others."""
    for items in named(object, "volumes"):
        items.insert(0, {"name": "unrelated", "emptyDir": {"sizeLimit": "1Mi"}})


UNRELATED = (
    *(nothing, another_label, another_order, other_port_names),
    *(more_in_containers, another_container, another_volume),
)


@cache
def denied_cases(file):
    """One trial of each case in which the creation of an object is denied, and the violations.

    Three tests share them.
    """
    trials, denied = {}, []
    for trial in trials_of(file):
        trials.setdefault(trial.where, trial)
    for trial in trials.values():
        about = trial.admission
        if (
            about.object is not None
            and not about.subresource
            and (found := judged(trial, about.object)[0])
        ):
            denied.append((trial, about.object, found))
    return denied


def with_another_item(object):
    """Yield, for each item of the object's lists, the object with a copy of the item."""
    for path, items in list(lists_of(object)):
        for item in items:
            new, second = copy.deepcopy(object), copy.deepcopy(item)
            if isinstance(second, dict) and isinstance(second.get("name"), str):
                second["name"] += "-second"
            at(new, path).append(second)
            yield path, new


def with_other_values(object):
    """Yield, for each field of the desired state, the object with another value of the field."""
    for path, value in list(leaves_of(object)):
        if path[0] in ("apiVersion", "kind") or path[-1] in ("name", "namespace"):
            continue
        others = (
            [not value]
            if isinstance(value, bool)
            else [value + 1, value - 1]
            if isinstance(value, int)
            else ()
        )
        for other in (f"{value}x", f"x{value}", value[:-1]) if isinstance(value, str) else others:
            new = copy.deepcopy(object)
            at(new, path[:-1])[path[-1]] = other
            yield (path, value, other), new


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_unrelated_change_is_no_violation(file):
    """Existing violations are allowed with a warning, whatever else an update changes."""
    for trial, object, found in denied_cases(file):
        before = {message(each) for each in found}
        for change in UNRELATED:
            new = copy.deepcopy(object)
            change(new)
            denied = [
                violation.message
                for violation in judged(trial, new, object)[0]
                if message(violation) in before
            ]
            assert denied == [], (trial.name, change.__name__)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_one_more_violation_is_denied(file):
    """A copy of a tolerated item is denied, except a copy of a role's rule, which adds no rights."""
    if file.stem in ("wildcard_rights", "escalation_rights"):
        return
    for trial, object, found in denied_cases(file):
        for path, new in with_another_item(object):
            if len(judged(trial, new)[0]) > len(found):
                assert judged(trial, new, object)[0], (trial.name, path)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_another_value_is_tolerated_only_where_it_is_no_worse(file):
    """Without an order of values, another violating value is a new violation."""
    for trial, object, found in denied_cases(file):
        before = {message(each) for each in found}
        for path, new in with_other_values(object):
            if all(message(each) in before for each in judged(trial, new)[0]):
                continue
            tolerated = [
                violation
                for violation in judged(trial, new, object)[1]
                if message(violation) not in before
            ]
            assert [each.message for each in tolerated if each.excess is None] == [], (
                trial.name,
                path,
            )
