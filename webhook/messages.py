"""What is said of a verdict: the Status of a denial, warnings, and what the audit log keeps."""

from collections.abc import Iterator
from typing import Any

from webhook.engine import MAX_VIOLATIONS, NotLookedUpError, Outcome, Request, Verdict, Violation

WARNING_RUNES = 256  # what the API server leaves of each warning once all of them exceed WARNINGS_RUNES
WARNINGS_RUNES = 4096

TRY_AGAIN = "Try again."
MORE = "- and more, which are not listed."
TOLERATED = "(Already present before this update; not denied.)"

REASONS = {400: "BadRequest", 403: "Forbidden", 500: "InternalError"}


def status(request: Request, verdict: Verdict) -> dict[str, Any]:
    """Return the Status (meta/v1) of a denial: every finding in the message, and again as a cause."""
    causes = list(dict.fromkeys(_causes(verdict)))
    is_cut, causes = len(causes) > MAX_VIOLATIONS, causes[:MAX_VIOLATIONS]
    if any(outcome.malformed for outcome in verdict.outcomes):
        code = 400
    elif any(outcome.violations and outcome.denies for outcome in verdict.outcomes):
        code = 403
    else:
        code = 500
    violations = sum(1 for _, path, _ in causes if path)
    errors = len(causes) - violations
    counted = [_count(violations, "violation")] * bool(violations) + [_count(errors, "policy failure")] * bool(errors)
    lines = [f"- {policy}: {text}" for policy, _, text in causes] + [MORE] * is_cut
    return {
        "status": "Failure",
        "code": code,
        "reason": REASONS[code],
        "message": "\n".join([", ".join(counted), *lines]),
        "details": {
            "name": request.attributes.name or _generate_name(request),
            "group": request.attributes.group,
            "kind": request.attributes.kind,
            "causes": [{"reason": policy, "message": text, "field": path} for policy, path, text in causes],
        },
    }


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
    return f"failed with an internal error ({type(outcome.error).__name__}). Tell those who run Gatewright."


def warnings(verdict: Verdict) -> Iterator[str]:
    """Yield what whoever asked is told though it denies nothing, a line each, whatever their number."""
    for outcome in verdict.outcomes:
        if outcome.error is not None and not outcome.denies:
            yield f"{outcome.policy}: {failure(outcome)}"
        if outcome.violations and "Warn" in outcome.actions:
            yield from (f"{outcome.policy}: {one_line(violation.message)}" for violation in outcome.violations)
        yield from (f"{outcome.policy}: {one_line(each.message)} {_tolerated(each)}" for each in outcome.tolerated)


def _tolerated(violation: Violation) -> str:
    """Say why a violation denies no update, and which exception covered it until it expired."""
    return f"{TOLERATED[:-1]} {violation.expired}.)" if violation.expired else TOLERATED


def within_budget(lines: list[str]) -> Iterator[str]:
    """Cut warnings as the API server would, and say what was left out rather than lose it silently."""
    if sum(map(len, lines)) <= WARNINGS_RUNES:
        yield from lines
        return
    room = WARNINGS_RUNES // WARNING_RUNES - 1
    yield from (line if len(line) <= WARNING_RUNES else f"{line[: WARNING_RUNES - 1]}…" for line in lines[:room])
    if len(lines) > room:
        yield f"and {_count(len(lines) - room, 'more warning')}"


def audit_annotations(verdict: Verdict) -> dict[str, str]:
    """Return what the audit log is to keep: findings under each action's name, failures, and who changed something."""
    annotations: dict[str, list[str]] = {}
    for outcome in verdict.outcomes:
        for action in sorted(outcome.actions) if outcome.violations else ():
            annotations.setdefault(action.lower(), []).extend(
                f"{outcome.policy}: {one_line(v.message)}" for v in outcome.violations
            )
        if outcome.tolerated:
            lines = (f"{outcome.policy}: {one_line(each.message)}" for each in outcome.tolerated)
            annotations.setdefault("tolerated", []).extend(lines)
        if outcome.malformed is not None:
            annotations.setdefault("malformed", []).append(f"{outcome.policy}: {one_line(outcome.malformed.message)}")
        if outcome.error is not None:
            annotations.setdefault("error", []).append(f"{outcome.policy}: {failure(outcome)}")
        if outcome.patched:
            annotations.setdefault("mutated-by", []).append(outcome.policy)
    return {
        key: "\n".join([*values[:MAX_VIOLATIONS], *[MORE] * (len(values) > MAX_VIOLATIONS)])
        for key, values in annotations.items()
    }


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def one_line(text: str) -> str:
    """Return `text` as one line without control characters: the API server drops a warning that has any."""
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)
