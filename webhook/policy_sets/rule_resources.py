"""The resources that `match` selects for a policy object with CEL rules."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

from config.api.match import MatchClause, MatchSpec
from config.api.policy import AdmissionPolicySpec
from config.faults import did_you_mean
from config.schemas import subresources as subresources_of
from webhook.engine.kinds import CONNECTED, CREATE_AND_UPDATE, KINDS, Kind, Target
from webhook.policy_sets.clause_faults import MAX_FAULTS, clause_faults
from webhook.policy_sets.kind_names import cluster_scoped, kinds_named

# The subresources that a CustomResourceDefinition can define.
OF_DEFINITION = ("scale", "status")
EVERY_OPERATION = ("CREATE", "UPDATE", "DELETE", "CONNECT")
# The operations of objects ("") and of subresources, except those that only custom kinds have.
OPERATIONS_OF = {
    "": ("CREATE", "UPDATE", "DELETE"),
    **dict.fromkeys(CONNECTED, ("CONNECT",)),
    **dict.fromkeys(("binding", "eviction", "token"), ("CREATE",)),
    **dict.fromkeys(
        ("approval", "ephemeralcontainers", "finalize", "resize", "scale", "status"), ("UPDATE",)
    ),
}


def resources_of(
    faults: list[tuple[str, str]],
    spec: AdmissionPolicySpec,
    namespace: str | None,
    *,
    stored: bool = False,
) -> tuple[tuple[Target, ...], MatchSpec]:
    """Return the resources that `match` names (all known ones by default), and the match.

    `namespace` is that of a tenant's policy; `stored` is as for `bind`.
    """
    every_kind = [kind for kind in KINDS.values() if kind.namespaced or namespace is None]
    fields = ("kinds", "operations", "subresources")
    # A clause without one of these has its default, whatever the targets of other clauses.
    in_use = [field for field in fields if any(getattr(each, field) for each in spec.match.any)]
    never = {"DELETE"} if spec.mutations else set()  # a deletion has no object to change
    named: list[tuple[Kind, str, Iterable[str]]] = []
    clauses = []
    for index, written in enumerate(spec.match.any):
        at = f"spec.match.any[{index}]"
        words, subresources = written.kinds, written.subresources or [""]
        kinds = every_kind if words is None else [*_kinds(faults, f"{at}.kinds", words)]
        names = [each.kind for each in kinds]
        possible = _targets(kinds, subresources, never)
        plain = {"kinds": words and names, "subresources": subresources}
        clause = written.model_copy(update=plain)
        if kinds and len(faults) < MAX_FAULTS:
            everything = partial(_targets, kinds, (*OPERATIONS_OF, *subresources), never)
            new_faults = _faults(at, clause, possible, kinds, namespace, everything, stored=stored)
            faults += islice(new_faults, MAX_FAULTS)
        targets = [*_selected_subresources(clause, possible)]
        named += targets
        values = {
            "kinds": names,
            "operations": sorted({each for *_, operations in targets for each in operations}),
            "subresources": subresources,
        }
        clauses.append(written.model_copy(update={field: values[field] for field in in_use}))
    if not spec.match.any:
        named = [(kind, "", CREATE_AND_UPDATE) for kind in every_kind]
    return merged_targets(named), spec.match.model_copy(update={"any": clauses})


def _selected_subresources(
    clause: MatchClause, possible: Iterable[Target]
) -> Iterator[tuple[Kind, str, set[str]]]:
    """Yield the subresources of a clause, with the operations that it names or implies."""
    for target in possible:
        default = ("CONNECT",) if target.subresource in CONNECTED else CREATE_AND_UPDATE
        if operations := {*target.operations}.intersection(clause.operations or default):
            yield target.kind, target.subresource, operations


def _targets(
    kinds: Iterable[Kind], subresources: Iterable[str], never: Collection[str]
) -> list[Target]:
    """Return the subresources that kinds have, with all operations but some."""
    targets = []
    for kind in kinds:
        for subresource in dict.fromkeys(subresources):
            possible = operations_of(kind, subresource)
            if operations := tuple(each for each in possible if each not in never):
                targets.append(Target(kind, subresource, operations))
    return targets


def _faults(
    at: str,
    clause: MatchClause,
    possible: list[Target],
    kinds: Iterable[Kind],
    namespace: str | None,
    others: Callable[[], list[Target]],
    *,
    stored: bool,
) -> Iterator[tuple[str, str]]:
    """Yield the faults of a clause of known kinds.

    `possible` are the subresources that it names, and `others` returns all of its kinds.
    """
    of_cluster = [kind for kind in kinds if namespace is not None and not kind.namespaced]
    subresources = {*OPERATIONS_OF, *(target.subresource for target in possible)}
    unknown = [each for each in clause.subresources or () if each not in subresources]
    for kind in of_cluster:
        yield f"{at}.kinds", cluster_scoped(kind)
    for subresource in unknown:
        hint = did_you_mean(subresource, OPERATIONS_OF)
        yield f"{at}.subresources", f'unknown subresource "{subresource}"{hint}'
    if not of_cluster and not unknown:
        yield from clause_faults(at, clause, possible, namespace, others, stored=stored)


def merged_targets(named: Iterable[tuple[Kind, str, Iterable[str]]]) -> tuple[Target, ...]:
    """Return one target for each kind and subresource, with all versions and operations named."""
    targets: dict[tuple[str, str, str], Target] = {}
    for kind, subresource, operations in named:
        key = kind.group, kind.plural, subresource
        before = targets.get(key, Target(kind, subresource, ()))
        if key in targets and before.kind == kind and {*before.operations}.issuperset(operations):
            continue
        merged = tuple(sorted({*before.operations, *operations}))
        if before.kind != kind:
            versions = tuple(dict.fromkeys((*kind.versions, *before.kind.versions)))
            before = replace(before, kind=replace(before.kind, versions=versions))
        targets[key] = replace(before, operations=merged)
    return tuple(targets.values())


def operations_of(kind: Kind, subresource: str) -> tuple[str, ...]:
    """Return the operations on objects of a kind ("") or a subresource; none if it has none.

    Those of a custom kind that a policy names are unknown: all operations on any subresource.
    """
    subresources = subresources_of(kind.resource.api_version, kind.kind)
    if subresources is None and (kind.group, kind.kind) in KINDS:
        subresources = OF_DEFINITION
    if subresources is None and subresource:
        return () if "*" in subresource else EVERY_OPERATION
    return OPERATIONS_OF.get(subresource, ()) if subresource in ("", *(subresources or ())) else ()


def _kinds(faults: list[tuple[str, str]], path: str, words: Iterable[str]) -> Iterator[Kind]:
    for word in words:
        try:
            yield from kinds_named(word)
        except LookupError as error:
            faults.append((path, str(error)))
