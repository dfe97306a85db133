"""Word a verdict: the Status of a denial, warnings, and what the audit log keeps."""

from collections.abc import Iterator
from typing import Any

import orjson

from webhook.engine import MAX_VIOLATIONS, NotLookedUpError, Outcome, Request, Verdict, Violation
from webhook.engine.rules import RuleError

MAX_MESSAGE = 168 << 10  # bytes of JSON that each part of an answer has room for, so that it stays below 256 KiB
MAX_CAUSES = 40 << 10
MAX_ANNOTATIONS = 32 << 10
MAX_TEXT = 8 << 10  # characters of one violation
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
    listed, detailed = _Listed(MAX_MESSAGE), _Listed(MAX_CAUSES)
    lines: list[str] = []
    causes: list[dict[str, str]] = []
    failures = {failure(each) for each in verdict.outcomes if each.error is not None}
    violations = 0
    for policy, path, text in _causes(verdict):
        if listed.add(policy, text):
            lines.append(f"- {policy}: {text}")
            violations += bool(path) or text not in failures
            if not detailed.is_full and detailed.add(policy, path, text):
                causes.append({"reason": policy, "message": text, "field": path})
        elif listed.is_full:
            lines.append(MORE)
            break
    if any(outcome.malformed for outcome in verdict.outcomes):
        code = 400
    elif any(outcome.violations and outcome.denies for outcome in verdict.outcomes):
        code = 403
    else:
        code = 500
    errors = len(lines) - violations - listed.is_full
    counted = [_count(violations, "violation")] * bool(violations) + [_count(errors, "policy failure")] * bool(errors)
    more_than = "more than " if listed.is_full else ""
    return {
        "status": "Failure",
        "code": code,
        "reason": REASONS[code],
        "message": "\n".join([more_than + ", ".join(counted), *lines]),
        "details": {
            "name": request.attributes.name or _generate_name(request),
            "group": request.attributes.group,
            "kind": request.attributes.kind,
            "causes": causes,
        },
    }


class _Listed:
    """What is listed so far, each once, while there is room."""

    def __init__(self, room: int) -> None:
        """Start with a budget of `room` bytes of JSON."""
        self._room = room
        self._seen: set[tuple[str, ...]] = set()
        self.is_full = False

    def add(self, *texts: str) -> bool:
        """Take one more; return whether it is new, and there was room."""
        if texts in self._seen:
            return False
        self._room -= len(orjson.dumps(texts))
        self.is_full = self._room < 0 or len(self._seen) >= MAX_VIOLATIONS
        self._seen.add(texts)
        return not self.is_full


def _generate_name(request: Request) -> str:
    metadata = request.value.get("metadata")
    name = metadata.get("generateName") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def _causes(verdict: Verdict) -> Iterator[tuple[str, str, str]]:
    """Yield policy, path and text of whatever denies; a malformed field once, however many policies met it."""
    malformed: set[str] = set()
    for outcome in verdict.outcomes:
        if not outcome.denies:
            continue
        if outcome.malformed is not None:
            if outcome.malformed.where not in malformed:
                malformed.add(outcome.malformed.where)
                yield outcome.policy, outcome.malformed.where, one_line(outcome.malformed.message)
        elif outcome.error is not None:
            yield outcome.policy, "", failure(outcome)
        else:
            for violation in outcome.violations:
                yield outcome.policy, one_line(violation.where), one_line(violation.message)


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
        text = failure(outcome) if violation is None else one_line(violation.message)
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

    Of all of them together, as many as fit into MAX_ANNOTATIONS bytes.
    """
    annotations: dict[str, list[str]] = {}
    listed = _Listed(MAX_ANNOTATIONS)
    for key, outcome, violation in _audited(verdict):
        if listed.is_full:
            break
        if violation is None:
            line = outcome.policy if key == "mutated-by" else f"{outcome.policy}: {failure(outcome)}"
        else:
            line = f"{outcome.policy}: {one_line(violation.message)}"
        listed.add(key, line)
        annotations.setdefault(key, []).append(MORE if listed.is_full else line)
    return {key: "\n".join(lines) for key, lines in annotations.items()}


def _audited(verdict: Verdict) -> Iterator[tuple[str, Outcome, Violation | None]]:
    """Yield what is kept: under which key, of which policy, and the violation if it is one."""
    for outcome in verdict.outcomes:
        for action in sorted(outcome.actions) if outcome.violations else ():
            yield from ((action.lower(), outcome, each) for each in outcome.violations)
        yield from (("tolerated", outcome, each) for each in outcome.tolerated)
        if outcome.malformed is not None:
            yield "malformed", outcome, outcome.malformed
        if outcome.error is not None:
            yield "error", outcome, None
        if outcome.patched:
            yield "mutated-by", outcome, None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def one_line(text: str) -> str:
    """Return `text` as one line without control characters, which the API server does not take; a long one is cut."""
    text = text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)
