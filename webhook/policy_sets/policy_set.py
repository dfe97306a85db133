"""Turns policy objects and exceptions into policies in force; each fault has a line."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from config.api.match import MatchSpec
from config.api.policy import (
    API_VERSION,
    AdmissionPolicySpec,
    PolicyDocument,
    PolicyExceptionSpec,
    PolicyMetadata,
)
from config.documents import Document
from config.faults import FaultsError, did_you_mean, parse
from webhook.engine.bound import BoundPolicy
from webhook.engine.exceptions import BoundException, check_exception, with_exceptions
from webhook.engine.kinds import Kind
from webhook.engine.look_ups import LOOK_UPS
from webhook.engine.match import Match, can_match, compile_match
from webhook.engine.policy import Params, Policy
from webhook.policy_sets.admission_policies import native_policies
from webhook.policy_sets.catalogue import always_in_force
from webhook.policy_sets.kind_names import with_plain_kinds

Catalogue = Mapping[str, Policy]
OF_ALL_NAMESPACES = frozenset(name for name, look_up in LOOK_UPS.items() if look_up.everywhere)
# Of one object as JSON, or a tenant's: compiling them takes well below a second.
MAX_POLICY_BYTES = 64 * 1024
KINDS = ("ClusterAdmissionPolicy", "AdmissionPolicy", "PolicyException")


class PolicySetError(ValueError):
    """A policy set that cannot be used: a line for each fault, with file, line and path."""


@dataclass(frozen=True, slots=True)
class PolicySet:
    """What somebody wrote: policies, in order, and exceptions from them."""

    policies: tuple[BoundPolicy, ...] = ()
    exceptions: tuple[BoundException, ...] = ()

    def under(self, other: "PolicySet") -> "PolicySet":
        """Return both; a policy of the other replaces one of the same name here."""
        names = {(policy.namespace, policy.name) for policy in other.policies}
        kept = tuple(
            policy for policy in self.policies if (policy.namespace, policy.name) not in names
        )
        return PolicySet(kept + other.policies, self.exceptions + other.exceptions)


def read(
    documents: Iterable[Document], catalogue: Catalogue, kinds: Sequence[Kind] = ()
) -> PolicySet:
    """Return what the documents say. PolicySetError names all faults of all documents.

    `kinds` are those of what is judged that the table of kinds does not have.
    """
    policies: dict[tuple[str | None, str], BoundPolicy] = {}
    exceptions: list[tuple[BoundException, Document]] = []
    faults: list[str] = []
    native, documents = native_policies(documents, kinds)
    for each in native:
        faults += _lines(each.document, each.faults)
        policies.update({(None, policy.name): policy for policy in each.policies})
    for document in documents:
        try:
            bound = bind(document.value, catalogue)
            if isinstance(bound, BoundException):
                exceptions.append((bound, document))
            elif (bound.namespace, bound.name) in policies:
                raise FaultsError(
                    [("metadata.name", "duplicate name in this policy set; names are unique")]
                )
            else:
                policies[bound.namespace, bound.name] = bound
        except FaultsError as error:
            faults += _lines(document, error.faults)
    for exception, document in exceptions:
        try:
            check_exception(exception, policies.values())
        except FaultsError as error:
            faults += _lines(document, error.faults)
    if faults:
        raise PolicySetError("\n".join(faults))
    return PolicySet(tuple(policies.values()), tuple(exception for exception, _ in exceptions))


def load(documents: Iterable[Document], catalogue: Catalogue) -> tuple[BoundPolicy, ...]:
    """Return the policies that documents put in force. PolicySetError names all faults."""
    return in_force(read(documents, catalogue), catalogue)


def in_force(
    policies: PolicySet, catalogue: Catalogue, home: str | None = None
) -> tuple[BoundPolicy, ...]:
    """Return the policies with their exceptions, after those that are always in force.

    An exception from a cluster policy counts only in the namespace `home`, or in a file without a
    namespace; a tenant's policy is excepted from in its own namespace. What an exception says that
    does not fit its policy does not count.
    """
    named = {policy.policy.name for policy in policies.policies if policy.namespace is None}
    always = [
        BoundPolicy(
            policy.name,
            policy,
            policy.params(),
            Match(),
            frozenset({policy.action}),
            severity=policy.severity,
            category=policy.category,
        )
        for policy in always_in_force(catalogue)
        if policy.name not in named
    ]
    return with_exceptions((*always, *policies.policies), policies.exceptions, home)


def bind(value: Any, catalogue: Catalogue) -> BoundPolicy | BoundException:
    """Return one object of a policy set as it comes into force. FaultsError names all faults."""
    if not isinstance(value, dict):
        raise FaultsError([("", "not an object")])
    if value.get("apiVersion") != API_VERSION or value.get("kind") not in KINDS:
        found = (
            f"{value['apiVersion']} {value['kind']}"
            if {"apiVersion", "kind"} <= value.keys()
            else "this"
        )
        known = f"{', '.join(KINDS[:-1])} and {KINDS[-1]}"
        raise FaultsError(
            [("", f"a policy set contains {API_VERSION} {known} objects, not {found}")]
        )
    if (size := size_of(value)) > MAX_POLICY_BYTES:
        raise FaultsError([("", f"has {size:,} bytes; at most {MAX_POLICY_BYTES:,} are allowed")])
    document = parse(PolicyDocument, value)
    if document.kind == "PolicyException":
        excepted = parse(PolicyExceptionSpec, document.spec, at="spec")
        return BoundException(document.metadata.namespace, excepted, document.metadata.name)
    spec = parse(AdmissionPolicySpec, document.spec, at="spec")
    in_a_namespace = document.kind == "AdmissionPolicy"
    _check_sort(spec)
    rules = None
    if spec.policy is None or spec.match_conditions:
        # With CEL: 40 modules, which most policy sets do without.
        from webhook.policy_sets.rules import compile_rules

        rules = compile_rules(spec, in_a_namespace)
    if rules is not None and rules.policy is not None:
        policy, params, match = rules.policy, rules.params, rules.match
    else:
        policy, match = _policy(spec, catalogue, in_a_namespace=in_a_namespace)
        params = parse(policy.params, spec.params, noun="parameter", at="spec.params")
    if in_a_namespace:
        _check_tenant(policy, params, document.metadata)
    _check_match(match, policy, document.metadata.namespace if in_a_namespace else None)
    asks_who = rules is not None and rules.asks_who
    return BoundPolicy(
        document.metadata.name,
        policy,
        params,
        compile_match(match),
        frozenset(map(str, spec.validation_actions)),
        fails_closed=spec.failure_policy == "Fail",
        namespace=document.metadata.namespace if in_a_namespace else None,
        tolerates_existing=spec.allow_existing_violations and not asks_who,
        severity=spec.severity or policy.severity,
        category=spec.category or policy.category,
        condition=None if rules is None else rules.condition,
        condition_needs=frozenset() if rules is None else rules.needs,
        size=size,
        evaluates=rules is not None,
    )


def size_of(value: Mapping[str, Any]) -> int:
    """Return the bytes of an object of a policy set as JSON."""
    return len(orjson.dumps(value, default=str))


def _check_sort(spec: AdmissionPolicySpec) -> None:
    """Refuse an object without a built-in policy and without rules, or with more than one."""
    said = [name for name in ("policy", "validations", "mutations") if getattr(spec, name)]
    if not said:
        raise FaultsError(
            [
                (
                    "spec.policy",
                    "missing; name a built-in policy, or give validations or mutations in CEL",
                )
            ]
        )
    if len(said) > 1:
        raise FaultsError([(f"spec.{said[1]}", f"not beside `{said[0]}`; use one object for each")])
    if spec.variables and spec.policy:
        raise FaultsError(
            [("spec.variables", "not beside `policy`; a built-in policy reads no variables")]
        )


def document_of(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored object as somebody would write it: without what is the API server's."""
    metadata = stored.get("metadata") or {}
    named = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
    if "name" not in named and "generateName" in metadata:
        named["name"] = f"{metadata['generateName']}generated"
    kept = {key: stored[key] for key in ("apiVersion", "kind", "spec") if key in stored}
    return {**kept, "metadata": named}


def _policy(
    spec: AdmissionPolicySpec, catalogue: Catalogue, *, in_a_namespace: bool
) -> tuple[Policy, MatchSpec]:
    """Return the policy that is named, and the match with plain names of kinds.

    A tenant's looks at nothing without a namespace.
    """
    assert spec.policy is not None
    policy = catalogue.get(spec.policy)
    if policy is None:
        raise FaultsError(
            [("spec.policy", f'no policy "{spec.policy}"{did_you_mean(spec.policy, catalogue)}')]
        )
    targets = [target for target in policy.targets if target.kind.namespaced or not in_a_namespace]
    match = with_plain_kinds(spec.match, [target.kind for target in targets])
    judged = {
        "kinds": {target.kind.kind for target in targets},
        "operations": {operation for target in targets for operation in target.operations},
        "subresources": {target.subresource for target in targets},
    }
    faults = [
        (
            f"spec.match.any[{index}].{field}",
            f'{policy.name} does not look at "{word}"{did_you_mean(word, _quoted(known))}',
        )
        for index, clause in enumerate(match.any)
        for field, known in judged.items()
        for word in getattr(clause, field) or ()
        if word not in known
    ]
    if faults:
        raise FaultsError(faults)
    return policy, match


def _check_match(match: MatchSpec, policy: Policy, namespace: str | None) -> None:
    """Refuse a clause that matches nothing: the policy would silently never apply."""
    targets = [target for target in policy.targets if target.kind.namespaced or namespace is None]
    text = (
        "matches nothing: the policy judges no request with these kinds, subresources, operations "
        "and namespaces"
    )
    nowhere = [
        index for index, clause in enumerate(match.any) if not can_match(clause, targets, namespace)
    ]
    if nowhere:
        raise FaultsError((f"spec.match.any[{index}]", text) for index in nowhere)


def _quoted(known: set[str]) -> set[str]:
    return {each or '""' for each in known}


def _check_tenant(policy: Policy, params: Params, metadata: PolicyMetadata) -> None:
    """Refuse a tenant's policy in another namespace, that mutates, or that reads others'."""
    if metadata.namespace is None:
        raise FaultsError(
            [("metadata.namespace", "missing; an AdmissionPolicy is in force in its own namespace")]
        )
    if policy.mutate is not None:
        raise FaultsError(
            [("spec.policy", f"{policy.name} changes objects; an AdmissionPolicy can only deny")]
        )
    if policy.needed(params) & OF_ALL_NAMESPACES:
        text = (
            f"{policy.name} looks at objects of all namespaces; an AdmissionPolicy knows those of "
            "its own"
        )
        raise FaultsError([("spec.policy", text)])


def _lines(document: Document, faults: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a line for each fault: file, line, object, path, what is wrong."""
    value = document.value
    metadata = value.get("metadata") if isinstance(value, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    title = f"{value['kind']} {name}" if name and "kind" in value else "document"
    for path, text in faults:
        yield ": ".join(filter(None, (document.where(path), title, path, text)))
