"""Finds the kinds that a policy names: `Node`, `v1/Node`, or in full with the plural.

Custom kinds are compared with those that an API server serves.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any

from config.api.match import MatchSpec
from config.faults import did_you_mean
from config.schemas import resources
from kube.resource import GroupKind, Resource, group_version
from webhook.engine.bound import BoundPolicy
from webhook.engine.kinds import KINDS, OWN_KINDS, Kind, plural

_SPELLED = re.compile(
    r"(?:(?P<group>[a-z0-9.-]+)/)?(?P<version>v[0-9][a-z0-9]*)/(?P<kind>[A-Z][A-Za-z0-9]*)"
)
CEL_FIELDS = ("validations", "mutations", "matchConditions")
MAX_CUSTOM = 10  # as many as rules are checked against
IN_FULL = "write it as apiVersion/kind, such as cert-manager.io/v1/Certificate"


@cache
def _built_in() -> Mapping[GroupKind, Kind]:
    """Return Kubernetes' own kinds, by group and name."""
    kinds: dict[GroupKind, Kind] = {}
    named = resources()
    for name in sorted(named, key=lambda name: name.count("/")):  # the core group first
        api_version, _, kind = name.rpartition("/")
        group, version = group_version(api_version)
        before = kinds[group, kind].versions if (group, kind) in kinds else ()
        resource, namespaced = named[name]
        kinds[group, kind] = Kind(group, kind, resource, (*before, version), namespaced=namespaced)
    return kinds


def known_kinds() -> Mapping[GroupKind, Kind]:
    """Return all kinds known without a cluster: the table's, then Kubernetes' other kinds."""
    return {**KINDS, **{key: kind for key, kind in _built_in().items() if key not in KINDS}}


def kinds_named(word: str) -> tuple[Kind, ...]:
    """Return the kinds that an entry of `kinds` can mean. Raises LookupError if it is wrong.

    If two groups have a kind of this name, the first group's kind is returned. An entry of three
    parts can be an apiVersion and a kind, or can have the plural before the group; if both are
    possible, both are returned.
    """
    kinds = known_kinds()
    by_name = {kind.kind: kind for kind in reversed([*kinds.values()])}
    if word in by_name:
        return (by_name[word],)
    spelled = _SPELLED.fullmatch(word)
    if spelled is None:
        plurals = {kind.plural: kind.kind for kind in by_name.values()}
        if word.lower() in plurals:
            raise LookupError(f'unknown kind "{word}"; did you mean "{plurals[word.lower()]}"?')
        suggestion = did_you_mean(word, set(by_name), cutoff=0.8)
        hint = suggestion if "mean" in suggestion else f"; {IN_FULL}"
        raise LookupError(f'unknown kind "{word}"{hint}')
    group, version, name = spelled["group"] or "", spelled["version"], spelled["kind"]
    if (group, name) in kinds:
        return (_find_served(word, kinds[group, name], version),)
    first, _, rest = group.partition(".")
    if (rest, name) in kinds and kinds[rest, name].plural == first:
        return (_find_served(word, kinds[rest, name], version),)
    of_rest = [kind for kind in _built_in().values() if kind.group == rest]
    # A custom group can end like one of Kubernetes, such as gateway.networking.k8s.io.
    is_misspelled = any(first == kind.plural or name == kind.kind for kind in of_rest)
    if is_misspelled or any(kind.group == group for kind in _built_in().values()):
        raise LookupError(f'unknown kind "{word}"{_hint(name, rest if of_rest else group, kinds)}')
    of_group = Kind(group, name, plural(name), (version,))
    in_full = Kind(rest, name, first, (version,))
    if of_rest or "." not in rest or first[0] != name[0].lower():
        return (of_group,)
    return (in_full,) if first == of_group.plural else (in_full, of_group)


def with_plain_kinds(match: MatchSpec, judged: Iterable[Kind]) -> MatchSpec:
    """Return the match, with each entry that has an apiVersion replaced by the name of its kind."""
    judged = tuple(judged)

    def plain(word: str) -> str:
        if "/" in word:
            with suppress(LookupError):
                for named in kinds_named(word):
                    if any((named.group, named.kind) == (each.group, each.kind) for each in judged):
                        return named.kind
        return word

    clauses = [
        clause.model_copy(update={"kinds": [*map(plain, clause.kinds)]}) if clause.kinds else clause
        for clause in match.any
    ]
    return match.model_copy(update={"any": clauses})


def _find_served(word: str, kind: Kind, version: str) -> Kind:
    """Return a kind in one version. Raises LookupError if it is not judged in this version.

    Gatewright's own kinds are judged in their storage version.
    """
    name = kind.group, kind.kind
    judged = kind if kind in OWN_KINDS else _built_in().get(name)
    if judged is not None and version not in judged.versions:
        suggestion = f"{judged.resource.api_version}/{kind.kind}"
        raise LookupError(f'unknown version in "{word}"; did you mean "{suggestion}"?')
    return replace(kind, versions=(version,))


def _hint(name: str, group: str, known: Mapping[GroupKind, Kind]) -> str:
    """Return a hint: the same kind of another group, or a similar one of this group."""
    for (_, kind), suggestion in known.items():
        if kind == name:
            return f'; did you mean "{suggestion.resource.api_version}/{name}"?'
    return did_you_mean(name, {kind for of, kind in known if of == group})


def cluster_scoped(kind: Kind | Resource) -> str:
    """Return why a tenant's policy cannot judge a kind."""
    rule = "an AdmissionPolicy judges objects in its namespace"
    return f"{kind.kind} is cluster-scoped; {rule}. Use a ClusterAdmissionPolicy"


def kind_faults(bound: BoundPolicy, served: Mapping[GroupKind, Kind]) -> Iterator[tuple[str, str]]:
    """Yield a fault for each kind of a policy of which it can judge no object.

    `served` are kinds with their scope, such as those of CustomResourceDefinitions.
    """
    for kind in dict.fromkeys([target.kind for target in bound.targets]):
        served_kind = served.get((kind.group, kind.kind))
        if served_kind is None:
            continue
        if served_kind.plural != kind.plural:
            in_full = f"{served_kind.plural}.{served_kind.resource.api_version}/{served_kind.kind}"
            fault = f"no API serves {kind.plural}.{kind.group}; write {in_full}"
        elif bound.namespace is not None and not served_kind.namespaced:
            fault = cluster_scoped(kind)
        else:
            continue
        for index, clause in enumerate(bound.match.written):
            if kind.kind in (clause.kinds or ()):
                yield f"spec.match.any[{index}].kinds", fault


def named_kinds(spec: Mapping[str, Any]) -> dict[str, tuple[Kind, ...]]:
    """Return the entries of all `kinds` in the valid spec of a policy, with what each can mean.

    Empty if a clause of its `match` names no kinds: then it judges others too.
    """
    clauses = (spec.get("match") or {}).get("any") or ()
    if not all(clause.get("kinds") for clause in clauses):
        return {}
    return {word: kinds_named(word) for clause in clauses for word in clause["kinds"]}


def custom_versions(spec: Any) -> list[str]:
    """Return the groups and versions of custom kinds that the CEL rules of a policy are about.

    `spec` is that of a policy object, and may be invalid. At most MAX_CUSTOM kinds count.
    """
    match spec:
        case {"match": {"any": list(clauses)}} if any(map(spec.get, CEL_FIELDS)):
            lists = [clause.get("kinds") for clause in clauses if isinstance(clause, dict)]
        case _:
            return []
    words = (word for kinds in lists if isinstance(kinds, list) for word in kinds)
    spelled = dict.fromkeys(word for word in words if isinstance(word, str) and "/" in word)
    versions = set[str]()
    for word in islice(spelled, MAX_CUSTOM):
        with suppress(LookupError):
            if is_custom(named := kinds_named(word)):
                versions |= {kind.resource.api_version for kind in named}
    return sorted(versions)


def is_custom(named: Iterable[Kind]) -> bool:
    """Return whether only a cluster knows the kinds that an entry can mean."""
    kinds = known_kinds()
    return all((kind.group, kind.kind) not in kinds for kind in named)


def why_unserved(
    word: str, named: Iterable[Kind], served: Iterable[Resource], *, in_a_namespace: bool
) -> str | None:
    """Return why a policy judges no object of an entry of `kinds`, given all served resources."""
    named = tuple(named)
    kinds = {(kind.group, kind.kind) for kind in named}
    wanted = {(kind.resource.api_version, kind.plural) for kind in named}
    alike = [each for each in served if (each.group, each.kind) in kinds]
    exact = [each for each in alike if (each.api_version, each.plural) in wanted]
    if not alike:
        return f"no API serves {word}; the policy takes effect when one does"
    if not exact:
        in_full = f"{alike[0].plural}.{alike[0].api_version}/{alike[0].kind}"
        return f"no API serves {word}; the kind is served as {in_full}"
    if in_a_namespace and not exact[0].namespaced:
        return cluster_scoped(exact[0])
    return None
