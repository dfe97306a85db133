"""Compare the verdicts of two policy sets on the same object. Pure."""

from collections import Counter
from dataclasses import replace

from gatewright.outputs import ReportedViolation, SubjectResult

UNCHANGED = "unchanged"
NEWLY_DENIED, NO_LONGER_DENIED, STILL_DENIED = "newly denied", "no longer denied", "still denied"
NEWLY_WARNED, NO_LONGER_WARNED = "newly warned", "no longer warned"
PATCHED = "patched otherwise"


def compare(old: SubjectResult, new: SubjectResult) -> SubjectResult:
    """Return a result whose violations are the differences for an object.

    Its verdict is "newly denied", "no longer denied", "still denied" (for other violations), "newly
    warned", "no longer warned", "patched otherwise" or "unchanged"; "error" if the policies of one
    side cannot decide. Only these and newly denied objects have violations of level error.
    """
    if new.verdict == "error":
        return new
    if old.verdict == "error":
        return replace(old, violations=(*old.violations, *_only_in(new, old)))
    was_denied, is_denied = (
        any(each.level == "error" for each in side.violations) for side in (old, new)
    )
    added, removed = _only_in(new, old), _only_in(old, new)
    if is_denied and not was_denied:
        return replace(new, verdict=NEWLY_DENIED, violations=tuple(added))
    quiet = tuple(replace(each, level="note") for each in added if each.level == "error")
    warned = tuple(each for each in added if each.level != "error")
    fixed = tuple(
        replace(violation, level="note", message=f"no longer: {violation.message}")
        for violation in removed
    )
    if was_denied and not is_denied:
        return replace(new, verdict=NO_LONGER_DENIED, violations=(*fixed, *warned))
    if is_denied and (quiet or any(each.level == "error" for each in removed)):
        return replace(new, verdict=STILL_DENIED, violations=(*quiet, *fixed, *warned))
    if warned or fixed:
        verdict = NEWLY_WARNED if warned else NO_LONGER_WARNED
        return replace(new, verdict=verdict, violations=(*warned, *fixed))
    if old.operations != new.operations:
        return replace(new, verdict=PATCHED, violations=())
    return replace(new, verdict=UNCHANGED, violations=(), operations=())


def _only_in(one: SubjectResult, other: SubjectResult) -> list[ReportedViolation]:
    """Return the violations of `one` that `other` lacks.

    A violation of the same policy in the same field with another limit counts as the same.
    """
    keys, others = set(map(_key, one.violations)), set(map(_key, other.violations))
    reworded = Counter(_field(each) for each in other.violations if _key(each) not in keys)
    found = list[ReportedViolation]()
    for violation in one.violations:
        if _key(violation) not in others:
            if reworded[_field(violation)] > 0:
                reworded[_field(violation)] -= 1
            else:
                found.append(violation)
    return found


def _key(each: ReportedViolation) -> tuple[str, str, str]:
    return each.policy, each.action, each.message


def _field(each: ReportedViolation) -> tuple[str, str, str]:
    return each.policy, each.action, each.path
