"""Find exceptions without effect, unused, too wide, or about to end. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from config.api.policy_exception import ExceptionEntry
from config.documents import Document
from config.faults import FaultsError
from gatewright.checks.check_report import LEVELS, place
from gatewright.outputs import Ending, ReportedViolation, SourceLocation, SubjectResult
from webhook.engine import BoundPolicy
from webhook.engine.exceptions import BoundException, check_exception
from webhook.messages import count_noun
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue

EXPIRY_NOTICE = timedelta(days=30)
NARROW = ("names", "namespaces", "containers", "images", "paths")
IN_USE = "in use"
UNUSED = "it covers no violation of the judged objects; delete it"
TOO_WIDE = "it exempts every object from the policy; name objects, namespaces, images or paths"

Fault = tuple[str, str, str]  # verdict, path, message


def exceptions_of(documents: Iterable[Document]) -> list[tuple[Document, BoundException]]:
    """Return the exceptions among the documents of a policy set that could be parsed."""
    exceptions = (each for each in documents if each.value.get("kind") == "PolicyException")
    bound = ((each, bind(each.value, catalogue())) for each in exceptions)
    return [(document, each) for document, each in bound if isinstance(each, BoundException)]


def without_effect(
    exceptions: Iterable[tuple[Document, BoundException]],
    policies: Iterable[BoundPolicy],
    home: str,
    now: datetime,
) -> list[str]:
    """Return a line for each exception without effect, and why it has none."""
    policies = tuple(policies)
    return [
        f"{_name_place(document, path)}: has no effect: {path}: {text}"
        for document, exception in exceptions
        for _, path, text in _lost_effects(exception, policies, home, now)
    ]


def ending_soon(
    exceptions: Iterable[tuple[Document, BoundException]], now: datetime
) -> tuple[Ending, ...]:
    """Return the exceptions in force that expire within 30 days, the earliest first."""
    found = [
        (exception.spec.expires, document, exception)
        for document, exception in exceptions
        if now < exception.spec.expires <= now + EXPIRY_NOTICE
    ]
    return tuple(
        Ending(
            tuple(dict.fromkeys(entry.policy for entry in exception.spec.exceptions)),
            _write(expires),
            exception.spec.reason,
            place(document) if document.has_lines else SourceLocation(document.source, 0, 0),
        )
        for expires, document, exception in sorted(found, key=lambda item: item[0])
    )


def exception_results(
    exceptions: Iterable[tuple[Document, BoundException]],
    covers: Mapping[str, int],
    policies: Iterable[BoundPolicy],
    home: str,
    now: datetime,
) -> list[SubjectResult]:
    """Return a result for each exception; `covers` counts violations by title."""
    policies, results = tuple(policies), list[SubjectResult]()
    for document, exception in exceptions:
        number = covers[exception.title]
        faults = [*_lost_effects(exception, policies, home, now)] or [
            *_faults(exception, number, now)
        ]
        if number:
            faults.append((IN_USE, "spec.exceptions", f"covers {count_noun(number, 'violation')}"))
        results.append(
            SubjectResult(
                kind="PolicyException",
                namespace=exception.namespace or "",
                name=exception.name,
                verdict=faults[0][0],
                place=place(document),
                violations=tuple(_report(document, fault) for fault in faults),
            )
        )
    return results


def _lost_effects(
    exception: BoundException, policies: Iterable[BoundPolicy], home: str, now: datetime
) -> Iterator[Fault]:
    """Yield why an exception has no effect."""
    if now >= exception.spec.expires:
        yield "expired", "spec.expires", f"it expired at {_write(exception.spec.expires)}"
        return
    try:
        check_exception(exception, policies, home)
    except FaultsError as error:
        yield from (("without effect", path, text) for path, text in error.faults)


def _faults(exception: BoundException, covers: int, now: datetime) -> Iterator[Fault]:
    """Yield the faults of an exception with effect, the worst first."""
    spec = exception.spec
    if not covers:
        yield "unused", "spec.exceptions", UNUSED
    for index, entry in enumerate(spec.exceptions):
        if _is_wide(entry):
            yield "too wide", f"spec.exceptions[{index}]", TOO_WIDE
    if spec.expires <= now + EXPIRY_NOTICE:
        yield (
            "ending",
            "spec.expires",
            f"it ends on {spec.expires:%Y-%m-%d}; what it covers is denied then",
        )


def _name_place(document: Document, path: str) -> str:
    """Return where the field of an object is, and which object that is."""
    if not document.has_lines:
        return document.source
    return f"{document.where(path)}: {document.value['kind']} {document.value['metadata']['name']}"


def _write(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def _is_wide(entry: ExceptionEntry) -> bool:
    if entry.params is not None:
        return False
    return all(getattr(entry, field) in (None, ["*"]) for field in NARROW)


def _report(document: Document, fault: Fault) -> ReportedViolation:
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
