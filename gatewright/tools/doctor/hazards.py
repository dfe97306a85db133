"""The findings of doctor: the request that fails, the severity, and the smallest fix."""

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gatewright.tools.doctor.models import ClusterObject
from gatewright.tools.doctor.state import Registered

CRITICAL, WARNING, NOTE = "critical", "warning", "note"
LEVELS_OF_HARM = (CRITICAL, WARNING, NOTE)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]*")  # what a cluster has, and no option of kubectl
MAX_NAMES = 4  # names that one message lists
ObjectPatch = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Hazard:
    """One fault of an object.

    `check` names the sort of fault, `path` the field, `message` the request that fails and why.
    `patch` is a JSON Patch (RFC 6902) that fixes the object, if one can; the patches of an object
    are merged into one. `run` is a command of its own: it changes another object, or is right only
    under the condition that `fix` names. `fix` describes the fix.
    """

    check: str
    level: str
    subject: ClusterObject
    path: str
    message: str
    fix: str
    patch: ObjectPatch = ()
    run: str = ""

    @property
    def command(self) -> str:
        """The kubectl command that fixes the fault; "" if none does."""
        return patch_command(self.subject, self.patch) if self.patch else self.run

    @property
    def remedy(self) -> str:
        """The fix, with its command."""
        return f"{self.fix}: {self.command}" if self.command else f"{self.fix}."


def of_webhook(
    check: str, level: str, each: Registered, message: str, fix: str, **fields: object
) -> Hazard:
    """Return a finding about a webhook, whose patch sets `fields` of it."""
    patch = tuple(op for field, value in fields.items() for op in setting(each, field, value))
    return Hazard(check, level, each.configuration, each.path, message, fix, patch)


def on_condition(hazard: Hazard) -> Hazard:
    """Return a finding whose patch is a command of its own, since it is not right for everybody."""
    return replace(hazard, patch=(), run=patch_command(hazard.subject, hazard.patch))


def patch_command(subject: ClusterObject, patch: ObjectPatch) -> str:
    """Return the kubectl command that applies a JSON Patch."""
    return kubectl("patch", subject, "--type=json", "-p", json.dumps(patch))


def patch_commands(changes: Iterable[tuple[Registered, ObjectPatch]]) -> str:
    """Return the commands that change webhooks, one for each configuration."""
    patches: dict[str, tuple[Registered, ObjectPatch]] = {}
    for change, patch in changes:
        first, before = patches.get(change.configuration.title, (change, ()))
        patches[change.configuration.title] = first, before + patch
    commands = [patch_command(e.configuration, patch) for e, patch in patches.values()]
    return " && ".join(filter(None, commands))


def kubectl(verb: str, subject: ClusterObject, *options: str, kind: str = "") -> str:
    """Return a kubectl command about an object, or one of another kind with the same name.

    There is none if a file has a name that no cluster has: `--all` would be an option.
    """
    space, name = subject.metadata.namespace, subject.metadata.name
    if not all(map(NAME.fullmatch, (space or name, name))):
        return ""
    within = ("--namespace", space) if space else ()
    named = (kind or subject.kind.lower(), name)
    return shlex.join(("kubectl", *verb.split(), *named, *within, *options))


def setting(each: Registered, field: str, value: object) -> ObjectPatch:
    """Return the patch that sets a field of a webhook."""
    return ({"op": "add", "path": f"{each.pointer}/{field}", "value": value},)


def excluding(each: Registered, namespaces: Sequence[str]) -> ObjectPatch:
    """Return the patch that excludes namespaces from a webhook's namespaceSelector."""
    selector = each.webhook.namespace_selector
    requirement = {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": list(namespaces),
    }
    if selector is None:
        return setting(each, "namespaceSelector", {"matchExpressions": [requirement]})
    # The whole list, so that the command may be run twice.
    kept = [expression.to_api() for expression in selector.match_expressions]
    return setting(each, "namespaceSelector/matchExpressions", [*kept, requirement])


def sparing(each: Registered, expressions: Sequence[str]) -> ObjectPatch:
    """Return the patch that adds a condition: the webhook is called where no expression holds."""
    conditions = [condition.to_api() for condition in each.webhook.match_conditions]
    added = {
        "name": "spares-what-the-cluster-needs" + (f"-{len(conditions)}" if conditions else ""),
        "expression": f"!({' || '.join(expressions)})",
    }
    # The whole list, so that the command may be run twice: names of conditions are unique.
    return setting(each, "matchConditions", [*conditions, added])


def join_words(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: a, b and c."""
    *head, last = words or [""]
    return f"{', '.join(head)} and {last}" if head else last


def shorten_words(words: Sequence[str]) -> str:
    """Return the first words as a list in a sentence, and how many more there are."""
    more = len(words) - MAX_NAMES
    return join_words([*words[:MAX_NAMES], f"{more} more"] if more > 1 else words)
