"""Convert Kyverno's PolicyExceptions, of both of its API groups."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from gatewright.tools.migrate.context import Context
from gatewright.tools.migrate.filters import fields_of, filters
from gatewright.tools.migrate.kinds import KindNames
from gatewright.tools.migrate.results import ConvertedPolicy, Origin, refuse

NEAREST = "a PolicyException with `kinds`, `names` and `namespaces`"
# Conditions by which exceptions select objects.
TEXT = r"(?:'[\w.-]+'|\"[\w.-]+\")"
TEST = re.compile(
    r"(?:object\.metadata|request)\.(?P<field>name|namespace)\s*"
    rf"(?:==\s*|in\s*\[\s*)(?P<texts>{TEXT}(?:\s*,\s*{TEXT})*)\s*\]?"
)


def convert_exception(origin: Origin, context: Context) -> Iterator[ConvertedPolicy]:
    """Yield exceptions from the policies that the rules named by a Kyverno exception became.

    One exception covers all cluster policies; one for a tenant's policies is in the tenant's
    namespace.
    """
    spec, policies = origin.value["spec"], [e for e in context.converted if not e.is_exception]
    if "policyRefs" in spec:
        clauses, excepted = _by_conditions(spec), _find_referenced(spec["policyRefs"], policies)
    else:
        clauses, excepted = (
            _by_match(spec, context.kinds),
            _find_excepted(spec["exceptions"], policies),
        )
    by_namespace: dict[str, list[str]] = {}
    for exemption in excepted:
        by_namespace.setdefault(exemption.namespace, []).append(exemption.name)
    if not by_namespace:
        refuse("no rule that it names is converted", "an exception from what replaces the rule")
    for namespace, excepted_names in by_namespace.items():
        written = {
            "reason": f"{origin.title} of Kyverno",
            "expires": spec.get("expiresAt") or context.expires,
            "exceptions": [{"policy": e} | clause for e in excepted_names for clause in clauses],
        }
        name = origin.metadata["name"]
        yield ConvertedPolicy(origin, written, name, namespace, is_exception=True)


def _find_excepted(
    entries: Iterable[Mapping[str, Any]], policies: Sequence[ConvertedPolicy]
) -> Iterator[ConvertedPolicy]:
    """Yield the policies converted from the rules that an exception of kyverno.io names."""
    for entry in entries:
        rules = [rule_name.removeprefix("autogen-").removeprefix("cronjob-")
                 for rule_name in entry.get("ruleNames") or ["*"]]  # fmt: skip
        for policy in policies:
            title = "/".join(filter(None, (policy.namespace, policy.origin.metadata["name"])))
            if title == entry["policyName"] and any(
                fnmatchcase(policy.origin.rule, rule) for rule in rules
            ):
                yield policy


def _find_referenced(
    references: Iterable[Mapping[str, Any]], policies: Sequence[ConvertedPolicy]
) -> Iterator[ConvertedPolicy]:
    """Yield the policies converted from those that an exception of policies.kyverno.io names."""
    referenced = {(each["kind"], each["name"]) for each in references}
    for policy in policies:
        if (policy.origin.document.value["kind"], policy.origin.metadata["name"]) in referenced:
            yield policy


def _by_match(spec: Mapping[str, Any], names: KindNames) -> list[dict[str, Any]]:
    """Return the entries for the objects that an exception of kyverno.io selects."""
    if spec.get("conditions") or spec.get("podSecurity"):
        refuse("it selects by conditions or podSecurity", NEAREST)
    sort, blocks = filters(spec.get("match"))
    if sort == "all" and len(blocks) > 1:
        refuse("match.all has several filters", NEAREST)
    return [_clause(each, names) for each in blocks]


def _by_conditions(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries for the objects that an exception of policies.kyverno.io selects."""
    if spec.get("images") or spec.get("allowedValues"):
        refuse("it lists images or values for the expressions of its policies", NEAREST)
    clause: dict[str, Any] = {}
    for condition in spec.get("matchConditions") or ():
        for test in condition["expression"].split("&&"):
            match = TEST.fullmatch(test.strip())
            field = f"{match['field']}s" if match else ""
            if match is None or field in clause:
                refuse(
                    f"it tests more than names and namespaces: {condition['expression']}", NEAREST
                )
            clause[field] = [each[1:-1] for each in re.findall(TEXT, match["texts"])]
    return [clause]


def _clause(one: Mapping[str, Any], names: KindNames) -> dict[str, Any]:
    about = fields_of(one)
    clause: dict[str, Any] = {}
    if "kinds" in about:
        kinds = [names.by_selector(each) for each in about.pop("kinds")]
        if any(subresource for _, subresource in kinds):
            refuse("it is about a subresource", NEAREST)
        clause["kinds"] = [kind for kind, _ in kinds]
    for key in ("names", "namespaces"):
        if key in about:
            clause[key] = about.pop(key)
    if {"CREATE", "UPDATE"} <= {*about.get("operations", ("CREATE", "UPDATE"))}:
        about.pop("operations", None)
    if unknown := [*about, *(each for each in one if each != "resources")]:
        refuse(f"it selects by {', '.join(unknown)}", NEAREST)
    return clause
