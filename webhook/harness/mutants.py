"""Mutation testing: change a policy set in one place at a time, to find changes that its cases do not detect.

A mutant changes one parameter, one part of `match`, an action, one comparison of a policy's Python module, or one
comparison or literal of a CEL expression. It is killed if a case gets an unexpected
answer; a survivor shows a rule that no case tests.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from config.faults import FaultsError
from webhook.harness.cases import Trial
from webhook.harness.mutant import UNCHANGED, Change, Mutant, in_spec
from webhook.harness.mutated_code import of_module
from webhook.harness.mutated_rules import of_rules
from webhook.harness.subject import Subject, WatchedEngine
from webhook.harness.trial import differences
from webhook.policy_sets.policy_set import Catalogue, PolicySetError

POLICIES = frozenset({"ClusterAdmissionPolicy", "AdmissionPolicy"})


def tried(trials: Sequence[Trial], catalogue: Catalogue) -> Iterator[tuple[Mutant, bool]]:
    """Yield each mutant of the policies in one file's trials, and whether it survives them."""
    subjects = list({id(trial.subject): trial.subject for trial in trials}.values())
    for mutant in mutants(subjects, catalogue):
        engines = {id(subject): _engine(mutant, subject, catalogue) for subject in subjects}
        if any(engine is not None for engine in engines.values()):
            yield mutant, not any(_notices(trial, engines[id(trial.subject)]) for trial in trials)


def _engine(mutant: Mutant, subject: Subject, catalogue: Catalogue) -> WatchedEngine | Exception | None:
    """Return a mutant's engine, or the exception it raises; None if it changes nothing or is not a valid policy set."""
    changed = mutant.change(subject, catalogue)
    try:
        return None if changed is None else changed[0].engine(changed[1])
    except (FaultsError, PolicySetError):
        return None
    except Exception as error:  # noqa: BLE001  noqa: BLE001  the changed code of one policy may raise anything, which counts as detected
        return error


def _notices(trial: Trial, engine: WatchedEngine | Exception | None) -> bool:
    if isinstance(engine, WatchedEngine):
        return bool(differences(replace(trial, engine=engine, looks_up=frozenset())))
    return engine is not None


def mutants(subjects: Sequence[Subject], catalogue: Catalogue) -> Iterator[Mutant]:
    """Yield every mutant of some policies once, although several cases may use different parameters."""
    found: dict[tuple[str, str], Mutant] = {}
    modules: dict[str, None] = {}
    for subject in subjects:
        for index, document in enumerate(subject.documents):
            if isinstance(spec := document.value.get("spec"), dict):
                if spec.get("policy") in catalogue:
                    modules[spec["policy"]] = None
                for mutant in _of_document(index, document.value, catalogue):
                    found.setdefault((mutant.policy, mutant.description), mutant)
    yield from found.values()
    for policy in modules:
        yield from of_module(catalogue[policy])


def _of_document(index: int, value: Mapping[str, Any], catalogue: Catalogue) -> Iterator[Mutant]:
    name, spec = value["metadata"]["name"], value["spec"]
    policy = catalogue.get(spec.get("policy"))
    if policy is not None:
        for field in policy.params.model_fields:
            yield from _of_parameter(index, name, field, policy.params)
    if value["kind"] in POLICIES:
        for number in range(len(spec.get("match", {}).get("any", ()))):
            yield Mutant(name, f"match.any[{number}] removed", in_spec(index, ("match", "any"), None, _without(number)))
        if "match" in spec:
            yield Mutant(name, "match removed", in_spec(index, ("match",), None, lambda _: {}))
        if "validations" in spec if policy is None else policy.validate is not None:
            actions = in_spec(index, ("validationActions",), ["Deny"], _warned)
            yield Mutant(name, "validationActions: Deny changed to Warn", actions)
            reverse = in_spec(index, ("allowExistingViolations",), True, lambda allows: not allows)
            yield Mutant(name, "allowExistingViolations reversed", reverse)
    yield from of_rules(index, value)


def _of_parameter(index: int, name: str, parameter: str, params: Any) -> Iterator[Mutant]:
    field = params.model_fields[parameter]
    wire, default = field.alias or parameter, field.get_default(call_default_factory=True)
    for description, change in CHANGES:
        yield Mutant(name, f"params.{wire} {description}", in_spec(index, ("params", wire), default, change))
    for choice in get_args(field.annotation):
        if isinstance(choice, str):
            yield Mutant(name, f"params.{wire} set to {choice}", in_spec(index, ("params", wire), default, _to(choice)))


def _warned(actions: list[str]) -> Any:
    return ["Warn"] if "Deny" in actions else UNCHANGED


def _without(number: int) -> Change:
    return lambda items: [item for index, item in enumerate(items) if index != number] if items else UNCHANGED


def _to(choice: str) -> Change:
    return lambda _: choice


def _by(number: int) -> Change:
    return lambda value: value + number if type(value) is int else UNCHANGED


def _only(items: slice, at_least: int) -> Change:
    """Return the change that keeps these items of a list of this length; a default list may be a tuple."""
    return lambda value: list(value[items]) if isinstance(value, list | tuple) and len(value) >= at_least else UNCHANGED


CHANGES: tuple[tuple[str, Change], ...] = (
    ("+ 1", _by(1)),
    ("- 1", _by(-1)),
    ("reversed", lambda value: not value if type(value) is bool else UNCHANGED),
    ("without its first item", _only(slice(1, None), at_least=1)),
    ("without its last item", _only(slice(-1), at_least=2)),
)
