"""The findings of doctor: the request that fails, the severity, and the smallest fix."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gatewright.doctor.models import ClusterObject
from gatewright.doctor.state import Registered

CRITICAL, WARNING, NOTE = "critical", "warning", "note"
LEVELS_OF_HARM = (CRITICAL, WARNING, NOTE)
ObjectPatch = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Hazard:
    """One fault of an object.

    `check` names the sort of fault, `path` the field, `message` the request that fails and why.
    `patch` is a JSON Patch (RFC 6902) that fixes the object, if a patch can; `run` is a command, if
    another object must be changed; `fix` describes the fix.
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
        if not self.patch:
            return self.run
        return patch_command(self.subject, self.patch)

    @property
    def remedy(self) -> str:
        """The fix, with its command."""
        return f"{self.fix}: {self.command}" if self.command else f"{self.fix}."


def patch_command(subject: ClusterObject, patch: ObjectPatch) -> str:
    """Return the kubectl command that applies a JSON Patch."""
    words = ("kubectl", "patch", subject.kind.lower(), subject.metadata.name, "--type=json", "-p")
    return shlex.join((*words, json.dumps(patch)))


def setting(each: Registered, field: str, value: object) -> ObjectPatch:
    """Return the patch that sets a field of a webhook."""
    return ({"op": "add", "path": f"/webhooks/{each.index}/{field}", "value": value},)


def excluding(each: Registered, namespaces: Sequence[str]) -> ObjectPatch:
    """Return the patch that excludes namespaces from a webhook's namespaceSelector."""
    selector = each.webhook.namespace_selector
    requirement = {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": list(namespaces),
    }
    path = f"/webhooks/{each.index}/namespaceSelector"
    if selector is None:
        value: Any = {"matchExpressions": [requirement]}
        return ({"op": "add", "path": path, "value": value},)
    if not selector.match_expressions:
        return ({"op": "add", "path": f"{path}/matchExpressions", "value": [requirement]},)
    return ({"op": "add", "path": f"{path}/matchExpressions/-", "value": requirement},)


def sparing(each: Registered, resources: Sequence[str]) -> ObjectPatch:
    """Return the patch that takes resources out of a webhook's rules."""
    condition = {
        "name": "spares-what-the-cluster-needs",
        "expression": f"!(request.resource.resource in {json.dumps(list(resources))})",
    }
    path = f"/webhooks/{each.index}/matchConditions"
    if not each.webhook.match_conditions:
        return ({"op": "add", "path": path, "value": [condition]},)
    return ({"op": "add", "path": f"{path}/-", "value": condition},)
