"""JSON Schemas of policy sets and case files, for editors."""

from collections.abc import Iterable
from typing import Any

import orjson

from config.api.policy import API_VERSION, AdmissionPolicySpec, PolicyMetadata
from config.api.policy_exception import PolicyExceptionSpec
from kube.resource import JsonObject
from webhook.engine import Policy
from webhook.harness.case_file import CaseFile

DRAFT = "http://json-schema.org/draft-07/schema#"
CASES, POLICY_SET = "cases.schema.json", "policy-set.schema.json"


def render(policies: Iterable[Policy]) -> dict[str, str]:
    """Return the schemas as indented JSON, by file name."""
    found = {CASES: cases(), POLICY_SET: policy_set(policies)}
    return {
        name: orjson.dumps(schema, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()
        for name, schema in found.items()
    }


def cases() -> JsonObject:
    """Return the schema of a case file."""
    return {"$schema": DRAFT, **_close(CaseFile.model_json_schema(by_alias=True))}


def policy_set(policies: Iterable[Policy]) -> JsonObject:
    """Return the schema of one document of a policy set, with its policy's parameters."""
    definitions: JsonObject = {}
    spec = _spec(AdmissionPolicySpec, definitions)
    rules = [
        _parameters(policy, definitions)
        for policy in sorted(policies, key=lambda policy: policy.name)
    ]
    spec["properties"]["policy"] |= {
        "enum": [rule["if"]["properties"]["policy"]["const"] for rule in rules]
    }
    spec["allOf"] = rules
    specs = {
        "ClusterAdmissionPolicy": spec,
        "AdmissionPolicy": spec,
        "PolicyException": _spec(PolicyExceptionSpec, definitions),
    }
    metadata = _spec(PolicyMetadata, definitions)
    definitions["spec"] = spec
    return {
        "$schema": DRAFT,
        "title": "A document of a Gatewright policy set",
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"const": API_VERSION},
            "kind": {"enum": [*specs]},
            "metadata": metadata,
            "spec": {},
        },
        "additionalProperties": False,
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}},
                "then": {
                    "properties": {"spec": {"$ref": "#/$defs/spec"} if schema is spec else schema}
                },
            }
            for kind, schema in specs.items()
        ],
        "$defs": definitions,
    }


def _spec(model: Any, definitions: JsonObject) -> JsonObject:
    """Return the schema of a model; move the schemas it refers to into `definitions`."""
    schema: JsonObject = _close(model.model_json_schema(by_alias=True))
    definitions |= schema.pop("$defs", {})
    return schema


def _parameters(policy: Policy, definitions: JsonObject) -> JsonObject:
    """Return the condition that applies a policy's parameters to objects that name the policy."""
    params = _spec(policy.params, definitions)
    return {
        "if": {"properties": {"policy": {"const": policy.name}}, "required": ["policy"]},
        "then": {"properties": {"params": params}},
    }


def _close(schema: Any) -> Any:
    """Return a schema that forbids unknown fields."""
    if isinstance(schema, list):
        return [_close(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _close(value) for key, value in schema.items()}
    if isinstance(closed.get("properties"), dict) and closed.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed
