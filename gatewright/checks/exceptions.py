"""Write exceptions for violations; find those without effect, unused, too wide, or about to end.

A written exception is from one policy, for fields of one object. Pure.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from config.api.policy_exception import ExceptionEntry, PolicyException
from config.documents import Document
from config.faults import FaultsError
from gatewright.checks.check_report import LEVELS, place
from gatewright.console.options import NAMESPACE_NAME
from gatewright.outputs import Ending, ReportedViolation, SourceLocation, SubjectResult
from webhook.engine import BoundPolicy
from webhook.engine.exceptions import BoundException, check_exception
from webhook.engine.kinds import KINDS
from webhook.messages import count_noun

# The kinds created from a kind's pod template; by default only pods.
CREATES: Mapping[str, Sequence[str]] = {
    "Deployment": ("ReplicaSet", "Pod"),
    "CronJob": ("Job", "Pod"),
    "Rollout": ("ReplicaSet", "Pod"),
    "Pod": (),
    "PodTemplate": (),
}
MAX_PREFIX = 58  # characters of a generateName that the API server keeps
# A name that means one object, or the prefix of a generated name. Without a name, it is "*".
NAMED = re.compile(r"[^*?]{1,253}\*?")


class ExceptedObject(NamedTuple):
    """A judged object, or a planned child of one."""

    kind: str
    namespace: str
    name: str


class ExceptionWriter:
    """Collects denied objects, and writes an exception for each object and policy."""

    def __init__(
        self, policies: Iterable[BoundPolicy], documents: Iterable[Document], home: str
    ) -> None:
        """Take the policies; `home` is the namespace of exceptions from cluster policies.

        An exception can name only policies that have a document.
        """
        metadata = [each.value["metadata"] for each in documents]
        named = {"/".join(filter(None, (e.get("namespace"), e["name"]))) for e in metadata}
        self._home = home
        self._judged = {
            policy.title: {
                target.kind.kind for target in policy.match.select_targets(policy.targets)
            }
            for policy in policies
            if policy.title in named
        }
        # Fields of each object, by result and policy:
        self._found: dict[tuple[ExceptedObject, str], dict[ExceptedObject, dict[str, None]]] = {}

    def add(self, results: Iterable[SubjectResult]) -> bool:
        """Add the denied fields; return whether any is new."""
        is_new = False
        for result in results:
            subject = ExceptedObject(result.kind, result.namespace, result.name)
            for violation in result.violations:
                if violation.action != "Deny" or violation.policy not in self._judged:
                    continue
                where, path = (
                    (violation.child[:3], violation.child.path)
                    if violation.child
                    else (subject, violation.path)
                )
                is_place = not where[1] or NAMESPACE_NAME.fullmatch(where[1])
                if not (is_place and NAMED.fullmatch(where[2])):
                    continue
                objects = self._found.setdefault((subject, violation.policy), {})
                paths = objects.setdefault(ExceptedObject(*where), {})
                is_new |= path not in paths
                paths[path] = None
        return is_new

    def documents(self, reason: str, expires: datetime) -> list[Document]:
        """Return the exceptions.

        Exceptions from cluster policies are in Gatewright's namespace, those from a tenant's policy
        in the policy's namespace.
        """
        documents = dict[tuple[str, ExceptedObject], dict[str, Any]]()
        for (subject, title), objects in self._found.items():
            namespace, _, policy = title.rpartition("/")
            place = namespace or self._home
            document = documents.setdefault(
                (place, subject), _exception(place, subject, reason, expires)
            )
            document["spec"]["exceptions"] += [
                {"policy": policy, **entry}
                for object, paths in objects.items()
                for entry in _entries(object, [*paths], self._judged[title])
            ]
        return [Document.of_object(each) for each in documents.values()]


def _entries(
    object: ExceptedObject, paths: list[str], judged: Collection[str]
) -> Iterator[dict[str, Any]]:
    """Yield an entry for the object, and one per kind created from its pod template."""
    where = {"namespaces": [object.namespace]} if object.namespace else {}
    name = _generate_name(object.name[:-1]) if object.name.endswith("*") else object.name
    yield {"kinds": [object.kind], "names": [name], **where, "paths": paths}
    templates = _templates()
    template = re.compile(templates.get(object.kind) or "(?!)")
    places = [(path, template.match(path)) for path in paths]
    of_pod = [path[place.end() :] for path, place in places if place is not None]
    for kind in CREATES.get(object.kind, ("Pod",)) if of_pod else ():
        above = templates[kind].replace("\\", "")
        of_template = [above + path for path in of_pod]
        if kind in judged:
            created = _generate_name(f"{name}-") if kind == "Pod" else f"{name}-*"
            yield {"kinds": [kind], "names": [created], **where, "paths": of_template}


def _templates() -> dict[str, str]:
    """Return a pattern of each kind's pod templates; "" for a Pod. Options add kinds."""
    with_pods = ((each.kind, each.pod_specs or (each.pod_spec,)) for each in KINDS.values())
    return {
        kind: "|".join(re.escape(path.removesuffix("spec")) for path in paths if path).replace(
            r"\[\]", r"\[[^]]*\]"
        )
        for kind, paths in with_pods
        if any(paths)
    }


def _generate_name(prefix: str) -> str:
    return f"{prefix[:MAX_PREFIX]}*"


def _exception(
    namespace: str, subject: ExceptedObject, reason: str, expires: datetime
) -> dict[str, Any]:
    words = re.sub("[^a-z0-9]+", "-", "-".join(filter(None, subject)).lower()).strip("-")
    unique = hashlib.sha256("/".join(subject).encode()).hexdigest()[:8]
    end = expires.isoformat().replace("+00:00", "Z")
    return {
        "apiVersion": PolicyException.definition.api_version,
        "kind": "PolicyException",
        "metadata": {"name": f"{words[:200]}-{unique}", "namespace": namespace},
        "spec": {"reason": reason, "expires": end, "exceptions": []},
    }


EXPIRY_NOTICE = timedelta(days=30)
NARROW = ("names", "namespaces", "containers", "images", "paths")
IN_USE = "in use"
UNUSED = "it covers no violation of the judged objects; delete it"
TOO_WIDE = "it exempts every object from the policy; name objects, namespaces, images or paths"

Fault = tuple[str, str, str]  # verdict, path, message


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
    ending = [
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
        for expires, document, exception in sorted(ending, key=lambda item: item[0])
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
