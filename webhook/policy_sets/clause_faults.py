"""Finds clauses of `match`, and words in them, that match nothing."""

from collections.abc import Iterable, Iterator, Sequence

from pydantic.alias_generators import to_camel

from config.api.match import MatchClause
from webhook.engine.kinds import Target
from webhook.engine.match import can_match

# The fields that can prevent a match; what narrows most is reported first.
FIELDS = (
    "object_selector",
    "pod_selector",
    "namespaces",
    "namespace_selector",
    "operations",
    "subresources",
    "kinds",
)
UNREAD = (
    "the webhook does not look up what these subresources belong to; use `names` or "
    "`namespaceSelector`"
)
UNSATISFIABLE = "no request that the policy judges meets all of these conditions"


def clause_faults(
    at: str, clause: MatchClause, targets: Sequence[Target], namespace: str | None
) -> Iterator[tuple[str, str]]:
    """Yield a fault for a clause that can match no request for `targets`, or for words in it.

    `namespace` is that of a tenant's policy.
    """
    if not can_match(clause, targets, namespace):
        field, reason = _reason(clause, "the rest of the clause", targets, namespace)
        yield f"{at}{field}", f"matches nothing: {reason}"
        return
    for field in ("kinds", "operations", "subresources"):
        for word in dict.fromkeys(getattr(clause, field) or ()):
            with_word = clause.model_copy(update={field: [word]})
            if not can_match(with_word, targets, namespace):
                _, reason = _reason(with_word, "it", targets, namespace, but=field)
                yield f"{at}.{field}", f'"{word}" matches nothing: {reason}'


def _reason(
    clause: MatchClause,
    rest: str,
    targets: Sequence[Target],
    namespace: str | None,
    but: str | None = None,
) -> tuple[str, str]:
    """Return the path of a field without which a clause would match, and why it does not match."""
    for field in FIELDS:
        without = clause.model_copy(update={field: None})
        found = [each for each in targets if can_match(without, [each], namespace)]
        if field != but and found:
            return f".{to_camel(field)}", _text(field, rest, found, namespace)
    return "", UNSATISFIABLE


def _text(field: str, rest: str, found: Iterable[Target], namespace: str | None) -> str:
    """Return which values of a field can occur with the rest of a clause, or why no one can."""
    match field:
        case "operations":
            values = {operation for target in found for operation in target.operations}
        case "subresources":
            values = {target.subresource or '""' for target in found}
        case "kinds":
            values = {target.kind.kind for target in found}
        case "namespaces" if namespace is not None:
            return f"the policy is in force in the namespace {namespace} only"
        case "namespaces" | "namespace_selector":
            return "cluster-scoped objects have no namespace"
        case "pod_selector" if any(target.kind.pod_metadata is None for target in found):
            return "these objects have no pods"
        case _:
            return UNREAD
    return f"with {rest}, {field} can only be {', '.join(sorted(values))}"
