"""Convert Kyverno's match and exclude to `match` and match conditions."""

from collections.abc import Iterator, Mapping
from typing import Any

from gatewright.tools.cel_text import every, literal, negate, some
from gatewright.tools.migrate.filters import (
    IN_CLAUSE,
    TESTS,
    fields_of,
    filters,
    has_wildcards,
    kinds_of,
    spelled_kinds,
    users_of,
)
from gatewright.tools.migrate.kinds import KindNames
from gatewright.tools.migrate.results import ADD_MATCH, EVERY_KIND, OMIT, refuse

TEMPLATED = ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController",
             "StatefulSet", "CronJob")  # fmt: skip
AUTOGEN = "pod-policies.kyverno.io/autogen-controllers"
OBJECT, OF_DELETION = "object.metadata", "(object == null ? oldObject : object).metadata"


def pod_controllers(policy: Mapping[str, Any]) -> list[str]:
    """Return the kinds that Kyverno generates rules for from rules about pods."""
    needed = False
    for rule in policy["spec"].get("rules") or ():
        changes = rule.get("mutate") or {}
        json = [changes, *(changes.get("foreach") or ())]
        if rule.get("generate") or any("patchesJson6902" in each for each in json):
            return []
        for block in (rule.get("match"), rule.get("exclude")):
            for filter in filters(block)[1]:
                about, kinds = filter.get("resources") or {}, kinds_of(filter)
                if any(about.get(key) for key in ("name", "names", "annotations")):
                    return []
                if about.get("selector") is not None or (len(kinds) > 1 and "Pod" in kinds):
                    return []
                # A rule about v1/Pod alone generates none.
                needed |= not {"Pod", *TEMPLATED}.isdisjoint(spelled_kinds(filter))
    annotations = policy["metadata"].get("annotations") or {}
    selected = annotations.get(AUTOGEN)
    if not needed or selected is None:
        return list(TEMPLATED) if needed else []
    if selected == "all" or " " in selected:
        refuse(f"Kyverno reads its annotation {AUTOGEN} in different ways: {selected!r}")
    return [each for each in TEMPLATED if each in selected.split(",")]


class RuleScope:
    """The scope of a rule: `match`, and conditions in CEL."""

    def __init__(self, rule: Mapping[str, Any], names: KindNames, generated: list[str]) -> None:
        """Convert the match and the exclude of a rule.

        Raises NotEqualError if that is impossible.
        """
        self._names, self._generated = names, generated
        matched, excluded = kinds_of(rule.get("match")), kinds_of(rule.get("exclude"))
        self.is_generated = bool(
            generated and "Pod" in matched and (not excluded or "Pod" in excluded)
        )
        if self.is_generated and {*matched, *excluded} != {"Pod"}:
            refuse("it is about pods and other kinds, and Kyverno generates rules from it",
                   "one rule for each kind")  # fmt: skip
        sort, blocks = filters(rule.get("match"))
        fields = [fields_of(each) for each in blocks]
        deletes = any("DELETE" in each.get("operations", ()) for each in fields)
        self._metadata = OF_DELETION if deletes else OBJECT
        excluding = [fields_of(each) for each in filters(rule.get("exclude"))[1]]
        if "Namespace" in matched and any("namespaceSelector" in e for e in fields + excluding):
            refuse("Kyverno selects no Namespace by namespaceSelector", OMIT)
        self.conditions: list[str] = []
        self.match: dict[str, Any] = {"any": []}
        for block in _merge(blocks) if sort == "all" else blocks:
            self._match(block)
        if not blocks:
            refuse("it has no match, so it names no kinds", ADD_MATCH)
        if self.conditions and len(self.match["any"]) > 1:
            refuse("one of several filters in match has users, annotations or wildcards",
                   "one rule for each filter")  # fmt: skip
        sort, blocks = filters(rule.get("exclude"))
        if blocks:
            conditions = [every(self._exclude(each)) for each in blocks]
            self.conditions.append(negate(some(conditions) if sort == "any" else every(conditions)))

    def without_deletions(self) -> None:
        """Leave out DELETE requests, which Kyverno never judges by a pattern."""
        for clause in self.match["any"]:
            kept = [e for e in clause.get("operations") or ("CREATE",) if e != "DELETE"]
            if not kept:
                refuse("Kyverno judges no deletion by a pattern, so it never applies", OMIT)
            if "operations" in clause:
                clause["operations"] = kept

    @property
    def judges_only_updates(self) -> bool:
        """Whether updates of some objects are judged, and not their creations.

        Kyverno allows existing violations by judging the old object as if it were created.
        """
        named = [each.get("operations", ()) for each in self.match["any"]]
        return any("UPDATE" in each and "CREATE" not in each for each in named)

    @property
    def kinds(self) -> list[str]:
        """All matched kinds."""
        return [kind for clause in self.match["any"] for kind in clause["kinds"]]

    @property
    def code(self) -> str:
        """The type of the judged objects; "" if there are several."""
        return self._names.code(["Pod"] if self.is_generated else self.kinds)

    def _kinds(self, about: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        spelled = [self._names.by_selector(each) for each in about["kinds"]]
        kinds = [kind for kind, _ in spelled]
        if "Pod" in kinds and self.is_generated:
            kinds += self._generated
        return list(dict.fromkeys(kinds)), sorted({sub for _, sub in spelled})

    def _match(self, one: Mapping[str, Any]) -> None:
        """Add a filter of `match`: a clause, and conditions for what no clause has."""
        about = fields_of(one)
        if "kinds" not in about:
            refuse("a filter in match names no kinds", EVERY_KIND)
        kinds, subresources = self._kinds(about)
        clause: dict[str, Any] = {"kinds": kinds}
        if subresources != [""]:
            clause["subresources"] = subresources
        self.match["any"].append(clause)
        self.conditions += users_of(one)
        for key, test in TESTS.items():
            if key in IN_CLAUSE and key in about and not has_wildcards(about[key]):
                clause[IN_CLAUSE[key]] = about[key]
            elif key in about:
                self.conditions.append(test(self._metadata, about[key]))

    def _exclude(self, one: Mapping[str, Any]) -> Iterator[str]:
        """Yield the conditions of a filter of `exclude`."""
        about = fields_of(one)
        if "kinds" in about:
            kinds, _ = self._kinds(about)
            if not set(self.kinds) <= set(kinds):
                yield f"request.kind.kind in {literal([each.rpartition('/')[2] for each in kinds])}"
        yield from (test(self._metadata, about[key]) for key, test in TESTS.items() if key in about)
        yield from users_of(one)


def _merge(blocks: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Merge filters that must all match into one."""
    whole: dict[str, Any] = {"resources": {}}
    for block in blocks:
        about = block.get("resources") or {}
        if about.keys() & whole["resources"].keys():
            refuse("several filters in match.all with the same field")
        whole["resources"] |= about
        whole |= {key: value for key, value in block.items() if key != "resources"}
    return [whole]
