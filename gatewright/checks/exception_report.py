"""Find exceptions without effect, unused, too wide, or about to end. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from config.api.policy_exception import ExceptionEntry
from config.documents import Document
from config.faults import FaultsError
from gatewright.checks.check_report import EXPIRY_NOTICE, LEVELS, place
from gatewright.outputs import ReportedViolation, SubjectResult
from webhook.engine import BoundPolicy
from webhook.engine.exceptions import BoundException, check_exception

NARROW = ("names", "namespaces", "containers", "images", "paths")
IN_USE = "in use"
UNUSED = "it covers no violation of the judged objects; delete it"
TOO_WIDE = "it exempts every object from the policy; name objects, namespaces, images or paths"

Fault = tuple[str, str, str]  # verdict, path, message


def exception_results(
    exceptions: Iterable[tuple[Document, BoundException]],
    covers: Mapping[str, int],
    policies: Iterable[BoundPolicy],
    home: str,
    now: datetime,
) -> list[SubjectResult]:
    """Return a result for each exception; `covers` counts violations by title."""
    policies, results = tuple(policies), list[SubjectResult]()
    for document, each in exceptions:
        number = covers[each.title]
        faults = [*_faults(each, policies, home, number, now)]
        if number:
            faults.append((IN_USE, "spec.exceptions", _use(number)))
        results.append(
            SubjectResult(
                kind="PolicyException",
                namespace=each.namespace or "",
                name=each.name,
                verdict=faults[0][0],
                place=place(document),
                violations=tuple(_reported(document, fault) for fault in faults),
            )
        )
    return results


def _faults(
    exception: BoundException,
    policies: Iterable[BoundPolicy],
    home: str,
    covers: int,
    now: datetime,
) -> Iterator[Fault]:
    """Yield the faults, the worst first."""
    spec, end = exception.spec, f"{exception.spec.expires:%Y-%m-%d}"
    if now >= spec.expires:
        yield "expired", "spec.expires", f"it expired on {end}; delete it"
        return
    try:
        check_exception(exception, policies, home)
    except FaultsError as error:
        yield from (("without effect", path, text) for path, text in error.faults)
        return
    if not covers:
        yield "unused", "spec.exceptions", UNUSED
    for index, entry in enumerate(spec.exceptions):
        if _is_wide(entry):
            yield "too wide", f"spec.exceptions[{index}]", TOO_WIDE
    if spec.expires <= now + EXPIRY_NOTICE:
        yield "ending", "spec.expires", f"it ends on {end}; what it covers is denied then"


def _use(covers: int) -> str:
    return f"covers {covers} violation{'s' * (covers != 1)}"


def _is_wide(entry: ExceptionEntry) -> bool:
    if entry.params is not None:
        return False
    return all(getattr(entry, field) in (None, ["*"]) for field in NARROW)


def _reported(document: Document, fault: Fault) -> ReportedViolation:
    verdict, path, message = fault
    action = {"ending": "Warn", IN_USE: "Audit"}.get(verdict, "Deny")
    return ReportedViolation(
        policy=verdict,
        message=message,
        level=LEVELS[action],
        action=action,
        path=path,
        place=place(document, path),
    )
