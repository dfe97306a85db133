"""The policies of a case file, in an engine that records which policies read the request."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

from config.documents import Document
from config.faults import FaultsError, refuse
from config.schemas import CustomTypes
from webhook.engine import BoundPolicy, Engine, Outcome, Patch, Request, Violation
from webhook.engine.exceptions import HOME
from webhook.harness.rule_fields import looks
from webhook.policy_sets.bound_objects import Catalogue, bind
from webhook.policy_sets.policy_set import in_force, read, read_valid
from webhook.policy_sets.rules import RulePolicy

# Parsed parts of a request; reading one that is None or empty does not count.
RECORDS = frozenset({"pod", "pod_metadata", "containers", "volumes", "images", "before"})
# Attributes that a policy reads only to decide whether it applies.
ROUTING = frozenset({
    "kind", "resource_kind", "uid", "operation", "group", "resource_group", "resource", "target",
    "lookup",
})  # fmt: skip
JudgeFunction = Callable[[Request, Any], Iterable[Any]]


class WatchedEngine(Engine):
    """An engine that records which of its policies read the request.

    A policy that returned without reading it judged nothing.
    """

    def __init__(self, policies: Iterable[BoundPolicy]) -> None:
        """Watch these policies."""
        self._looked: set[str] = set()
        super().__init__(map(self._watch, policies))

    def begin(self) -> None:
        """Clear the record."""
        self._looked.clear()

    def has_looked(self, outcome: Outcome) -> bool:
        """Whether the policy of an outcome read the request, or reported something."""
        reported = outcome.violations or outcome.tolerated or outcome.patched
        has_result = bool(reported or outcome.malformed or outcome.error)
        return has_result or outcome.policy in self._looked

    def _watch(self, bound: BoundPolicy) -> BoundPolicy:
        """Return a policy whose reads are recorded: at run time, or for CEL by field names."""
        policy = bound.policy
        rules_look = isinstance(policy, RulePolicy) and looks(policy)

        def record_look() -> None:
            self._looked.add(bound.title)

        def watch(judge: JudgeFunction | None) -> JudgeFunction | None:
            def judge_and_record(request: Request, params: Any) -> Iterator[Any]:
                if not isinstance(policy, RulePolicy):
                    request = cast(Request, _Watched(request, record_look))
                elif rules_look:
                    record_look()
                for yielded in judge(request, params) if judge is not None else ():
                    if not isinstance(yielded, Violation | Patch):
                        raise TypeError(
                            f"the policy yielded {yielded!r}, "
                            "which is neither a Violation nor a Patch"
                        )
                    record_look()
                    yield yielded

            return None if judge is None else judge_and_record

        return replace(
            bound,
            policy=replace(policy, validate=watch(policy.validate), mutate=watch(policy.mutate)),
        )


class _Watched:
    """Wraps a request, or its attributes, and records reads of parts other than ROUTING."""

    def __init__(self, read: Any, looked: Callable[[], None]) -> None:
        self._read, self._looked = read, looked

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._read, name)
        if name == "attributes":
            return _Watched(value, self._looked)
        if name in RECORDS:
            return lambda *args, **kwargs: self._records(value(*args, **kwargs))
        if name not in ROUTING:
            self._looked()
        return value

    def _records(self, records: Any) -> Any:
        records = tuple(records) if isinstance(records, Iterator) else records
        if records is not None and records != ():
            self._looked()
        return records


@dataclass(frozen=True, slots=True)
class Subject:
    """Policy objects as documents: a policy set, or one object, of a built-in `policy` or in CEL.

    A policy set also includes the policies that are always in force. Exceptions from cluster
    policies with a namespace take effect only in `home`. `custom` are the types of custom kinds, by
    which rules in CEL are checked too.
    """

    documents: tuple[Document, ...]
    policy: str | None = None
    home: str = HOME
    is_set: bool = True
    custom: CustomTypes = field(default_factory=CustomTypes)

    def engine(self, catalogue: Catalogue) -> WatchedEngine:
        """Return the engine of these policies.

        Raises FaultsError or PolicySetError if they are invalid, or none.
        """
        if self.is_set:
            policy_set = read(self.documents, catalogue, is_offline=True, custom=self.custom)
            if not policy_set.policies:
                refuse("policies", "no policy in this file is in force, so nothing is tested")
            engine = WatchedEngine(in_force(policy_set, catalogue, self.home))
            if engine.conflicts:
                raise FaultsError([("policies", each.text) for each in engine.conflicts])
            return engine
        bound = bind(self.documents[0].value, catalogue, custom=self.custom)
        assert isinstance(bound, BoundPolicy)
        return WatchedEngine([bound])

    def without_invalid(self, catalogue: Catalogue) -> tuple["Subject", list[str]]:
        """Return the set without the objects that cannot be in force, and a line for each fault.

        They are invalid, or conflict with others.
        """
        policy_set, invalid = read_valid(
            self.documents, catalogue, is_offline=True, custom=self.custom
        )
        lines = [line for each in invalid for line in each.lines]
        left_out = {id(each.document) for each in invalid}
        valid = [each for each in self.documents if id(each) not in left_out]
        for conflict in Engine(in_force(policy_set, catalogue, self.home)).conflicts:
            for document in [each for each in valid if _is_policy(each, conflict.policy.name)]:
                valid.remove(document)
                lines.append(f"{document.where()}: it is not in force: {conflict.text}")
        return replace(self, documents=tuple(valid)), lines

    def with_value(self, index: int, value: Any) -> "Subject":
        """Return the same policies with another value for one document."""
        changed = replace(self.documents[index], value=value)
        return replace(
            self, documents=(*self.documents[:index], changed, *self.documents[index + 1 :])
        )


def _is_policy(document: Document, name: str) -> bool:
    value = document.value
    return str(value["kind"]).endswith("Policy") and value["metadata"].get("name") == name


def single(policy: str, params: dict[str, Any], document: Document) -> Subject:
    """Return one built-in policy with these parameters, in force everywhere."""
    value = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": policy},
        "spec": {"policy": policy, "params": params},
    }
    return Subject((replace(document, value=value),), policy, is_set=False)
