"""Turns policy objects and exceptions into policies in force; reports each fault with its line."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from config.api.policy import API_VERSION
from config.documents import Document
from config.faults import FaultsError, refuse
from kube.resource import GroupKind
from webhook.engine.bound import BoundPolicy
from webhook.engine.exceptions import AppliedExceptions, BoundException, check_exception
from webhook.engine.kinds import ANY_VERSION, Kind
from webhook.engine.match import Match
from webhook.engine.policy import Policy
from webhook.policy_sets.admission_policies import native_policies
from webhook.policy_sets.bound_objects import Catalogue, bind
from webhook.policy_sets.catalogue import always_in_force
from webhook.policy_sets.kind_names import kind_faults

if TYPE_CHECKING:
    from config.schemas import CustomTypes


class PolicySetError(ValueError):
    """A policy set that cannot be used: a line for each fault, with file, line and path."""


class FailedCasesError(PolicySetError):
    """A case that policies carry does not get the answer that it expects: they are not used."""


def is_case_file(value: Any) -> bool:
    """Return whether a document beside policies is a case file, and no object."""
    is_object = isinstance(value, dict) and ("kind" in value or "apiVersion" in value)
    return isinstance(value, dict) and not is_object and isinstance(value.get("cases"), list)


def without_cases(documents: Iterable[Document]) -> list[Document]:
    """Return the documents that are not case files."""
    return [each for each in documents if not is_case_file(each.value)]


def is_policy_object(value: Any) -> bool:
    """Return whether a document is meant as an object of Gatewright's policy API."""
    return isinstance(value, dict) and value.get("apiVersion") == API_VERSION


def carries_cases(value: Any) -> bool:
    """Return whether a document is a policy object with cases of its own."""
    spec = value.get("spec") if is_policy_object(value) else None
    return isinstance(spec, dict) and bool(spec.get("cases"))


@dataclass(frozen=True, slots=True)
class PolicySet:
    """The policies of a policy set, in order, and the exceptions from them."""

    policies: tuple[BoundPolicy, ...] = ()
    exceptions: tuple[BoundException, ...] = ()
    replaced: frozenset[str] | None = field(default=None, compare=False)
    """Names of policies that are in force by themselves, which policies of the set replace; None:
    to be found."""


class InvalidObject(NamedTuple):
    """A document of a policy set that cannot be in force, and its faults: path and message."""

    document: Document
    faults: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str | None:
        """The name of the object, if it has one."""
        value = self.document.value
        metadata = value.get("metadata") if isinstance(value, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return name if isinstance(name, str) else None

    @property
    def lines(self) -> list[str]:
        """A line for each fault: file, line, object, path and message."""
        value = self.document.value
        title = f"{value['kind']} {self.name}" if self.name and "kind" in value else "document"
        return [
            ": ".join(filter(None, (self.document.where(path), title, path, text)))
            for path, text in self.faults
        ]


def read(
    documents: Iterable[Document],
    catalogue: Catalogue,
    kinds: Sequence[Kind] = (),
    *,
    is_offline: bool = False,
    custom: "CustomTypes | None" = None,
) -> PolicySet:
    """Return the policy set in the documents, as `read_valid`.

    Raises PolicySetError with all faults.
    """
    policy_set, invalid = read_valid(
        documents, catalogue, kinds, is_offline=is_offline, custom=custom
    )
    if invalid:
        raise PolicySetError("\n".join(line for each in invalid for line in each.lines))
    return policy_set


def read_valid(
    documents: Iterable[Document],
    catalogue: Catalogue,
    kinds: Sequence[Kind] = (),
    *,
    is_offline: bool = False,
    custom: "CustomTypes | None" = None,
) -> tuple[PolicySet, list[InvalidObject]]:
    """Return the policy set of the valid objects, and the invalid ones.

    `kinds` are the judged kinds that the table of kinds lacks; `is_offline` is as for
    native_policies, and `custom` as for bind. Case files beside the policies are left out: the
    processes run them. An exception from an invalid policy is not itself invalid.
    """
    documents = without_cases(documents)
    policies: dict[tuple[str | None, str], BoundPolicy] = {}
    places: dict[tuple[str | None, str], Document] = {}
    exceptions: list[tuple[BoundException, Document]] = []
    invalid: list[InvalidObject] = []
    native, documents = native_policies(documents, kinds, is_offline=is_offline)
    served = {(kind.group, kind.kind): kind for kind in kinds if ANY_VERSION not in kind.versions}
    for entry in native:
        if entry.faults:
            invalid.append(InvalidObject(entry.document, entry.faults))
        for policy in entry.policies:
            policies[None, policy.name], places[None, policy.name] = policy, entry.document
    for document in documents:
        try:
            bound = _bind(document, catalogue, served, custom)
            if isinstance(bound, BoundException):
                exceptions.append((bound, document))
            elif first := places.get((bound.namespace, bound.name)):
                _require_equal(document, first)
            else:
                policies[bound.namespace, bound.name] = bound
                places[bound.namespace, bound.name] = document
        except FaultsError as error:
            invalid.append(InvalidObject(document, error.faults))
    names = {each.name for each in invalid}
    valid_exceptions = list[BoundException]()
    for exception, document in exceptions:
        try:
            check_exception(exception, policies.values(), invalid=names)
            valid_exceptions.append(exception)
        except FaultsError as error:
            invalid.append(InvalidObject(document, error.faults))
    return PolicySet(tuple(policies.values()), tuple(valid_exceptions)), invalid


def load(documents: Iterable[Document], catalogue: Catalogue) -> tuple[BoundPolicy, ...]:
    """Return the policies that documents put in force. Raises PolicySetError with all faults."""
    return in_force(read(documents, catalogue), catalogue)


def in_force(
    policies: PolicySet,
    catalogue: Catalogue,
    home: str | None = None,
    exceptions: AppliedExceptions | None = None,
) -> tuple[BoundPolicy, ...]:
    """Return the policies with their exceptions, after those that are always in force.

    An exception from a cluster policy counts only in the namespace `home`, or in a file without a
    namespace; an exception from a tenant's policy, only in the namespace of that policy. An
    exception with invalid parameters for its policy does not count. With `exceptions` of an
    earlier set, policies that stay are the same objects.
    """
    replaced = policies.replaced
    if replaced is None:
        replaced = find_replaced(policies.policies)
    always = [_always(each) for each in always_in_force(catalogue) if each.name not in replaced]
    everything = (*always, *policies.policies)
    return (exceptions or AppliedExceptions(home)).apply(everything, policies.exceptions)


def find_replaced(policies: Iterable[BoundPolicy]) -> frozenset[str]:
    """Return the names of policies in force by themselves that cluster policies replace."""
    return frozenset(
        bound.policy.name for bound in policies if bound.policy.always and bound.namespace is None
    )


@cache
def _always(policy: Policy) -> BoundPolicy:
    """Return a policy in force by itself: the same object for each set, as others that stay."""
    actions = frozenset({policy.action})
    return BoundPolicy(policy.name, policy, policy.params(), Match(), actions)


def _require_equal(document: Document, first: Document) -> None:
    """Reject another policy of the name of an earlier one; sets may share a policy."""
    if document.value != first.value:
        text = f"another policy of this name is at {first.where('metadata.name')}"
        refuse("metadata.name", f"{text}; rename one of them, in a copy of a preset")


def _bind(
    document: Document,
    catalogue: Catalogue,
    served: Mapping[GroupKind, Kind],
    custom: "CustomTypes | None",
) -> BoundPolicy | BoundException:
    """Return the policy or exception of a document. Raises FaultsError with all faults."""
    bound = bind(document.value, catalogue, custom=custom)
    if served and isinstance(bound, BoundPolicy) and (faults := [*kind_faults(bound, served)]):
        raise FaultsError(faults)
    return bound
