"""Read the filters of Kyverno's match and exclude; write their tests in CEL."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gatewright.tools.cel_text import any_glob, every, glob, literal, negate, some
from gatewright.tools.migrate.results import refuse, texts


def _name(metadata: str) -> str:
    return f"{metadata}.?name.orValue({metadata}.?generateName.orValue(''))"


def has_wildcards(selector: Any) -> bool:
    """Return whether a field is a label selector with wildcards, which no clause has."""
    labels = selector.get("matchLabels") or {} if isinstance(selector, dict) else {}
    return any("*" in each or "?" in each for pair in labels.items() for each in pair)


def _labels(metadata: str, selector: Mapping[str, Any]) -> str:
    """Return the test that a label selector matches."""
    labels, tests = f"{metadata}.?labels.orValue({{}})", list[str]()
    for key, value in (selector.get("matchLabels") or {}).items():
        if "*" in key or "?" in key:
            tests.append(_entry(labels, key, value))
        else:
            there = f"{literal(key)} in {labels}"
            tests.append(every([there, glob(f"{labels}[{literal(key)}]", value)]))
    for expression in selector.get("matchExpressions") or ():
        key, values = expression["key"], literal(expression.get("values") or [])
        there = f"{literal(key)} in {labels}"
        is_in = every([there, f"{labels}[{literal(key)}] in {values}"])
        tests.append({"In": is_in, "NotIn": negate(is_in), "Exists": there,
                      "DoesNotExist": negate(there)}[expression["operator"]])  # fmt: skip
    return every(tests)


def _annotations(metadata: str, selected: Mapping[str, Any]) -> str:
    annotations = f"{metadata}.?annotations.orValue({{}})"
    return every(_entry(annotations, key, str(value)) for key, value in selected.items())


def _entry(entries: str, key: str, value: str) -> str:
    """Return the test that a map has an entry whose key and value match two patterns."""
    return f"{entries}.exists(key, {every([glob('key', key), glob(f'{entries}[key]', value)])})"


def users_of(one: Mapping[str, Any]) -> Iterator[str]:
    """Yield the test that the user is one of the subjects of a filter, if it has any."""
    if one.get("roles") or one.get("clusterRoles"):
        refuse("it selects users by role; an admission request contains no roles",
               "`match.exclude` with users, groups or service accounts")  # fmt: skip
    tests = []
    for subject in one.get("subjects") or ():
        name = subject.get("name", "")
        if subject["kind"] == "ServiceAccount":
            name = f"system:serviceaccount:{subject.get('namespace', '')}:{name}"
        if subject["kind"] in ("ServiceAccount", "User"):
            tests.append(glob("request.userInfo.username", name))
        else:
            tests.append(f"request.userInfo.groups.exists(each, {glob('each', name)})")
    if tests:
        yield some(tests)


# The fields of a filter: what a clause of `match` calls them, if it has them, and their tests in
# CEL, which take the metadata of the object and the value of the field.
IN_CLAUSE = {
    "operations": "operations",
    "names": "names",
    "namespaces": "namespaces",
    "selector": "objectSelector",
    "namespaceSelector": "namespaceSelector",
}
TESTS: dict[str, Callable[[str, Any], str]] = {
    "names": lambda metadata, globs: any_glob(_name(metadata), globs),
    "namespaces": lambda _, globs: any_glob("request.namespace", globs),
    "operations": lambda _, operations: f"request.operation in {literal(operations)}",
    "selector": _labels,
    "namespaceSelector": lambda _, selector: _labels("namespaceObject.metadata", selector),
    "annotations": _annotations,
}


def filters(block: Mapping[str, Any] | None) -> tuple[str, list[Mapping[str, Any]]]:
    """Return the filters of a match or exclude, and whether any or all must match."""
    block = block or {}
    for sort in ("any", "all"):
        if block.get(sort):
            return sort, list(block[sort])
    return "any", [block] if block else []


def fields_of(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a filter that are set; `name` counts as one of `names`."""
    about = {key: each for key, each in (one.get("resources") or {}).items() if each}
    if "name" in about:
        about["names"] = [*texts(about.get("names")), about.pop("name")]
    for key in ("kinds", "operations", "names", "namespaces"):
        texts(about.get(key))
    if unknown := about.keys() - TESTS.keys() - {"kinds"}:
        refuse(f"it selects by {', '.join(sorted(unknown))}")
    return about


def kinds_of(block: Mapping[str, Any] | None) -> list[str]:
    """Return the kinds that a match or exclude names, without group and version."""
    return [kind.rpartition("/")[2] for kind in spelled_kinds(block)]


def spelled_kinds(block: Mapping[str, Any] | None) -> list[str]:
    """Return the kinds that a match or exclude names, as they are spelled."""
    named = [(each.get("resources") or {}).get("kinds") for each in filters(block)[1]]
    # A rule with another value is not converted, but its policy may have more rules.
    lists = [each for each in named if isinstance(each, list)]
    return [kind for kinds in lists for kind in kinds]
