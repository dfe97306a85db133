"""The findings of doctor: the request that fails, the severity, and the smallest fix."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gatewright.doctor.models import ClusterObject, WebhookConfiguration

CRITICAL, WARNING, NOTE = "critical", "warning", "note"
LEVELS_OF_HARM = (CRITICAL, WARNING, NOTE)
RESOURCES = {
    "ValidatingWebhookConfiguration": "validatingwebhookconfiguration",
    "MutatingWebhookConfiguration": "mutatingwebhookconfiguration",
    "CustomResourceDefinition": "crd",
    "APIService": "apiservice",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazard:
    """One fault of an object.

    `check` names the sort of fault, `path` the field, `message` the request that fails and why.
    `patch` is a JSON Patch (RFC 6902) that fixes the object, if a patch can; `run` is a command, if
    another object must be changed; `fix` describes the fix.
    """

    check: str
    subject: ClusterObject
    level: str
    message: str
    fix: str
    path: str = ""
    patch: tuple[Mapping[str, Any], ...] = ()
    run: str = ""

    @property
    def command(self) -> str:
        """The kubectl command that fixes the fault; "" if none does."""
        if not self.patch:
            return self.run
        resource = RESOURCES.get(self.subject.kind, self.subject.kind.lower())
        operations = shlex.quote(json.dumps(self.patch))
        name = shlex.quote(self.subject.metadata.name)
        return f"kubectl patch {resource} {name} --type=json -p {operations}"

    @property
    def remedy(self) -> str:
        """The fix, with its command."""
        return f"{self.fix}: {self.command}" if self.command else f"{self.fix}."


def excluding(
    configuration: WebhookConfiguration, index: int, namespaces: Sequence[str]
) -> tuple[Mapping[str, Any], ...]:
    """Return the patch that excludes namespaces from a webhook's namespaceSelector."""
    selector = configuration.webhooks[index].namespace_selector
    requirement = {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": list(namespaces),
    }
    path = f"/webhooks/{index}/namespaceSelector"
    if selector is None:
        value: Any = {"matchExpressions": [requirement]}
        return ({"op": "add", "path": path, "value": value},)
    if not selector.match_expressions:
        return ({"op": "add", "path": f"{path}/matchExpressions", "value": [requirement]},)
    return ({"op": "add", "path": f"{path}/matchExpressions/-", "value": requirement},)


def sparing(
    configuration: WebhookConfiguration, index: int, resources: Sequence[str]
) -> tuple[Mapping[str, Any], ...]:
    """Return the patch that takes resources out of a webhook's rules."""
    condition = {
        "name": "spares-what-the-cluster-needs",
        "expression": f"!(request.resource.resource in {json.dumps(list(resources))})",
    }
    path = f"/webhooks/{index}/matchConditions"
    if not configuration.webhooks[index].match_conditions:
        return ({"op": "add", "path": path, "value": [condition]},)
    return ({"op": "add", "path": f"{path}/-", "value": condition},)
