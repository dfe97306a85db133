"""Exceptions of Kyverno, exclusions of Gatekeeper's Config, labels of Pod Security, mutators."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from config.documents import Document
from gatewright.migrate.celtext import literal
from gatewright.migrate.kinds import KindNames
from gatewright.migrate.results import (
    Converted,
    ConvertedPolicy,
    NotEqualError,
    Origin,
    Unconverted,
    refuse,
)
from gatewright.migrate.selection import filters

MODES = {"enforce": "Deny", "audit": "Audit", "warn": "Warn"}
PREFIX = "pod-security.kubernetes.io/"
MUTATION_GROUP = "mutations.gatekeeper.sh/"


def convert_exception(
    origin: Origin, names: KindNames, policies: Sequence[ConvertedPolicy], expires: str
) -> Converted:
    """Yield the exception from the policies that came of the rules that Kyverno's names."""
    value = origin.document.value
    try:
        spec = value["spec"]
        if spec.get("conditions") or spec.get("podSecurity") or "exceptions" not in spec:
            refuse("it has conditions, pod security controls or match conditions",
                   "a PolicyException with `kinds`, `names` and `namespaces`")  # fmt: skip
        sort, found = filters(spec.get("match"))
        if sort == "all" and len(found) > 1:
            refuse("several filters must all match")
        clauses = [_clause(each, names) for each in found]
        excepted = list(_excepted(spec["exceptions"], policies))
        if not excepted:
            refuse("no rule that it names is converted")
        written = {
            "reason": f"{origin.title} of Kyverno",
            "expires": expires,
            "exceptions": [{"policy": e} | clause for e in excepted for clause in clauses],
        }
        name = value["metadata"]["name"]
        yield ConvertedPolicy(origin, written, name, kind="PolicyException")
    except NotEqualError as error:
        yield Unconverted(origin, str(error), error.nearest)


def _excepted(
    entries: Iterable[Mapping[str, Any]], policies: Sequence[ConvertedPolicy]
) -> Iterator[str]:
    for entry in entries:
        policy = entry["policyName"].rpartition("/")[2]
        rules = [each.removeprefix("autogen-").removeprefix("cronjob-")
                 for each in entry.get("ruleNames") or ["*"]]  # fmt: skip
        for each in policies:
            name = each.origin.document.value["metadata"]["name"]
            if name == policy and any(fnmatchcase(each.origin.rule, rule) for rule in rules):
                yield each.name


def _clause(one: Mapping[str, Any], names: KindNames) -> dict[str, Any]:
    about = dict(one.get("resources") or {})
    clause: dict[str, Any] = {}
    if kinds := about.pop("kinds", None):
        clause["kinds"] = [names.by_selector(each)[0] for each in kinds]
    for key in ("names", "namespaces"):
        if about.get(key):
            clause[key] = about.pop(key)
    if {"CREATE", "UPDATE"} <= {*about.get("operations", ("CREATE", "UPDATE"))}:
        about.pop("operations", None)
    if unknown := [*about, *(each for each in one if each != "resources")]:
        refuse(f"it selects by {', '.join(unknown)}")
    return clause


def excluded_namespaces(documents: Iterable[Document]) -> list[str]:
    """Return the namespaces that Gatekeeper's Config excludes from its webhook."""
    return [
        namespace
        for document in documents
        if document.value.get("kind") == "Config"
        and str(document.value.get("apiVersion")).startswith("config.gatekeeper.sh/")
        for each in (document.value.get("spec") or {}).get("match") or ()
        if {"*", "webhook"} & set(each.get("processes") or ())
        for namespace in each.get("excludedNamespaces") or ()
    ]


def convert_labels(documents: Sequence[Document]) -> Converted:
    """Yield policies that judge as the Pod Security labels of namespaces say."""
    for mode, action in MODES.items():
        labelled = [
            document
            for document in documents
            if document.value.get("kind") == "Namespace"
            and PREFIX + mode in ((document.value.get("metadata") or {}).get("labels") or {})
        ]
        if labelled:
            params = {"level": "privileged", "namespace_labels": mode}
            written = {"policy": "pod-security", "params": params, "validationActions": [action]}
            note = f"judges each namespace by its label {PREFIX}{mode}"
            if action == "Deny":
                note += "; Pod Security enforces nothing on workloads, only on their pods"
                written["match"] = {"any": [{"kinds": ["Pod"]}]}
            name = f"pod-security-{mode}"
            yield ConvertedPolicy(Origin(labelled[0]), written, name, notes=[note])


def convert_mutator(origin: Origin, names: KindNames) -> Converted:
    """Yield the mutation of an AssignMetadata; other mutators have no equal."""
    value = origin.document.value
    try:
        yield ConvertedPolicy(origin, _mutation(value, names), value["metadata"]["name"])
    except NotEqualError as error:
        yield Unconverted(origin, str(error), error.nearest)


def _mutation(value: Mapping[str, Any], names: KindNames) -> dict[str, Any]:
    from gatewright.migrate.gatekeeper import match_of

    spec = value["spec"]
    field, _, key = spec["location"].removeprefix("metadata.").partition(".")
    key = key.strip("\"'")
    text = spec["parameters"]["assign"].get("value")
    if value["kind"] != "AssignMetadata" or not isinstance(text, str):
        refuse("it changes more than a label or an annotation",
               "`security-defaults`, `resource-defaults`, or a mutation in CEL")  # fmt: skip
    if field not in ("labels", "annotations") or not key:
        refuse(f"the location {spec['location']} is no label or annotation")
    common, conditions = match_of(spec.get("match") or {}, names)
    if not common:
        refuse("it matches every kind")
    there = f"{literal(key)} in object.metadata.?{field}.orValue({{}})"
    patch = f"Object{{metadata: Object.metadata{{{field}: {{{literal(key)}: {literal(text)}}}}}}}"
    change = {"expression": f"{there} ? Object{{}} : {patch}"}
    written = {"mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": change}]}
    if conditions:
        written["matchConditions"] = conditions
    return written | common
