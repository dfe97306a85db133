"""What the API server would reject whatever the policies, as policy `schema` of `check`. Pure."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from config.documents import Document
from config.object_faults import MISSING, ObjectFault, object_faults
from config.schemas import CustomTypes
from gatewright.checks.check_report import place
from gatewright.outputs import PolicyInfo, ReportedViolation, SubjectResult
from kube.resource import JsonObject
from webhook.engine.match import meets

SCHEMA = PolicyInfo(
    "schema",
    "The API server accepts the object: its fields, their types, and selectors of workloads.",
    "Fields and types are those of Kubernetes 1.36, and of CustomResourceDefinitions in the files.",
    "high",
    "schema",
)
MAX_FOUND = 80  # characters of a value in a message
WORKLOADS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"})


def with_schema(result: SubjectResult, document: Document, custom: CustomTypes) -> SubjectResult:
    """Return a result with a violation for each fault; the object is then denied."""
    denied = {each.path for each in result.violations}
    typed = {each.path for each in result.violations if "must be a" in each.message}
    faults = [
        fault
        for fault in _faults(document.value, custom)
        if fault.path not in (denied if fault.is_decodable else typed)
    ]
    if not faults:
        return result
    found = tuple(_violation(document, each) for each in faults)
    return replace(result, verdict="denied", violations=(*result.violations, *found))


def _faults(object: JsonObject, custom: CustomTypes) -> Iterator[ObjectFault]:
    faults = list(object_faults(object, custom))
    yield from faults
    if not object["metadata"].get("name") and not object["metadata"].get("generateName"):
        yield ObjectFault("metadata.name", None, MISSING, "Add it", is_decodable=True)
    if any(" must be " in f" {each.rule}" and not each.is_decodable for each in faults):
        return  # the rules below read fields of the right type
    if object["apiVersion"] == "apps/v1" and object["kind"] in WORKLOADS:
        yield from _selector(object)
    if object["kind"] == "HorizontalPodAutoscaler":
        yield from _autoscaler(object)


def _selector(object: JsonObject) -> Iterator[ObjectFault]:
    """Yield a fault if the selector of a workload does not select its own pods."""
    spec = object.get("spec") or {}
    selector, template = spec.get("selector"), spec.get("template")
    if selector is None or not template:
        return
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        rule = "must select the pods of the template"
        yield ObjectFault("spec.selector", selector, rule, "Write its labels in matchLabels")
    labels = (template.get("metadata") or {}).get("labels") or {}
    missing = {
        key: value
        for key, value in (selector.get("matchLabels") or {}).items()
        if labels.get(key) != value
    }
    if missing:
        text = ", ".join(f"{key}: {value}" for key, value in missing.items())
        rule = f"must match the labels of the template, which lack {text}"
        yield ObjectFault(
            "spec.selector.matchLabels",
            selector["matchLabels"],
            rule,
            "Write the same labels in spec.template.metadata.labels",
        )
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        values = expression.get("values") or ()
        if not meets(labels, expression.get("key"), expression.get("operator"), values):
            yield ObjectFault(
                f"spec.selector.matchExpressions[{index}]",
                expression,
                "must match the labels of the template",
                "Correct spec.template.metadata.labels",
            )


def _autoscaler(object: JsonObject) -> Iterator[ObjectFault]:
    spec = object.get("spec") or {}
    low, high = spec.get("minReplicas"), spec.get("maxReplicas")
    if isinstance(low, int) and isinstance(high, int) and low > high:
        yield ObjectFault(
            "spec.minReplicas",
            low,
            f"must not exceed spec.maxReplicas, which is {high}",
            f"Set it to {high} or less",
        )


def _violation(document: Document, fault: ObjectFault) -> ReportedViolation:
    found = _text(fault.found)
    is_plain = fault.rule.startswith(("unknown field", "missing"))
    shown = "" if is_plain else f"{found}; "
    end = "" if fault.fix.endswith("?") else "."
    return ReportedViolation(
        policy=SCHEMA.name,
        message=f"{fault.path}: {shown}{fault.rule}. {fault.fix}{end}",
        path=fault.path,
        place=place(document, fault.path),
        severity=SCHEMA.severity,
        category=SCHEMA.category,
        found="" if is_plain else found,
        rule=fault.rule,
        fix=fault.fix,
    )


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_FOUND else f"{text[:MAX_FOUND]}…"
