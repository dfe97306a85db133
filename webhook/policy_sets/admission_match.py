"""matchConstraints and matchResources of Kubernetes' own admission policies."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from config.api.admission import GROUP, MatchResources, ResourceRule
from config.api.match import LabelSelector
from webhook.engine.fields import Fields
from webhook.engine.kinds import ANY_VERSION, CONNECTED, NAMESPACES, Kind, Target
from webhook.engine.match import Labels, compile_selector
from webhook.engine.policy import RequestPredicate
from webhook.engine.request import Request
from webhook.policy_sets.kind_names import known_kinds
from webhook.policy_sets.rule_resources import OPERATIONS_OF, merged_targets

OPERATIONS = ("CREATE", "UPDATE", "DELETE")
# Resources that no admission policy judges.
NEVER_JUDGED = frozenset(
    (GROUP, f"{sort}admissionpolic{ending}")
    for sort in ("validating", "mutating")
    for ending in ("ies", "ybindings")
)


def condition_of(*specs: MatchResources, kinds: Sequence[Kind] = ()) -> RequestPredicate:
    """Return whether all of `specs` match a request.

    `kinds` are as for `targets_of`. Raises NotLookedUpError if labels are unknown.
    """
    everything = (*kinds, *known_kinds().values())
    served = {(kind.group, kind.plural): kind.versions for kind in everything}
    conditions = [_condition(each, served) for each in specs]
    return lambda request: all(holds(request) for holds in conditions)


def _condition(
    spec: MatchResources, served: Mapping[tuple[str, str], Sequence[str]]
) -> RequestPredicate:
    exact = spec.match_policy == "Exact"
    in_namespace, of_object = _selector(spec.namespace_selector), _selector(spec.object_selector)

    def holds(request: Request) -> bool:
        attributes = request.attributes
        resource = attributes.resource_group, attributes.resource
        versions = () if exact else served.get(resource, (ANY_VERSION,))

        def is_named(rules: Sequence[ResourceRule]) -> bool:
            return any(_matches(each, request, versions) for each in rules)

        if spec.resource_rules and not is_named(spec.resource_rules):
            return False
        if is_named(spec.exclude_resource_rules):
            return False
        has_labels = attributes.namespace or resource == NAMESPACES
        if in_namespace is not None and has_labels and not in_namespace(request.namespace_labels()):
            return False
        return of_object is None or any(map(of_object, _labels(request)))

    return holds


def _labels(request: Request) -> Iterator[Labels]:
    """Yield the labels of the new and the old object; the object of a CONNECT has none."""
    for object in (request.object, request.old_object):
        if object is not None and "metadata" in object:
            yield Fields(object).mapping("metadata.labels")


def _selector(spec: LabelSelector | None) -> Callable[[Labels], bool] | None:
    """Compile a selector; None for an empty one (the API server's default): everything."""
    selects = spec is not None and (spec.match_labels or spec.match_expressions)
    return compile_selector(spec) if spec and selects else None


def selects_namespaces(*specs: MatchResources) -> bool:
    """Return whether the labels of the namespace matter."""
    return any(_selector(each.namespace_selector) for each in specs)


def targets_of(spec: MatchResources, kinds: Sequence[Kind] = ()) -> tuple[Target, ...]:
    """Return the resources that the rules name, among Kubernetes' own kinds and `kinds`.

    `deployments/*` is the resource itself and all its subresources, as in the API server.
    """
    everything = (*known_kinds().values(), *kinds)
    judged = [kind for kind in everything if (kind.group, kind.plural) not in NEVER_JUDGED]
    return merged_targets(each for rule in spec.resource_rules for each in _resources(rule, judged))


def _resources(
    rule: ResourceRule, known: Sequence[Kind]
) -> Iterator[tuple[Kind, str, Sequence[str]]]:
    versions = tuple(each for each in rule.api_versions if each != "*") or ("v1",)
    for resource in rule.resources:
        plural, _, subresource = resource.partition("/")
        kinds = [kind for kind in known if plural in ("*", kind.plural)]
        kinds = [kind for kind in kinds if _has(rule.api_groups, kind.group)]
        if not kinds and plural != "*":
            groups = (group for group in rule.api_groups if group != "*")
            kinds = [
                Kind(group, plural, plural, versions) for group in groups
            ]  # the kind is unknown
        for part in OPERATIONS_OF if subresource == "*" else (subresource,):
            everything = ("CONNECT",) if part in CONNECTED else OPERATIONS
            operations = everything if "*" in rule.operations else rule.operations
            yield from ((kind, part, operations) for kind in kinds)


def _matches(rule: ResourceRule, request: Request, served: Sequence[str]) -> bool:
    """Return whether a rule names a request, in its version or a convertible one."""
    attributes = request.attributes
    group, resource = attributes.resource_group, attributes.resource
    if not (_has(rule.api_groups, group) and _has(rule.operations, attributes.operation)):
        return False
    is_convertible = ANY_VERSION in served or any(each in rule.api_versions for each in served)
    if not (is_convertible or _has(rule.api_versions, attributes.version)):
        return False
    named = (each.partition("/") for each in rule.resources)
    subresources = [subresource for plural, _, subresource in named if plural in ("*", resource)]
    if not _has(subresources, attributes.subresource):
        return False
    if rule.resource_names and request.name not in rule.resource_names:
        return False
    is_namespaced = attributes.namespace and (group, resource) != NAMESPACES
    return rule.scope in ("*", "Namespaced" if is_namespaced else "Cluster")


def _has(words: Sequence[str], word: str) -> bool:
    return "*" in words or word in words
