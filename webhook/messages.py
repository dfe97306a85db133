"""Word a verdict: the Status of a denial, warnings, and what the audit log keeps."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from webhook.engine import MAX_VIOLATIONS, NotLookedUpError, Outcome, Request, Verdict, Violation
from webhook.engine.rules import RuleError
from webhook.engine.violation import Words, one_line

MAX_MESSAGE = 168 << 10  # bytes of JSON that each part of an answer has room for, so that it stays below 256 KiB
MAX_CAUSES = 40 << 10
MAX_ANNOTATIONS = 32 << 10
MAX_VALUE = 10 << 10  # bytes of one annotation of a policy's own, as in ValidatingAdmissionPolicy
MAX_NAME = 253  # characters of the object's name
MAX_KEY = 63  # characters; the API server puts the webhook's name and a slash before the key, and allows no other
MAX_WARNINGS = 4096  # characters of all warnings; beyond, the API server leaves MAX_WARNING of each
MAX_WARNING = 256
WARNINGS_LEFT = MAX_WARNINGS // MAX_WARNING - 1

PUNCTUATION = 6  # bytes of JSON around a policy's name and a message
TRY_AGAIN = "Try again."
MORE = "- and more, which are not listed."
TOLERATED = "(Already present before this update; not denied.)"

REASONS = {400: "BadRequest", 403: "Forbidden", 500: "InternalError"}


def status(request: Request, verdict: Verdict) -> dict[str, Any]:
    """Return the Status (meta/v1) of a denial: every violation in the message, and again as a cause.

    Listed are at most MAX_VIOLATIONS, and as many as MAX_MESSAGE and MAX_CAUSES have room for. What is malformed sets
    the code before violations, and these before failures.
    """
    denials = [outcome for outcome in verdict.outcomes if outcome.denies]
    code = 500
    if any(outcome.malformed is not None for outcome in denials):
        code = 400
    elif any(outcome.violations for outcome in denials):
        code = 403
    lines: dict[str, None] = {}  # each once, in order
    causes: list[dict[str, str]] = []
    room, room_for_causes = MAX_MESSAGE, MAX_CAUSES
    violations = errors = 0
    for outcome, violation in _denials(denials):
        path, text, size = _failure(outcome) if violation is None else violation.words
        line = f"- {outcome.policy}: {text}"
        if line in lines:
            continue
        room -= size + len(outcome.policy) + PUNCTUATION
        if room < 0 or len(lines) >= MAX_VIOLATIONS:
            lines[MORE] = None
            break
        lines[line] = None
        violations += violation is not None
        errors += violation is None
        room_for_causes -= 2 * size  # its path is a part of its message
        if room_for_causes >= 0:
            causes.append({"reason": outcome.policy, "message": text, "field": path})
    counted = [_count(violations, "violation")] * bool(violations) + [_count(errors, "policy failure")] * bool(errors)
    return {
        "status": "Failure",
        "code": code,
        "reason": REASONS[code],
        "message": "\n".join(["more than " * (MORE in lines) + ", ".join(counted), *lines]),
        "details": {
            "name": (request.attributes.name or _generate_name(request))[:MAX_NAME],
            "group": request.attributes.group,
            "kind": request.attributes.kind,
            "causes": causes,
        },
    }


def _generate_name(request: Request) -> str:
    metadata = request.value.get("metadata")
    name = metadata.get("generateName") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def _denials(denials: Iterable[Outcome]) -> Iterator[tuple[Outcome, Violation | None]]:
    """Yield each violation that denies, and None for a policy that failed; a malformed field once."""
    malformed: set[str] = set()
    for outcome in denials:
        if outcome.error is not None:
            yield outcome, None
        elif outcome.malformed is None:
            for violation in outcome.violations:
                yield outcome, violation
        elif outcome.malformed.where not in malformed:  # every policy that reads the field reports it
            malformed.add(outcome.malformed.where)
            yield outcome, outcome.malformed


def _failure(outcome: Outcome) -> Words:
    text = failure(outcome)
    return "", text, len(orjson.dumps(text))


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
    for key, line, size in _audited(verdict):
        room -= size
        annotations.setdefault(key, []).append(line if room >= 0 else MORE)
        if room < 0:
            break
    return {key: "\n".join(lines) for key, lines in annotations.items()}


def _audited(verdict: Verdict) -> Iterator[tuple[str, str, int]]:
    """Yield each line that is kept, after its key and before its bytes of JSON."""
    for outcome in verdict.outcomes:
        policy = outcome.policy
        for key, value in outcome.annotations:
            name = re.sub("[^A-Za-z0-9_.-]", "-", f"{policy}.{key}")
            text = value.encode()[:MAX_VALUE].decode(errors="ignore")
            yield name[-MAX_KEY:].lstrip("-_."), text, len(orjson.dumps(text))
        kept = [(action.lower(), outcome.violations) for action in sorted(outcome.actions) if outcome.violations]
        kept.append(("tolerated", outcome.tolerated))
        kept.append(("malformed", () if outcome.malformed is None else (outcome.malformed,)))
        for key, violations in kept:
            for violation in violations:
                _, text, size = violation.words
                yield key, f"{policy}: {text}", size + len(policy) + PUNCTUATION
        if outcome.error is not None:
            _, text, size = _failure(outcome)
            yield "error", f"{policy}: {text}", size + len(policy) + PUNCTUATION
        if outcome.patched:
            yield "mutated-by", policy, len(policy) + PUNCTUATION


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
