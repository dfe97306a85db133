"""matchConstraints and matchResources of Kubernetes' own admission policies."""

from collections.abc import Callable, Iterator, Sequence

from config.api.admission import MatchResources, ResourceRule
from config.api.match import LabelSelector
from webhook.engine.fields import Fields
from webhook.engine.kinds import CONNECTED, KINDS, NAMESPACES, Kind, Target
from webhook.engine.match import Labels, compile_selector
from webhook.engine.policy import RequestPredicate
from webhook.engine.request import Request
from webhook.policy_sets.rule_resources import SUBRESOURCES, merged_targets

OPERATIONS = ("CREATE", "UPDATE", "DELETE")


def condition_of(*specs: MatchResources) -> RequestPredicate:
    """Return whether all of `specs` match a request.

    NotLookedUpError where labels are not known.
    """
    conditions = list(map(_condition, specs))
    return lambda request: all(holds(request) for holds in conditions)


def _condition(spec: MatchResources) -> RequestPredicate:
    exact = spec.match_policy == "Exact"
    in_namespace, of_object = _selector(spec.namespace_selector), _selector(spec.object_selector)

    def holds(request: Request) -> bool:
        if spec.resource_rules and not any(
            _matches(each, request, exact) for each in spec.resource_rules
        ):
            return False
        if any(_matches(each, request, exact) for each in spec.exclude_resource_rules):
            return False
        attributes = request.attributes
        has_labels = (
            attributes.namespace or (attributes.resource_group, attributes.resource) == NAMESPACES
        )
        if in_namespace is not None and has_labels and not in_namespace(request.namespace_labels()):
            return False
        return of_object is None or any(map(of_object, _labels(request)))

    return holds


def _labels(request: Request) -> Iterator[Labels]:
    """Yield the labels of the new and of the old object, of a subresource its own.

    What it connects with has none.
    """
    for object in (request.object, request.old_object):
        if object is not None and "metadata" in object:
            yield Fields(object).mapping("metadata.labels")


def _selector(spec: LabelSelector | None) -> Callable[[Labels], bool] | None:
    """Compile a selector.

    None for one that is empty, as the API server writes by default, and selects everything.
    """
    return (
        compile_selector(spec) if spec and (spec.match_labels or spec.match_expressions) else None
    )


def selects_namespaces(*specs: MatchResources) -> bool:
    """Return whether labels of the namespace decide."""
    return any(_selector(each.namespace_selector) for each in specs)


def targets_of(spec: MatchResources, kinds: Sequence[Kind] = ()) -> tuple[Target, ...]:
    """Return the resources that rules name.

    `*` stands for the kinds that the table of kinds has; a rule that names a group, or a resource,
    finds `kinds` too. `deployments/*` is the resource itself and all its subresources, as in the
    API server.
    """
    return merged_targets(
        named for rule in spec.resource_rules for named in _resources(rule, kinds)
    )


def _resources(
    rule: ResourceRule, kinds: Sequence[Kind]
) -> Iterator[tuple[Kind, str, Sequence[str]]]:
    groups = [group for group in rule.api_groups if group != "*"]
    versions = tuple(each for each in rule.api_versions if each != "*") or ("v1",)
    for resource in rule.resources:
        plural, _, subresource = resource.partition("/")
        known = [
            kind
            for kind in KINDS.values()
            if _has(rule.api_groups, kind.group) and plural in ("*", kind.plural)
        ]
        custom = [
            kind
            for kind in kinds
            if _has(rule.api_groups, kind.group) and plural in ("*", kind.plural)
        ]
        known += [kind for kind in custom if kind.group in groups or plural != "*"]
        if not known and plural != "*":
            known = [Kind(group, plural.capitalize(), plural, versions) for group in groups]
        for each in SUBRESOURCES if subresource == "*" else (subresource,):
            everything = ("CONNECT",) if each in CONNECTED else OPERATIONS
            operations = everything if "*" in rule.operations else rule.operations
            yield from ((kind, each, operations) for kind in known)


def _matches(rule: ResourceRule, request: Request, exact: bool) -> bool:
    attributes = request.attributes
    is_namespaced = (
        attributes.namespace and (attributes.resource_group, attributes.resource) != NAMESPACES
    )
    named = (each.partition("/") for each in rule.resources)
    return (
        _has(rule.api_groups, attributes.resource_group)
        and (not exact or _has(rule.api_versions, attributes.version))
        and any(
            plural in ("*", attributes.resource) and sub in ("*", attributes.subresource)
            for plural, _, sub in named
        )
        and _has(rule.operations, attributes.operation)
        and (not rule.resource_names or request.name in rule.resource_names)
        and rule.scope in ("*", "Namespaced" if is_namespaced else "Cluster")
    )


def _has(words: Sequence[str], word: str) -> bool:
    return "*" in words or word in words
