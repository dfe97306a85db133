"""The resources that `match` selects for a policy object with CEL rules."""

import re
from collections.abc import Iterable

from config.api.match import MatchSpec
from config.api.policy import AdmissionPolicySpec
from config.faults import did_you_mean
from webhook.engine.kinds import CONNECTED, CREATE_AND_UPDATE, KINDS, Kind, Target

# Of the kinds that the table of kinds has.
SUBRESOURCES = CONNECTED | {
    "", "approval", "binding", "ephemeralcontainers", "eviction", "finalize", "log", "resize",
    "scale", "status", "token",
}  # fmt: skip
_KIND = re.compile(
    r"(?P<plural>[a-z0-9-]+)\.(?P<group>[a-z0-9.-]+)/(?P<version>v[a-z0-9]+)/(?P<kind>[A-Za-z0-9]+)"
)


def resources_of(
    faults: list[tuple[str, str]], spec: AdmissionPolicySpec, in_a_namespace: bool
) -> tuple[tuple[Target, ...], MatchSpec]:
    """Return the resources that `match` names (all known ones by default), and the match."""
    known = [kind for kind in KINDS.values() if kind.namespaced or not in_a_namespace]
    named: list[tuple[Kind, str, Iterable[str]]] = []
    clauses = []
    for index, clause in enumerate(spec.match.any):
        found = [
            _kind(faults, f"spec.match.any[{index}].kinds", word) for word in clause.kinds or ()
        ]
        kinds = [each for each in found if each is not None] if clause.kinds else known
        for subresource in clause.subresources or ("",):
            if subresource not in SUBRESOURCES and all(kind in known for kind in kinds):
                text = (
                    f'unknown subresource "{subresource}"{did_you_mean(subresource, SUBRESOURCES)}'
                )
                faults.append((f"spec.match.any[{index}].subresources", text))
            default = ("CONNECT",) if subresource in CONNECTED else CREATE_AND_UPDATE
            operations = tuple(map(str, clause.operations or default))
            named += [(kind, subresource, operations) for kind in kinds]
        clauses.append(
            clause.model_copy(
                update={"kinds": [each.kind for each in kinds]} if clause.kinds else {}
            )
        )
    if not spec.match.any:
        named = [(kind, "", CREATE_AND_UPDATE) for kind in known]
    return merged_targets(named), spec.match.model_copy(update={"any": clauses})


def merged_targets(named: Iterable[tuple[Kind, str, Iterable[str]]]) -> tuple[Target, ...]:
    """Return one target for each kind and subresource, with all operations named for it."""
    found: dict[tuple[str, str, str], tuple[Kind, set[str]]] = {}
    for kind, subresource, operations in named:
        found.setdefault((kind.group, kind.plural, subresource), (kind, set()))[1].update(
            operations
        )
    return tuple(
        Target(kind, key[2], tuple(sorted(operations))) for key, (kind, operations) in found.items()
    )


def _kind(faults: list[tuple[str, str]], path: str, word: str) -> Kind | None:
    if match := _KIND.fullmatch(word):
        return Kind(match["group"], match["kind"], match["plural"], versions=(match["version"],))
    known = {
        kind.kind: kind for kind in reversed(KINDS.values())
    }  # of two groups' kinds, the first one
    if word in known:
        return known[word]
    meant = did_you_mean(word, set(known))
    hint = meant if "mean" in meant else "; name it as PLURAL.GROUP/VERSION/KIND"
    faults.append((path, f'unknown kind "{word}"{hint}'))
    return None
