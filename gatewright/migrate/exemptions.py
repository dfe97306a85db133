"""Exceptions of Kyverno, exclusions of Gatekeeper's Config, labels of Pod Security."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from config.documents import Document
from gatewright.migrate.kinds import KindNames
from gatewright.migrate.results import Converted, ConvertedPolicy, Origin, refuse
from gatewright.migrate.selection import filters

MODES = {"enforce": "Deny", "audit": "Audit", "warn": "Warn"}
PREFIX = "pod-security.kubernetes.io/"


def convert_exception(
    origin: Origin, names: KindNames, policies: Sequence[ConvertedPolicy], expires: str
) -> Converted:
    """Yield the exception from the policies that came of the rules that Kyverno's names."""
    value = origin.document.value
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


def excluded_namespaces(config: Mapping[str, Any], process: str) -> list[str]:
    """Return the namespaces that Gatekeeper's Config excludes from a process of it."""
    return [
        namespace
        for each in (config.get("spec") or {}).get("match") or ()
        if {"*", process} & set(each.get("processes") or ())
        for namespace in each.get("excludedNamespaces") or ()
    ]


def _labels(document: Document) -> Mapping[str, str]:
    labels = Origin(document).metadata.get("labels")
    return labels if isinstance(labels, dict) else {}


def convert_labels(documents: Sequence[Document]) -> Converted:
    """Yield policies that judge as the Pod Security labels of namespaces say."""
    for mode, action in MODES.items():
        labelled = [
            document
            for document in documents
            if document.value.get("kind") == "Namespace" and PREFIX + mode in _labels(document)
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
