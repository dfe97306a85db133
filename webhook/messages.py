"""The texts of a verdict: the Status of a denial, warnings, and audit annotations."""

import re
from collections.abc import Iterator
from typing import Any

import orjson

from webhook.engine import MAX_VIOLATIONS, Outcome, Request, Verdict, Violation
from webhook.engine.policy import RuleError
from webhook.engine.violation import one_line

# Maximum bytes of JSON in each part of an answer, which keeps the answer below 256 KiB.
MAX_MESSAGE = 168 << 10
MAX_CAUSES = 40 << 10
MAX_ANNOTATIONS = 32 << 10
MAX_VALUE = 10 << 10  # bytes of one annotation of a policy's own, as in ValidatingAdmissionPolicy
MAX_NAME = 253  # characters of the object's name
# characters; the API server puts the webhook's name and the only allowed slash before the key
MAX_KEY = 63
# Characters of all warnings; beyond that, the API server cuts each to MAX_WARNING.
MAX_WARNINGS = 4096
MAX_WARNING = 256
WARNINGS_LEFT = MAX_WARNINGS // MAX_WARNING - 1

PUNCTUATION = 6  # bytes of JSON around a policy's name and a message
TRY_AGAIN = "Try again."
MORE = "- and more, which are not listed."
TOLERATED = "(Already present before this update; not denied."
VIOLATION, FAILURE = "violation", "policy failure"

REASONS = {400: "BadRequest", 403: "Forbidden", 500: "InternalError"}


def status(request: Request, verdict: Verdict) -> dict[str, Any]:
    """Return the Status of a denial: every violation in the message, and as a cause.

    It lists at most MAX_VIOLATIONS, and as many as fit into MAX_MESSAGE and MAX_CAUSES. For the
    code, malformed fields take precedence over violations, and violations over failures.
    """
    denials = [
        (outcome, violation) for outcome in verdict.denials for violation in _find_reported(outcome)
    ]
    lines: dict[str, str] = {}  # without duplicates, in order
    causes: list[dict[str, str]] = []
    counts = {VIOLATION: 0, FAILURE: 0}
    room, room_for_causes = MAX_MESSAGE, MAX_CAUSES
    for outcome, violation in denials:
        path, text, size = violation.words
        line = f"- {outcome.policy}: {text}"
        # Every policy that reads a malformed field reports it.
        key = line if outcome.malformed is None else path
        if key in lines:
            continue
        room -= size + len(outcome.policy) + PUNCTUATION
        if room < 0 or len(lines) >= MAX_VIOLATIONS:
            lines[MORE] = MORE
            break
        lines[key] = line
        counts[VIOLATION if outcome.error is None else FAILURE] += 1
        room_for_causes -= 2 * size  # the message contains the path
        if room_for_causes >= 0:
            causes.append({"reason": outcome.policy, "message": text, "field": path})
    code = min({_code(outcome) for outcome, _ in denials})
    numbers = ", ".join([count_noun(number, noun) for noun, number in counts.items() if number])
    return {
        "status": "Failure",
        "code": code,
        "reason": REASONS[code],
        "message": "\n".join(["more than " * (MORE in lines) + numbers, *lines.values()]),
        "details": {
            "name": (request.attributes.name or _generate_name(request))[:MAX_NAME],
            "group": request.attributes.group,
            "kind": request.attributes.kind,
            "causes": causes,
        },
    }


def _code(outcome: Outcome) -> int:
    if outcome.error is not None:
        return 500
    return 403 if outcome.malformed is None else 400


def _generate_name(request: Request) -> str:
    metadata = request.value.get("metadata")
    name = metadata.get("generateName") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def _find_reported(outcome: Outcome) -> tuple[Violation, ...]:
    """Return the violations of an outcome: its own, the malformed field, or the failure."""
    if outcome.error is not None:
        return (Violation("", None, failure(outcome), ""),)
    return outcome.reported


def failure(outcome: Outcome) -> str:
    """Return the message of a policy that failed to judge."""
    if outcome.lacks:
        required = one_line(outcome.lacks).replace("_", " ")
        return f"could not be decided, since {required} could not be looked up. {TRY_AGAIN}"
    if isinstance(outcome.error, RuleError):
        return one_line(str(outcome.error))
    return (
        f"failed with an internal error ({type(outcome.error).__name__}). Tell those who run "
        "Gatewright."
    )


def warnings(verdict: Verdict) -> list[str]:
    """Return the warnings, which deny nothing, one line each.

    They are shortened as by the API server, and the last line has the number of omitted ones.
    """
    warned = list(_find_warned(verdict))
    lines: list[str] = []
    size = 0
    for policy, violation, why in warned:
        lines.append(f"{policy}: {violation.message}{why}")
        size += len(lines[-1])
        if size > MAX_WARNINGS and len(lines) > WARNINGS_LEFT:
            break
    if size <= MAX_WARNINGS:
        return lines
    cut = [
        line if len(line) <= MAX_WARNING else f"{line[: MAX_WARNING - 1]}…"
        for line in lines[:WARNINGS_LEFT]
    ]
    more = len(warned) - len(cut)
    return [*cut, *[f"and {count_noun(more, 'more warning')}"] * bool(more)]


def _find_warned(verdict: Verdict) -> Iterator[tuple[str, Violation, str]]:
    """Yield policy, violation and a suffix of the message for each warning."""
    for outcome in verdict.outcomes:
        has_failed = outcome.error is not None and not outcome.denies
        if has_failed or (outcome.error is None and "Warn" in outcome.actions):
            yield from ((outcome.policy, each, "") for each in _find_reported(outcome))
        for violation in outcome.tolerated:
            yield (
                outcome.policy,
                violation,
                f" {TOLERATED} {violation.expired}.)" if violation.expired else f" {TOLERATED})",
            )


def audit_annotations(verdict: Verdict) -> dict[str, str]:
    """Return the audit annotations: violations by action, failures, and mutating policies.

    A policy's own annotations have keys `POLICY.KEY`. At most MAX_ANNOTATIONS bytes are returned.
    """
    annotations: dict[str, list[str]] = {}
    room = MAX_ANNOTATIONS
    for key, line, size in _audit_lines(verdict):
        room -= size
        annotations.setdefault(key, []).append(line if room >= 0 else MORE)
        if room < 0:
            break
    return {key: "\n".join(lines) for key, lines in annotations.items()}


def _audit_lines(verdict: Verdict) -> Iterator[tuple[str, str, int]]:
    """Yield key, line and bytes of JSON of each line for the audit log."""
    for outcome in verdict.outcomes:
        policy = outcome.policy
        for key, value in outcome.annotations:
            name = re.sub("[^A-Za-z0-9_.-]", "-", f"{policy}.{key}")
            text = value.encode()[:MAX_VALUE].decode(errors="ignore")
            yield name[-MAX_KEY:].lstrip("-_."), text, len(orjson.dumps(text))
        if outcome.error is not None:
            keys = ["error"]
        elif outcome.malformed is not None:
            keys = ["malformed"]
        else:
            keys = sorted(outcome.actions)
        reported = _find_reported(outcome)
        kept = [(key, reported) for key in keys]
        for key, violations in (*kept, ("tolerated", outcome.tolerated)):
            for violation in violations:
                _, text, size = violation.words
                yield key.lower(), f"{policy}: {text}", size + len(policy) + PUNCTUATION
        if outcome.patched:
            yield "mutated-by", policy, len(policy) + PUNCTUATION


def count_noun(number: int, noun: str, ending: str = "s") -> str:
    """Return a number with its noun: `1 fix`; with the ending of the plural `es`, `2 fixes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{ending}"
