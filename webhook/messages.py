"""Word a verdict: the Status of a denial, warnings, and what the audit log keeps."""

import re
from collections.abc import Iterator
from typing import Any

import orjson

from webhook.engine import MAX_VIOLATIONS, NotLookedUpError, Outcome, Request, Verdict, Violation
from webhook.engine.rules import RuleError
from webhook.engine.violation import one_line

MAX_MESSAGE = 168 << 10  # bytes of JSON that each part of an answer has room for, so that it stays below 256 KiB
MAX_CAUSES = 40 << 10
MAX_ANNOTATIONS = 32 << 10
MAX_VALUE = 10 << 10  # bytes of one annotation of a policy's own, as in ValidatingAdmissionPolicy
MAX_KEY = 63  # characters; the API server puts the webhook's name and a slash before the key, and allows no other
MAX_WARNINGS = 4096  # characters of all warnings; beyond, the API server leaves MAX_WARNING of each
MAX_WARNING = 256
WARNINGS_LEFT = MAX_WARNINGS // MAX_WARNING - 1

TRY_AGAIN = "Try again."
MORE = "- and more, which are not listed."
TOLERATED = "(Already present before this update; not denied.)"

REASONS = {400: "BadRequest", 403: "Forbidden", 500: "InternalError"}


def status(request: Request, verdict: Verdict) -> dict[str, Any]:
    """Return the Status (meta/v1) of a denial: every violation in the message, and again as a cause.

    Listed are at most MAX_VIOLATIONS, and as many as MAX_MESSAGE and MAX_CAUSES have room for.
    """
    lines: dict[str, None] = {}  # each once, in order
    causes: list[dict[str, str]] = []
    room, room_for_causes = MAX_MESSAGE, MAX_CAUSES
    violations = errors = 0
    for outcome, violation in _denials(verdict):
        path, text = ("", failure(outcome)) if violation is None else (violation.where, violation.message)
        line = f"- {outcome.policy}: {text}"
        if line in lines:
            continue
        size = len(orjson.dumps(line))
        room -= size
        if room < 0 or len(lines) >= MAX_VIOLATIONS:
            lines[MORE] = None
            break
        lines[line] = None
        violations += violation is not None
        errors += violation is None
        room_for_causes -= size + len(orjson.dumps(path))
        if room_for_causes >= 0:
            causes.append({"reason": outcome.policy, "message": text, "field": path})
    counted = [_count(violations, "violation")] * bool(violations) + [_count(errors, "policy failure")] * bool(errors)
    code = _code(verdict)
    return {
        "status": "Failure",
        "code": code,
        "reason": REASONS[code],
        "message": "\n".join(["more than " * (MORE in lines) + ", ".join(counted), *lines]),
        "details": {
            "name": request.attributes.name or _generate_name(request),
            "group": request.attributes.group,
            "kind": request.attributes.kind,
            "causes": causes,
        },
    }


def _code(verdict: Verdict) -> int:
    """Return the HTTP status of a denial: what is malformed counts before violations, and these before failures."""
    code = 500
    for outcome in verdict.outcomes:
        if outcome.malformed is not None:
            return 400
        if outcome.violations and outcome.denies:
            code = 403
    return code


def _generate_name(request: Request) -> str:
    metadata = request.value.get("metadata")
    name = metadata.get("generateName") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def _denials(verdict: Verdict) -> Iterator[tuple[Outcome, Violation | None]]:
    """Yield each violation that denies, and None for a policy that failed; a malformed field once."""
    malformed: set[str] = set()
    for outcome in verdict.outcomes:
        if not outcome.denies:
            continue
        if outcome.error is not None:
            yield outcome, None
        elif outcome.malformed is None:
            for violation in outcome.violations:
                yield outcome, violation
        elif outcome.malformed.where not in malformed:  # every policy that reads the field reports it
            malformed.add(outcome.malformed.where)
            yield outcome, outcome.malformed


def failure(outcome: Outcome) -> str:
    """Return the message of a policy that failed to judge."""
    if isinstance(outcome.error, NotLookedUpError):
        wanted = one_line(str(outcome.error)).replace("_", " ")
        return f"could not be decided, since {wanted} could not be looked up. {TRY_AGAIN}"
    if isinstance(outcome.error, RuleError):
        return one_line(str(outcome.error))
    return f"failed with an internal error ({type(outcome.error).__name__}). Tell those who run Gatewright."


def warnings(verdict: Verdict) -> list[str]:
    """Return the warnings, which deny nothing, one line each.

    They are cut as the API server would cut them, and the last line counts what was left out.
    """
    found = list(_warned(verdict))
    lines: list[str] = []
    size = 0
    for outcome, violation, why in found:
        text = failure(outcome) if violation is None else violation.message
        lines.append(f"{outcome.policy}: {text}{why}")
        size += len(lines[-1])
        if size > MAX_WARNINGS and len(lines) > WARNINGS_LEFT:
            break
    if size <= MAX_WARNINGS:
        return lines
    cut = [line if len(line) <= MAX_WARNING else f"{line[: MAX_WARNING - 1]}…" for line in lines[:WARNINGS_LEFT]]
    more = len(found) - len(cut)
    return [*cut, *[f"and {_count(more, 'more warning')}"] * bool(more)]


def _warned(verdict: Verdict) -> Iterator[tuple[Outcome, Violation | None, str]]:
    """Yield what a warning is about: the policy, the violation if it is one, and what is added to its message."""
    for outcome in verdict.outcomes:
        if outcome.error is not None and not outcome.denies:
            yield outcome, None, ""
        if outcome.violations and "Warn" in outcome.actions:
            yield from ((outcome, each, "") for each in outcome.violations)
        yield from ((outcome, each, f" {_tolerated(each)}") for each in outcome.tolerated)


def _tolerated(violation: Violation) -> str:
    """Say why a violation denies no update, and which exception covered it until it expired."""
    return f"{TOLERATED[:-1]} {violation.expired}.)" if violation.expired else TOLERATED


def audit_annotations(verdict: Verdict) -> dict[str, str]:
    """Return what the audit log keeps: violations under each action's name, failures, and which policies changed it.

    A policy's own annotations are under `POLICY.KEY`. Of all together, as many as fit into MAX_ANNOTATIONS bytes.
    """
    annotations: dict[str, list[str]] = {}
    room = MAX_ANNOTATIONS
    for key, line in _audited(verdict):
        room -= len(orjson.dumps(line))
        annotations.setdefault(key, []).append(line if room >= 0 else MORE)
        if room < 0:
            break
    return {key: "\n".join(lines) for key, lines in annotations.items()}


def _audited(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Yield each line that is kept, and under which key."""
    for outcome in verdict.outcomes:
        for key, value in outcome.annotations:
            name = re.sub("[^A-Za-z0-9_.-]", "-", f"{outcome.policy}.{key}")
            yield name[-MAX_KEY:].lstrip("-_."), value.encode()[:MAX_VALUE].decode(errors="ignore")
        for action in sorted(outcome.actions) if outcome.violations else ():
            key = action.lower()
            for each in outcome.violations:
                yield key, f"{outcome.policy}: {each.message}"
        for each in outcome.tolerated:
            yield "tolerated", f"{outcome.policy}: {each.message}"
        if outcome.malformed is not None:
            yield "malformed", f"{outcome.policy}: {outcome.malformed.message}"
        if outcome.error is not None:
            yield "error", f"{outcome.policy}: {failure(outcome)}"
        if outcome.patched:
            yield "mutated-by", outcome.policy


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
