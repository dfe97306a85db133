"""The match of a policy object as match constraints and match conditions."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from config.api.match import Exclude, LabelSelector, MatchClause
from controller.registration.calls import matching
from kube.resource import JsonObject
from webhook.engine.exceptions import HOME
from webhook.engine.kinds import Target

# The webhook never gets requests in these namespaces.
NEVER_SENT = ("kube-system", "kube-node-lease", HOME)
ACCOUNT = "system:serviceaccount:"


def constraints(clause: MatchClause, targets: Iterable[Target]) -> JsonObject:
    """Return match constraints for the resources that a clause selects, with its selectors."""
    matched: JsonObject = {"resourceRules": list(_rules(targets))}
    if clause.namespace_selector is not None:
        matched["namespaceSelector"] = _selector(clause.namespace_selector)
    if clause.object_selector is not None:
        matched["objectSelector"] = _selector(clause.object_selector)
    return matched


def conditions(clause: MatchClause, exclude: Exclude, namespace: str) -> list[JsonObject]:
    """Return match conditions for the parts that match constraints cannot express."""
    tests = {"namespaces-that-are-sent": f"!({matching('request.namespace', NEVER_SENT)})"}
    namespaces = [namespace] if namespace else clause.namespaces
    if namespaces:
        tests["namespaces"] = f"request.namespace != '' && ({_namespaces(namespaces)})"
    elif clause.namespace_selector is not None:
        tests["namespaces"] = "request.namespace != ''"
    if clause.names:
        name = "object == null ? oldObject.metadata.name : object.metadata.?name.orValue('')"
        tests["names"] = matching(f"({name})", clause.names)
    accounts = [f"{ACCOUNT}{each.replace('/', ':')}" for each in exclude.service_accounts]
    if users := [*exclude.users, *accounts]:
        tests["users"] = f"!({matching('request.userInfo.username', users)})"
    if exclude.groups:
        test = matching("group", exclude.groups)
        tests["groups"] = f"!request.userInfo.groups.exists(group, {test})"
    return [{"name": name, "expression": test} for name, test in tests.items()]


def _namespaces(patterns: Iterable[str]) -> str:
    return matching("request.namespace", patterns)


def _rules(targets: Iterable[Target]) -> Iterator[JsonObject]:
    by_rule = defaultdict[tuple[Any, ...], list[str]](list)
    for target in targets:
        kind = target.kind
        resource = f"{kind.plural}/{target.subresource}" if target.subresource else kind.plural
        by_rule[kind.group, kind.versions, target.operations].append(resource)
    for (group, versions, operations), resources in by_rule.items():
        yield {
            "apiGroups": [group],
            "apiVersions": list(versions),
            "operations": list(operations),
            "resources": sorted(resources),
        }


def _selector(selector: LabelSelector) -> JsonObject:
    return selector.model_dump(by_alias=True, exclude_defaults=True)
