"""The fields of other tools' policies that the converters read, or that decide nothing.

A field that is not listed may narrow or widen what a policy decides, so a document with one is not
converted. A nested mapping is a field with fields of its own; None is a value that its converter
checks, or that may have any keys.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gatewright.tools.migrate.results import KEEP, refuse

KnownShape = Mapping[str, Any]
SELECTOR: KnownShape = {"matchLabels": None, "matchExpressions": None}
FILTER: KnownShape = {"resources": None, "subjects": None, "roles": None, "clusterRoles": None}
MATCH: KnownShape = {"any": FILTER, "all": FILTER, **FILTER}
CONDITION: KnownShape = {"key": None, "operator": None, "value": None, "message": None}
CONDITIONS: KnownShape = {"any": CONDITION, "all": CONDITION, **CONDITION}
TESTS: KnownShape = {"pattern": None, "anyPattern": None, "deny": {"conditions": CONDITIONS}}
NAMED: KnownShape = {"name": None, "expression": None}
VALIDATION: KnownShape = {
    "expression": None, "message": None, "messageExpression": None, "reason": None,
}  # fmt: skip
EVERYTHING: KnownShape = {"apiVersion": None, "kind": None, "metadata": None, "status": None}
RULE: KnownShape = {
    "name": None,
    "match": MATCH,
    "exclude": MATCH,
    "preconditions": CONDITIONS,
    "celPreconditions": NAMED,
    "context": None,
    "generate": None,
    "verifyImages": None,
    "skipBackgroundRequests": None,
    "reportProperties": None,
    "mutate": None,
    "validate": {
        **TESTS,
        "message": None,
        "foreach": {
            **TESTS, "list": None, "context": None, "foreach": None, "elementScope": None,
            "preconditions": CONDITIONS,
        },
        "podSecurity": {"level": None, "version": None, "exclude": None},
        "cel": {
            "expressions": VALIDATION, "variables": NAMED, "paramKind": None,
            "auditAnnotations": None, "generate": None,
        },
        "manifests": None,
        "failureAction": None,
        "failureActionOverrides": None,
        "allowExistingViolations": None,
    },
}  # fmt: skip
# The fields that decide where and how the admission controller evaluates a policy.
OF_PROCESS: KnownShape = {
    "background": None, "schemaValidation": None, "webhookTimeoutSeconds": None,
    "useServerSideApply": None, "generateExisting": None, "generateExistingOnPolicyUpdate": None,
    "mutateExistingOnPolicyUpdate": None,
}  # fmt: skip
RULES_POLICY: KnownShape = {
    **EVERYTHING,
    "spec": {
        **OF_PROCESS,
        "rules": RULE,
        "context": None,
        "validationFailureAction": None,
        "validationFailureActionOverrides": None,
        "emitWarning": None,
        "failurePolicy": None,
        "admission": None,
        "applyRules": None,
    },
}
ENABLED: KnownShape = {"enabled": None}
RESOURCE_RULE: KnownShape = {
    "apiGroups": None, "apiVersions": None, "operations": None, "resources": None,
    "resourceNames": None, "scope": None,
}  # fmt: skip
CEL_POLICY: KnownShape = {
    **EVERYTHING,
    "spec": {
        "matchConstraints": {
            "resourceRules": RESOURCE_RULE,
            "excludeResourceRules": None,
            "namespaceSelector": SELECTOR,
            "objectSelector": SELECTOR,
            "matchPolicy": None,
        },
        "validations": VALIDATION,
        "variables": NAMED,
        "matchConditions": NAMED,
        "auditAnnotations": None,
        "failurePolicy": None,
        "validationActions": None,
        "reinvocationPolicy": None,
        "targetMatchConstraints": None,
        "mutations": {
            "patchType": None, "jsonPatch": {"expression": None},
            "applyConfiguration": {"expression": None},
        },
        "evaluation": {
            "mode": None, "admission": ENABLED, "background": ENABLED, "mutateExisting": ENABLED,
        },
        "autogen": {
            "podControllers": {"controllers": None}, "validatingAdmissionPolicy": ENABLED,
            "mutatingAdmissionPolicy": ENABLED,
        },
        "webhookConfiguration": {"timeoutSeconds": None},
    },
}  # fmt: skip
EXCEPTION: KnownShape = {
    **EVERYTHING,
    "spec": {
        "match": MATCH,
        "exceptions": {"policyName": None, "ruleNames": None},
        "background": None,
        "conditions": None,
        "podSecurity": None,
        "policyRefs": {"kind": None, "name": None},
        "matchConditions": NAMED,
        "expiresAt": None,
        "images": None,
        "allowedValues": None,
        "reportResult": None,
    },
}
KINDS: KnownShape = {"kinds": None, "apiGroups": None}
CONSTRAINT_MATCH: KnownShape = {
    "kinds": KINDS, "namespaces": None, "excludedNamespaces": None, "scope": None, "name": None,
    "source": None, "labelSelector": SELECTOR, "namespaceSelector": SELECTOR,
}  # fmt: skip
CONSTRAINT: KnownShape = {
    **EVERYTHING,
    "spec": {"match": CONSTRAINT_MATCH, "parameters": None, "enforcementAction": None},
}
MUTATOR: KnownShape = {
    **EVERYTHING,
    "spec": {
        "applyTo": {"groups": None, "kinds": None, "versions": None},
        "location": None,
        "match": CONSTRAINT_MATCH,
        "parameters": {
            "assign": None, "assignDomain": None, "assignPath": None, "assignTag": None,
            "operation": None, "values": {"fromList": None},
            "pathTests": {"subPath": None, "condition": None},
        },
    },
}  # fmt: skip
# The rules of a template in CEL.
SOURCE: KnownShape = {
    "validations": VALIDATION, "variables": NAMED, "matchConditions": NAMED, "failurePolicy": None,
    "generateVAP": None,
}  # fmt: skip


def refuse_unknown(value: Any, shape: KnownShape, at: str = "") -> None:
    """Refuse a value with a field that is not known."""
    for path in unknown_fields(value, shape, at):
        refuse(f"it has a field that no converter knows: {path}", KEEP)


def unknown_fields(value: Any, shape: KnownShape, at: str = "") -> Iterator[str]:
    """Yield the paths of fields that are not known; a list has them in its items."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from unknown_fields(item, shape, f"{at}[{number}]")
    elif isinstance(value, Mapping):
        for key, below in value.items():
            path = f"{at}.{key}" if at else str(key)
            if key not in shape:
                yield path
            elif shape[key] is not None:
                yield from unknown_fields(below, shape[key], path)
