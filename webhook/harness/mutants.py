"""Mutation testing: finds changes of a policy set that none of its cases detects."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from config.faults import FaultsError
from kube.resource import FieldPath
from webhook.engine import Policy
from webhook.harness.cases import Trial
from webhook.harness.mutated_code import changed_policies
from webhook.harness.mutated_rules import changed_expressions
from webhook.harness.subject import Subject, WatchedEngine
from webhook.harness.trial import differences
from webhook.policy_sets.bound_objects import Catalogue
from webhook.policy_sets.policy_set import PolicySetError


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one policy.

    If no case fails, the mutant survives: no case tests the changed rule.
    """

    policy: str
    description: str


def try_mutants(trials: Sequence[Trial], catalogue: Catalogue) -> Iterator[tuple[Mutant, bool]]:
    """Yield each mutant of the policies in one file's trials, and whether it survives them.

    A change is applied to every set of parameters at once, since cases may use different parameters
    of one policy. For a policy set, the modules of its policies are not changed: they have their
    own cases.
    """
    subjects = {id(trial.subject): trial.subject for trial in trials}
    objects: dict[Mutant, dict[int, Subject]] = {}
    for key, subject in subjects.items():
        for mutant, changed in _changed_objects(subject, catalogue):
            objects.setdefault(mutant, {})[key] = changed
    for mutant, by in objects.items():
        yield from _judge(
            mutant, {key: _engine(changed, catalogue) for key, changed in by.items()}, trials
        )
    for name in dict.fromkeys(
        subject.policy for subject in subjects.values() if subject.policy is not None
    ):
        for description, policy in changed_policies(catalogue[name]):
            engines = {
                key: _engine(subject, catalogue, policy) for key, subject in subjects.items()
            }
            yield from _judge(Mutant(name, description), engines, trials)


def _engine(
    subject: Subject, catalogue: Catalogue, policy: Policy | Exception | None = None
) -> WatchedEngine | Exception | None:
    """Return the engine, with a changed `policy`, or the error that this raises.

    None if the subject is invalid.
    """
    if isinstance(policy, Exception):
        return policy
    try:
        return subject.engine(catalogue if policy is None else {**catalogue, policy.name: policy})
    except (FaultsError, PolicySetError):
        return None
    except Exception as error:  # noqa: BLE001
        return error


def _judge(
    mutant: Mutant, engines: dict[int, WatchedEngine | Exception | None], trials: Sequence[Trial]
) -> Iterator[tuple[Mutant, bool]]:
    valid = {key: engine for key, engine in engines.items() if engine is not None}
    if valid:
        yield mutant, not any(_notices(trial, valid.get(id(trial.subject))) for trial in trials)


def _notices(trial: Trial, engine: WatchedEngine | Exception | None) -> bool:
    if isinstance(engine, WatchedEngine):
        return bool(differences(replace(trial, engine=engine, looks_up=frozenset())))
    return engine is not None


def _changed_objects(subject: Subject, catalogue: Catalogue) -> Iterator[tuple[Mutant, Subject]]:
    for index, document in enumerate(subject.documents):
        value = document.value
        if isinstance(spec := value.get("spec"), dict):
            for path, description, new in _changes(value["kind"], spec, catalogue):
                changed = subject.with_value(index, {**value, "spec": _with(spec, path, new)})
                yield Mutant(value["metadata"]["name"], description), changed


def _with(spec: dict[str, Any], path: FieldPath, new: Any) -> dict[str, Any]:
    changed = copy.deepcopy(spec)
    parent: Any = changed
    for step in path[:-1]:
        parent = parent[step] if isinstance(step, int) else parent.setdefault(step, {})
    parent[path[-1]] = new
    return changed


def _changes(
    kind: str, spec: dict[str, Any], catalogue: Catalogue
) -> Iterator[tuple[FieldPath, str, Any]]:
    """Yield each change of a policy object: path in its spec, description, new value."""
    policy = catalogue.get(spec.get("policy", ""))
    for name, field in policy.params.model_fields.items() if policy is not None else ():
        wire = field.alias or name
        value = spec.get("params", {}).get(wire, field.get_default(call_default_factory=True))
        choices = [
            argument
            for argument in get_args(field.annotation)
            if isinstance(argument, str) and argument != value
        ]
        yield from ((("params", wire), f"params.{wire} {how}", new) for how, new in _values(value))
        yield from ((("params", wire), f"params.{wire} set to {each}", each) for each in choices)
    if kind in ("ClusterAdmissionPolicy", "AdmissionPolicy"):
        clauses = spec.get("match", {}).get("any") or []
        for number, clause in enumerate(clauses):
            if len(clauses) > 1:
                yield (
                    ("match", "any"),
                    f"match.any[{number}] removed",
                    clauses[:number] + clauses[number + 1 :],
                )
            for field in clause if len(clause) > 1 else ():
                others = {name: clause[name] for name in clause if name != field}
                yield ("match", "any", number), f"match.any[{number}].{field} removed", others
        if "match" in spec:
            yield ("match",), "match removed", {}
        if "validations" in spec if policy is None else policy.validate is not None:
            if "Deny" in spec.get("validationActions", ["Deny"]):
                yield ("validationActions",), "validationActions: Deny changed to Warn", ["Warn"]
            allows = spec.get("allowExistingViolations", True)
            yield ("allowExistingViolations",), "allowExistingViolations reversed", not allows
    elif kind == "ValidatingAdmissionPolicyBinding" and "Deny" in spec.get("validationActions", ()):
        yield ("validationActions",), "validationActions: Deny changed to Warn", ["Warn"]
    yield from changed_expressions(spec)


def _values(value: Any) -> Iterator[tuple[str, Any]]:
    match value:
        case bool():
            yield "reversed", not value
        case int():
            yield "+ 1", value + 1
            yield "- 1", value - 1
        case str():
            yield f"changed to {value}x", f"{value}x"
        case dict():
            yield from (
                (f"without {key}", {name: value[name] for name in value if name != key})
                for key in value
            )
        case [_, *others]:
            yield "without its first item", others
            if others:
                yield "without its last item", list(value[:-1])
