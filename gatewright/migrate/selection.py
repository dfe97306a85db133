"""Convert Kyverno's match and exclude to `match` and match conditions."""

from collections.abc import Iterator, Mapping
from typing import Any

from gatewright.migrate.celtext import every, glob, literal, negated, some
from gatewright.migrate.kinds import KindNames
from gatewright.migrate.results import refuse

PODS = ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet")
TEMPLATED = (*PODS, "CronJob")
NONE = "none"
OBJECT, OF_DELETION = "object.metadata", "(object == null ? oldObject : object).metadata"
PLAIN = {"kinds", "operations", "names", "name", "namespaces", "selector", "namespaceSelector"}


def filters(block: Mapping[str, Any] | None) -> tuple[str, list[Mapping[str, Any]]]:
    """Return the filters of a match or exclude, and whether any or all must match."""
    block = block or {}
    for sort in ("any", "all"):
        if block.get(sort):
            return sort, list(block[sort])
    return "any", [block] if block else []


def kinds_of(block: Mapping[str, Any] | None) -> list[str]:
    """Return the kinds that a match or exclude names."""
    _, found = filters(block)
    return [kind for each in found for kind in (each.get("resources") or {}).get("kinds") or ()]


def pod_controllers(policy: Mapping[str, Any]) -> list[str]:
    """Return the kinds that Kyverno generates rules for from rules about pods."""
    needed = False
    for rule in policy["spec"].get("rules") or ():
        changes = rule.get("mutate") or {}
        json = [changes, *(changes.get("foreach") or ())]
        if rule.get("generate") or any("patchesJson6902" in each for each in json):
            return []
        for block in (rule.get("match"), rule.get("exclude")):
            for each in filters(block)[1]:
                about = each.get("resources") or {}
                kinds = [kind.rpartition("/")[2] for kind in about.get("kinds") or ()]
                if any(about.get(k) for k in ("name", "names", "annotations")):
                    return []
                if about.get("selector") is not None or (len(kinds) > 1 and "Pod" in kinds):
                    return []
                needed |= not {"Pod", *TEMPLATED}.isdisjoint(kinds)
    annotations = policy["metadata"].get("annotations") or {}
    selected = annotations.get("pod-policies.kyverno.io/autogen-controllers", "all")
    if not needed or selected == NONE:
        return []
    return [e for e in TEMPLATED if selected == "all" or e in selected.replace(" ", "").split(",")]


class RuleScope:
    """The scope of a rule: `match`, and conditions in CEL."""

    def __init__(self, rule: Mapping[str, Any], names: KindNames, generated: list[str]) -> None:
        """Convert the match and the exclude of a rule.

        Raises NotEqualError if that is impossible.
        """
        self._names, self._generated = names, generated
        excluded = kinds_of(rule.get("exclude"))
        has_pods = "Pod" in _plain(kinds_of(rule.get("match")))
        self.is_generated = bool(
            generated and has_pods and (not excluded or "Pod" in _plain(excluded))
        )
        self.conditions: list[str] = []
        about = [each.get("resources") or {} for each in filters(rule.get("match"))[1]]
        deletes = any("DELETE" in (each.get("operations") or ()) for each in about)
        self._metadata = OF_DELETION if deletes else OBJECT
        self.match: dict[str, Any] = {"any": []}
        sort, found = filters(rule.get("match"))
        found = _merged(found) if sort == "all" else found
        for each in found:
            clause, conditions = self._clause(each)
            self.match["any"].append(clause)
            if conditions and len(found) > 1:
                refuse("one of several filters in match asks for users, annotations or wildcards")
            self.conditions += conditions
        sort, found = filters(rule.get("exclude"))
        conditions = [every(self._tests(each)) for each in found]
        if conditions:
            joined = some(conditions) if sort == "any" else every(conditions)
            self.conditions.append(negated(joined))

    def without_deletions(self) -> None:
        """Leave out DELETE requests, which Kyverno never judges by a pattern."""
        for clause in self.match["any"]:
            kept = [e for e in clause.get("operations") or ("CREATE",) if e != "DELETE"]
            if not kept:
                refuse("Kyverno judges no deletion by a pattern, so it never applies")
            if "operations" in clause:
                clause["operations"] = kept

    @property
    def kinds(self) -> list[str]:
        """All matched kinds."""
        return [kind for clause in self.match["any"] for kind in clause["kinds"]]

    @property
    def code(self) -> str:
        """The type of the judged objects; "" if there are several."""
        return self._names.code(["Pod"] if self.is_generated else self.kinds)

    def _kinds(self, about: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        named = about.get("kinds") or refuse("a filter without kinds")
        spelled = [self._names.by_selector(each) for each in named]
        kinds = [kind for kind, _ in spelled]
        if "Pod" in kinds and self.is_generated:
            kinds += self._generated
        return list(dict.fromkeys(kinds)), sorted({sub for _, sub in spelled})

    def _clause(self, one: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        about = one.get("resources") or {}
        kinds, subresources = self._kinds(about)
        clause: dict[str, Any] = {"kinds": kinds}
        conditions = list(self._users(one))
        if subresources != [""]:
            clause["subresources"] = subresources
        for key in ("operations", "namespaces", "namespaceSelector"):
            if about.get(key):
                clause[key] = about[key]
        names = _names(about)
        if names:
            clause["names"] = names
        if selector := about.get("selector"):
            if _has_wildcards(selector):
                conditions.append(_labels(self._metadata, selector))
            else:
                clause["objectSelector"] = selector
        conditions += _annotations(self._metadata, about.get("annotations") or {})
        if unknown := about.keys() - PLAIN - {"annotations"}:
            refuse(f"match by {', '.join(sorted(unknown))}")
        return clause, conditions

    def _tests(self, one: Mapping[str, Any]) -> Iterator[str]:
        """Yield the conditions of a filter of `exclude`."""
        about = one.get("resources") or {}
        if about.get("kinds"):
            kinds, _ = self._kinds(about)
            if not set(self.kinds) <= set(kinds):
                yield f"request.kind.kind in {literal([each.rpartition('/')[2] for each in kinds])}"
        names = _names(about)
        in_namespaces = about.get("namespaces") or ()
        name = f"{self._metadata}.?name.orValue({self._metadata}.?generateName.orValue(''))"
        for value, globs in ((name, names), ("request.namespace", in_namespaces)):
            if globs:
                plain = [each for each in globs if "*" not in each and "?" not in each]
                tests = [f"{value} in {literal(plain)}"] if plain else []
                yield some([*tests, *(glob(value, each) for each in globs if each not in plain)])
        if about.get("operations"):
            yield f"request.operation in {literal(about['operations'])}"
        if selector := about.get("selector"):
            yield _labels(self._metadata, selector)
        if selector := about.get("namespaceSelector"):
            yield _labels("namespaceObject.metadata", selector)
        yield from _annotations(self._metadata, about.get("annotations") or {})
        yield from self._users(one)

    def _users(self, one: Mapping[str, Any]) -> Iterator[str]:
        if one.get("roles") or one.get("clusterRoles"):
            refuse("it depends on the roles of the user, which no admission request has")
        tests = []
        for each in one.get("subjects") or ():
            name, namespace = each.get("name", ""), each.get("namespace", "")
            if each["kind"] == "ServiceAccount":
                user = f"system:serviceaccount:{namespace}:{name}"
                tests.append(glob("request.userInfo.username", user))
            elif each["kind"] == "User":
                tests.append(glob("request.userInfo.username", name))
            else:
                tests.append(f"request.userInfo.groups.exists(each, {glob('each', name)})")
        if tests:
            yield some(tests)


def _names(about: Mapping[str, Any]) -> list[str]:
    return [*(about.get("names") or ()), *filter(None, [about.get("name")])]


def _plain(kinds: list[str]) -> list[str]:
    return [each.rpartition("/")[2] for each in kinds]


def _merged(found: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Merge filters that must all match into one."""
    whole: dict[str, Any] = {"resources": {}}
    for each in found:
        about = each.get("resources") or {}
        if about.keys() & whole["resources"].keys():
            refuse("several filters in match.all with the same field")
        whole["resources"] |= about
        whole |= {key: value for key, value in each.items() if key != "resources"}
    return [whole]


def _has_wildcards(selector: Mapping[str, Any]) -> bool:
    words = [each for pair in (selector.get("matchLabels") or {}).items() for each in pair]
    return any("*" in each or "?" in each for each in words)


def _labels(metadata: str, selector: Mapping[str, Any]) -> str:
    """Return the test that a label selector matches."""
    labels, tests = f"{metadata}.?labels.orValue({{}})", list[str]()
    for key, value in (selector.get("matchLabels") or {}).items():
        if "*" in key or "?" in key:
            tests.append(_entry(labels, key, value))
        else:
            there = f"{literal(key)} in {labels}"
            tests.append(every([there, glob(f"{labels}[{literal(key)}]", value)]))
    for each in selector.get("matchExpressions") or ():
        key, values = each["key"], literal(each.get("values") or [])
        there = f"{literal(key)} in {labels}"
        is_in = every([there, f"{labels}[{literal(key)}] in {values}"])
        tests.append({"In": is_in, "NotIn": negated(is_in), "Exists": there,
                      "DoesNotExist": negated(there)}[each["operator"]])  # fmt: skip
    return every(tests)


def _annotations(metadata: str, selected: Mapping[str, Any]) -> list[str]:
    annotations = f"{metadata}.?annotations.orValue({{}})"
    return [_entry(annotations, key, str(value)) for key, value in selected.items()]


def _entry(entries: str, key: str, value: str) -> str:
    """Return the test that a map has an entry whose key and value match two patterns."""
    return f"{entries}.exists(key, {every([glob('key', key), glob(f'{entries}[key]', value)])})"
