"""The resources that `match` selects for a policy object with CEL rules."""

import re

from config.api.policy import AdmissionPolicySpec, Match
from config.faults import did_you_mean
from webhook.engine.kinds import CREATE_AND_UPDATE, KINDS, Kind, Target

_KIND = re.compile(r"(?P<plural>[a-z0-9-]+)\.(?P<group>[a-z0-9.-]+)/(?P<version>v[a-z0-9]+)/(?P<kind>[A-Za-z0-9]+)")


def resources_of(
    faults: list[tuple[str, str]], spec: AdmissionPolicySpec, in_a_namespace: bool
) -> tuple[tuple[Target, ...], Match]:
    """Return the resources that `match` names (all that are known, where a clause names none), and the match."""
    found: dict[tuple[str, str, str], tuple[Kind, set[str]]] = {}
    clauses = []
    for index, clause in enumerate(spec.match.any):
        named = [_kind(faults, f"spec.match.any[{index}].kinds", word) for word in clause.kinds or ()]
        kinds = [each for each in named if each is not None] if clause.kinds else _known(in_a_namespace)
        for kind in kinds:
            for subresource in clause.subresources or ("",):
                _, operations = found.setdefault((kind.group, kind.plural, subresource), (kind, set()))
                operations |= set(map(str, clause.operations or CREATE_AND_UPDATE))
        short = [each.kind for each in named if each is not None]
        clauses.append(clause.model_copy(update={"kinds": short} if clause.kinds else {}))
    if not spec.match.any:
        found = {(kind.group, kind.plural, ""): (kind, set(CREATE_AND_UPDATE)) for kind in _known(in_a_namespace)}
    targets = (Target(kind, subresource, tuple(sorted(ops))) for (_, _, subresource), (kind, ops) in found.items())
    return tuple(targets), spec.match.model_copy(update={"any": clauses})


def _known(in_a_namespace: bool) -> list[Kind]:
    return [kind for kind in KINDS.values() if kind.namespaced or not in_a_namespace]


def _kind(faults: list[tuple[str, str]], path: str, word: str) -> Kind | None:
    if match := _KIND.fullmatch(word):
        return Kind(match["group"], match["kind"], match["plural"], versions=(match["version"],))
    found = [kind for kind in KINDS.values() if kind.kind == word]
    if found:
        return found[0]
    names = {kind.kind for kind in KINDS.values()}
    meant = did_you_mean(word, names)
    hint = meant if "mean" in meant else "; name it as PLURAL.GROUP/VERSION/KIND"
    faults.append((path, f'unknown kind "{word}"{hint}'))
    return None
