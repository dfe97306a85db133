"""Build the report of `check` from judged manifests and policy sets.

What the API server would reject whatever the policies is reported, too, as policy `schema`. Pure.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from config.documents import Document, DocumentError
from config.object_faults import MISSING, ObjectFault, object_faults
from config.schemas import CustomTypes
from gatewright.checks.fixed_text import PatchOperation
from gatewright.outputs import (
    InputProblem,
    PolicyInfo,
    ReportedViolation,
    SourceLocation,
    SubjectResult,
)
from kube.resource import JsonObject
from webhook.engine import Policy
from webhook.engine.match import meets
from webhook.engine.violation import UNSET, steps_of
from webhook.findings import Finding
from webhook.harness.manifests import JudgedManifest
from webhook.policy_sets.catalogue import catalogue

LEVELS = {"Deny": "error", "Error": "error", "Warn": "warning", "Audit": "note"}
# Severity and category of violations of a kind's type or planner, which have no policy.
SEVERE, KIND = ("high", "kinds")
SCHEMA = PolicyInfo(
    "schema",
    "The API server accepts the object: its fields, their types, and selectors of workloads.",
    "Fields and types are those of Kubernetes 1.36, and of CustomResourceDefinitions in the files.",
    "high",
    "schema",
)
MAX_FOUND = 80  # characters of a value in a message
WORKLOADS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"})


def place(document: Document, path: str = "") -> SourceLocation:
    """Return the file and line of a field of a document."""
    if not document.source:
        return SourceLocation()
    file, position = document.find(path)
    return SourceLocation(file, *position)


def problems_of(error: DocumentError) -> list[InputProblem]:
    """Return each line of a document error as a problem."""
    return [*map(problem, error.lines)]


def problem(text: str) -> InputProblem:
    """Return a line of a document error as a problem, with file and line beside the message."""
    file, colon, rest = text.partition(": ")
    name, _, line = file.rpartition(":")
    if not colon:
        return InputProblem(text)
    if line.isdigit():
        return InputProblem(rest, SourceLocation(name, int(line)))
    return InputProblem(rest, SourceLocation(file), whole=True)


def result(judged: JudgedManifest, policies: Mapping[str, Policy]) -> SubjectResult:
    """Return the verdict on a manifest, with file and line of each violation.

    `policies` are those in force, by title.
    """
    return SubjectResult(
        kind=judged.document.value["kind"],
        namespace=judged.namespace,
        name=judged.name,
        verdict=judged.verdict,
        place=place(judged.document),
        violations=tuple(
            _report_violation(judged.document, finding, policies) for finding in judged.findings
        ),
        operations=judged.operations,
    )


def once_per_place(results: Iterable[SubjectResult]) -> tuple[list[SubjectResult], list[str]]:
    """Drop results that repeat another result's violations in the same place.

    Overlays of one file and loops of a template give such results. Return the other results, and a
    line for each place with dropped ones.
    """
    first, repeats = dict[object, SubjectResult](), Counter[object]()
    for result in results:
        violations = tuple((violation.message, violation.place) for violation in result.violations)
        has_places = violations and result.place.file
        key = (result.kind, result.place, violations) if has_places else id(result)
        first.setdefault(key, result)
        repeats[key] += 1
    lines = [
        f"{result.place}: {repeats[key] - 1} more of the objects rendered from it have the same "
        "violations"
        for key, result in first.items()
        if repeats[key] > 1
    ]
    return [*first.values()], lines


def _report_violation(
    document: Document, finding: Finding, policies: Mapping[str, Policy]
) -> ReportedViolation:
    policy = policies.get(finding.policy)
    severity, category = (SEVERE, KIND) if policy is None else (policy.severity, policy.category)
    violation, (patch, is_safe) = finding.violation, patch_of(finding, policies)
    return ReportedViolation(
        policy=finding.policy,
        message=finding.message,
        check="" if violation is None else violation.check,
        level=LEVELS[finding.action],
        action=finding.action,
        path=finding.path,
        place=place(document, finding.path),
        severity=severity,
        category=category,
        found="" if violation is None else violation.found_text,
        rule="" if violation is None else violation.rule,
        fix="" if violation is None else violation.fix,
        patch=patch,
        patch_is_safe=is_safe,
        child=None if violation is None else violation.child,
    )


def patch_of(
    finding: Finding, policies: Mapping[str, Policy]
) -> tuple[tuple[PatchOperation, ...], bool]:
    """Return the JSON Patch (RFC 6902) that fixes a violation, and whether it is safe.

    The patch is empty if no value fixes the violation, or if the violation is in another object. A
    fix is unsafe unless its policy declares it safe.
    """
    violation = finding.violation
    if (
        violation is None
        or violation.fix_value is UNSET
        or violation.of
        or violation.holder is None
    ):
        return (), False
    policy = catalogue()[violation.check] if violation.check else policies.get(finding.policy)
    is_safe = policy is not None and policy.fix is not None and policy.fix.is_safe
    path = (*violation.holder.steps(), *steps_of(violation.field))
    pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
    if violation.fix_value is None:
        return ({"op": "remove", "path": pointer},), is_safe
    return ({"op": "add", "path": pointer, "value": violation.fix_value},), is_safe


def policy_infos(
    results: Iterable[SubjectResult], policies: Mapping[str, Policy]
) -> dict[str, PolicyInfo]:
    """Return what output formats print of each policy with a violation, and of its check.

    `policies` are those in force, by title.
    """
    names = dict.fromkeys(
        (violation.policy, violation.check) for result in results for violation in result.violations
    )
    infos = dict[str, PolicyInfo]()
    for name, check in names:
        if name == SCHEMA.name:
            infos[name] = SCHEMA
        elif name in policies and name not in infos:
            infos[name] = _info(name, policies[name])
        if check:
            infos[f"{name}/{check}"] = _info(f"{name}/{check}", catalogue()[check])
    return infos


def _info(name: str, policy: Policy) -> PolicyInfo:
    return PolicyInfo(name, policy.summary, policy.documentation, policy.severity, policy.category)


def with_schema(result: SubjectResult, document: Document, custom: CustomTypes) -> SubjectResult:
    """Return a result with a violation for each fault; the object is then denied."""
    denied = {each.path for each in result.violations}
    typed = {each.path for each in result.violations if "must be a" in each.message}
    faults = [
        fault
        for fault in _schema_faults(document.value, custom)
        if fault.path not in (denied if fault.is_decodable else typed)
    ]
    if not faults:
        return result
    violations = tuple(_schema_violation(document, each) for each in faults)
    return replace(result, verdict="denied", violations=(*result.violations, *violations))


def _schema_faults(object: JsonObject, custom: CustomTypes) -> Iterator[ObjectFault]:
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


def _schema_violation(document: Document, fault: ObjectFault) -> ReportedViolation:
    value = _short_json(fault.found)
    is_plain = fault.rule.startswith(("unknown field", "missing"))
    shown = "" if is_plain else f"{value}; "
    end = "" if fault.fix.endswith("?") else "."
    return ReportedViolation(
        policy=SCHEMA.name,
        message=f"{fault.path}: {shown}{fault.rule}. {fault.fix}{end}",
        path=fault.path,
        place=place(document, fault.path),
        severity=SCHEMA.severity,
        category=SCHEMA.category,
        found="" if is_plain else value,
        rule=fault.rule,
        fix=fault.fix,
    )


def _short_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_FOUND else f"{text[:MAX_FOUND]}…"
