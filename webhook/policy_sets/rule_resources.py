"""The resources that `match` selects for a policy object with CEL rules."""

from collections.abc import Iterable
from dataclasses import replace

from config.api.match import MatchSpec
from config.api.policy import AdmissionPolicySpec
from config.faults import did_you_mean
from webhook.engine.kinds import CONNECTED, CREATE_AND_UPDATE, KINDS, Kind, Target
from webhook.policy_sets.kind_names import kinds_named, known_kinds
from webhook.policy_sets.named_kinds import cluster_scoped

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
    faults: list[tuple[str, str]], spec: AdmissionPolicySpec, in_a_namespace: bool
) -> tuple[tuple[Target, ...], MatchSpec]:
    """Return the resources that `match` names (all known ones by default), and the match."""
    known = [kind for kind in KINDS.values() if kind.namespaced or not in_a_namespace]
    anywhere = known_kinds().values()
    named: list[tuple[Kind, str, Iterable[str]]] = []
    clauses = []
    for index, clause in enumerate(spec.match.any):
        at = f"spec.match.any[{index}].kinds"
        found = [kind for word in clause.kinds or () for kind in _kinds(faults, at, word)]
        if in_a_namespace:
            faults += [(at, cluster_scoped(kind)) for kind in found if not kind.namespaced]
        kinds = found if clause.kinds else known
        has_custom = any(each not in anywhere for each in kinds)
        possible: set[str] = set()
        for subresource in clause.subresources or ("",):
            possible.update(OPERATIONS_OF.get(subresource, ()))
            # A custom kind may have others, each with a name: `*` would match nothing.
            is_custom = "*" not in subresource and has_custom
            if subresource not in OPERATIONS_OF and not is_custom:
                hint = did_you_mean(subresource, OPERATIONS_OF)
                text = f'unknown subresource "{subresource}"{hint}'
                faults.append((f"spec.match.any[{index}].subresources", text))
            default = ("CONNECT",) if subresource in CONNECTED else CREATE_AND_UPDATE
            operations = tuple(map(str, clause.operations or default))
            named += [(kind, subresource, operations) for kind in kinds]
        is_possible = not possible.isdisjoint(map(str, clause.operations or possible))
        if possible and not is_possible and not has_custom:
            known_here = ", ".join(sorted(possible))
            text = f"matches nothing: with these subresources, only {known_here} can occur"
            faults.append((f"spec.match.any[{index}].operations", text))
        plain = {"kinds": [each.kind for each in kinds]} if clause.kinds else {}
        clauses.append(clause.model_copy(update=plain))
    if not spec.match.any:
        named = [(kind, "", CREATE_AND_UPDATE) for kind in known]
    return merged_targets(named), spec.match.model_copy(update={"any": clauses})


def merged_targets(named: Iterable[tuple[Kind, str, Iterable[str]]]) -> tuple[Target, ...]:
    """Return one target for each kind and subresource, with all versions and operations named."""
    found: dict[tuple[str, str, str], Target] = {}
    for kind, subresource, operations in named:
        key = kind.group, kind.plural, subresource
        before = found.get(key, Target(kind, subresource, ()))
        merged = tuple(sorted({*before.operations, *operations}))
        if before.kind != kind:
            versions = tuple(dict.fromkeys((*kind.versions, *before.kind.versions)))
            before = replace(before, kind=replace(before.kind, versions=versions))
        found[key] = replace(before, operations=merged)
    return tuple(found.values())


def _kinds(faults: list[tuple[str, str]], path: str, word: str) -> tuple[Kind, ...]:
    try:
        return kinds_named(word)
    except LookupError as error:
        faults.append((path, str(error)))
        return ()
