"""Finds what prevents a match: clauses, words in them, and selectors that match nothing."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from pydantic.alias_generators import to_camel

from config.api.match import Exclude, LabelSelector, LabelSelectorRequirement, MatchClause
from webhook.engine.globs import Globs
from webhook.engine.kinds import Target
from webhook.engine.match import may_select
from webhook.engine.request import NAME_LABEL

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
EVERYBODY = ("system:authenticated", "system:unauthenticated")  # each user is in one of these
MAX_FAULTS = 10  # of a policy object; finding the reason of each takes time
UNREAD = (
    "the webhook does not look up what these subresources belong to; use `names` or "
    "`namespaceSelector`"
)
UNSATISFIABLE = "no request that the policy judges meets all of these conditions"


def clause_faults(
    at: str,
    clause: MatchClause,
    targets: Iterable[Target],
    namespace: str | None,
    others: Callable[[], Sequence[Target]],
    *,
    stored: bool,
) -> Iterator[tuple[str, str]]:
    """Yield a fault for a clause that can match no request for `targets`, or for words in it.

    `namespace` is that of a tenant's policy. `others` returns the targets that a message can name.
    Words that add nothing are no fault of a `stored` object, which may be older than this rule.
    """
    yield from _selector_faults(at, clause, namespace)
    selected = _select(clause, targets, namespace)
    if not selected:
        field, reason = _reason(clause, "the rest of the clause", others(), namespace)
        yield f"{at}{field}", f"matches nothing: {reason}"
    if stored or not selected:
        return
    in_use = {
        "kinds": {target.kind.kind for target in selected},
        "operations": {operation for target in selected for operation in target.operations},
        "subresources": {target.subresource for target in selected},
    }
    for field, words in in_use.items():
        for word in dict.fromkeys(getattr(clause, field) or ()):
            if word not in words:
                with_word = clause.model_copy(update={field: [word]})
                _, reason = _reason(with_word, "it", others(), namespace, but=field)
                yield f"{at}.{field}", f'"{word}" matches nothing: {reason}'


def _select(clause: MatchClause, targets: Iterable[Target], namespace: str | None) -> list[Target]:
    """Return the targets of which a clause can select requests; a tenant's, in `namespace`."""
    names = clause.namespaces
    if namespace is not None and names is not None and not Globs(names).match(namespace):
        return []
    return [target for target in targets if may_select(clause, target)]


def exclude_faults(exclude: Exclude) -> Iterator[tuple[str, str]]:
    """Yield a fault for users or groups that include everybody."""
    text = "excludes every user; the policy would match nothing"
    if any(pattern and not pattern.strip("*") for pattern in exclude.users):
        yield "spec.match.exclude.users", text
    if exclude.groups and all(map(Globs(exclude.groups).match, EVERYBODY)):
        yield "spec.match.exclude.groups", text


def _selector_faults(
    at: str, clause: MatchClause, namespace: str | None
) -> Iterator[tuple[str, str]]:
    for field in ("object_selector", "pod_selector", "namespace_selector"):
        selector = getattr(clause, field)
        values = {} if selector is None else _possible_values(selector)
        if field == "namespace_selector" and NAME_LABEL in values:
            named, own = Globs(clause.namespaces or ["*"]), Globs([namespace or "*"])
            names = values[NAME_LABEL]
            values[NAME_LABEL] = {each for each in names if named.match(each) and own.match(each)}
        if not all(values.values()):
            text = "matches nothing: no labels meet all of these conditions"
            yield f"{at}.{to_camel(field)}", text


def _possible_values(selector: LabelSelector) -> dict[str, set[str]]:
    """Return the values that a selector leaves for each label, if it names some or leaves none."""
    values = {key: {value} for key, value in selector.match_labels.items()}
    by_operator: dict[str, list[LabelSelectorRequirement]] = {}
    for expression in selector.match_expressions:
        by_operator.setdefault(expression.operator, []).append(expression)
    for requirement in by_operator.get("In", ()):
        values[requirement.key] = values.get(requirement.key, {*requirement.values}).intersection(
            requirement.values
        )
    for requirement in by_operator.get("NotIn", ()):
        if requirement.key in values:
            values[requirement.key] -= {*requirement.values}
    present = {*values, *(each.key for each in by_operator.get("Exists", ()))}
    absent = {each.key for each in by_operator.get("DoesNotExist", ())}
    return values | {key: set() for key in present & absent}


def _reason(
    clause: MatchClause,
    rest: str,
    targets: Sequence[Target],
    namespace: str | None,
    but: str | None = None,
) -> tuple[str, str]:
    """Return the path of a field without which a clause would match, and why it does not match."""
    for field in FIELDS:
        if field == but or getattr(clause, field) is None:
            continue
        selected = _select(clause.model_copy(update={field: None}), targets, namespace)
        if selected:
            return f".{to_camel(field)}", _text(field, rest, selected, namespace)
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
        case "pod_selector" if not all(target.kind.has_pods for target in found):
            return "these objects have no pods"
        case _:
            return UNREAD
    return f"with {rest}, {field} can only be {', '.join(sorted(values))}"
