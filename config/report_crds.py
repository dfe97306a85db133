"""CustomResourceDefinitions of the reports that the audit writes, for clusters without them.

Source: openreports.io/v1alpha1 (reports-api 0.2) and wgpolicyk8s.io/v1alpha2 (Policy Working
Group). Field names and enumerations follow these APIs; other tools read and write the same kinds.
"""

from typing import Any, NamedTuple

import yaml

from kube.resource import JsonObject

TEXT: JsonObject = {"type": "string"}
NUMBER: JsonObject = {"type": "integer"}
REFERENCE_FIELDS = (
    "apiVersion",
    "kind",
    "namespace",
    "name",
    "uid",
    "resourceVersion",
    "fieldPath",
)
REFERENCE: JsonObject = {
    "type": "object",
    "description": "The object that a report or a result is about (core/v1 ObjectReference).",
    "properties": dict.fromkeys(
        ("apiVersion", "kind", "namespace", "name", "uid", "resourceVersion", "fieldPath"), TEXT
    ),
    "x-kubernetes-map-type": "atomic",
}
SELECTOR: JsonObject = {
    "type": "object",
    "description": "A label selector (meta/v1 LabelSelector).",
    "properties": {
        "matchLabels": {"type": "object", "additionalProperties": TEXT},
        "matchExpressions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["key", "operator"],
                "properties": {
                    "key": TEXT,
                    "operator": TEXT,
                    "values": {"type": "array", "items": TEXT},
                },
            },
        },
    },
    "x-kubernetes-map-type": "atomic",
}
RESULT: JsonObject = {
    "type": "object",
    "required": ["policy"],
    "properties": {
        "source": {**TEXT, "description": "The policy engine."},
        "policy": {**TEXT, "description": "Name of the policy."},
        "rule": {**TEXT, "description": "Name of the rule within the policy."},
        "category": {**TEXT, "description": "Category of the policy."},
        "severity": {**TEXT, "enum": ["critical", "high", "low", "medium", "info"]},
        "timestamp": {
            "type": "object",
            "required": ["seconds", "nanos"],
            "description": "When the result was found (meta/v1 Timestamp).",
            "properties": {
                "seconds": {**NUMBER, "format": "int64"},
                "nanos": {**NUMBER, "format": "int32"},
            },
        },
        "result": {**TEXT, "enum": ["pass", "fail", "warn", "error", "skip"]},
        "scored": {"type": "boolean", "description": "Whether the result is scored."},
        "resources": {"type": "array", "items": REFERENCE},
        "resourceSelector": SELECTOR,
        "message": {**TEXT, "description": "Message for people."},
        "properties": {"type": "object", "additionalProperties": TEXT},
    },
}
COUNTS = ("pass", "fail", "warn", "error", "skip")
COMMON: JsonObject = {
    "apiVersion": TEXT,
    "kind": TEXT,
    "metadata": {"type": "object"},
    "scope": REFERENCE,
    "scopeSelector": SELECTOR,
    "summary": {"type": "object", "properties": dict.fromkeys(COUNTS, NUMBER)},
    "results": {"type": "array", "items": RESULT},
}
CONFIGURATION: JsonObject = {
    "type": "object",
    "required": ["limits"],
    "properties": {
        "limits": {
            "type": "object",
            "properties": {
                "maxResults": {**NUMBER, "description": "Maximum number of results in a report."},
                "statusFilter": {"type": "array", "items": {**TEXT, "enum": [*COUNTS]}},
            },
        }
    },
}


class ReportKind(NamedTuple):
    """One kind of report."""

    group: str
    version: str
    kind: str
    plural: str
    short_name: str
    namespaced: bool


KINDS = (
    ReportKind("openreports.io", "v1alpha1", "Report", "reports", "reps", namespaced=True),
    ReportKind(
        "openreports.io", "v1alpha1", "ClusterReport", "clusterreports", "creps", namespaced=False
    ),
    ReportKind(
        "wgpolicyk8s.io", "v1alpha2", "PolicyReport", "policyreports", "polr", namespaced=True
    ),
    ReportKind(
        "wgpolicyk8s.io",
        "v1alpha2",
        "ClusterPolicyReport",
        "clusterpolicyreports",
        "cpolr",
        namespaced=False,
    ),
)


def definition(kind: ReportKind) -> dict[str, Any]:
    """Return the CustomResourceDefinition of one kind of report."""
    properties = dict(COMMON)
    if kind.group == "openreports.io":
        properties |= {
            "source": {**TEXT, "description": "The policy engine."},
            "configuration": CONFIGURATION,
        }
    columns = [("Kind", ".scope.kind"), ("Name", ".scope.name")]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.kind.lower(),
                "shortNames": [kind.short_name],
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [
                        *(
                            {"name": name, "type": "string", "jsonPath": path}
                            for name, path in columns
                        ),
                        *(
                            {
                                "name": name.capitalize(),
                                "type": "integer",
                                "jsonPath": f".summary.{name}",
                            }
                            for name in COUNTS
                        ),
                        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                    ],
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                }
            ],
        },
    }


def render() -> dict[str, str]:
    """Return the definitions of each report API as YAML, by file name."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for kind in KINDS:
        groups.setdefault(kind.group, []).append(definition(kind))
    return {f"{group}.yaml": _dump(definitions) for group, definitions in groups.items()}


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _dump(definitions: list[dict[str, Any]]) -> str:
    return yaml.dump_all(
        definitions, Dumper=_Plain, sort_keys=False, width=120, explicit_start=True
    )
