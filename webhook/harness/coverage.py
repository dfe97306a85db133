"""The coverage of a policy's cases: outcomes, operations, container lists and parameters."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from config.field_paths import value_at
from webhook.engine import BoundPolicy, Outcome
from webhook.harness.bases import pod_path
from webhook.harness.cases import Trial
from webhook.harness.trial import Tried

LISTS = ("containers", "initContainers", "ephemeralContainers")


@dataclass(slots=True)
class Covered:
    """The situations that the cases of one policy cover."""

    policy: BoundPolicy
    cases: int = 0
    outcomes: set[str] = field(default_factory=set)
    operations: set[str] = field(default_factory=set)  # with a violation or a patch
    lists: set[str] = field(default_factory=set)  # the container lists of judged objects
    judges_containers: bool = False
    parameters: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def situations(self) -> Iterator[tuple[str, bool]]:
        """Yield each situation that cases should cover, and whether one does."""
        finds = "violation" if self.policy.policy.validate is not None else "patch"
        yield "allowed", "allowed" in self.outcomes
        for operation in dict.fromkeys(
            operation for target in self.policy.policy.targets for operation in target.operations
        ):
            yield f"{finds} on {operation}", operation in self.operations
        if self.judges_containers:
            yield from ((name, name in self.lists) for name in LISTS)
        for name, values in self.parameters.items():
            yield f"parameter {name}", len(values) > 1

    @property
    def missing(self) -> list[str]:
        """The situations that no case covers."""
        return [name for name, is_tried in self.situations() if not is_tried]


def coverage(tried: Iterable[Tried]) -> list[Covered]:
    """Return the coverage of each policy that the trials put in force, by name."""
    by_title: dict[str, Covered] = {}
    for tried_case in tried:
        trial, outcomes = (
            tried_case.trial,
            {outcome.policy: outcome for outcome in tried_case.answer.outcomes},
        )
        for policy in trial.engine.policies:
            if trial.subject.policy is None and policy.policy.always:
                continue  # always in force; it has its own case file
            covered = by_title.setdefault(policy.title, Covered(policy))
            for name in policy.policy.params.model_fields:
                covered.parameters[name].add(repr(getattr(policy.params, name)))
                covered.parameters[name].add(
                    repr(policy.policy.params.model_fields[name].get_default())
                )
            if policy.title in outcomes:
                _add(covered, trial, outcomes[policy.title])
    return sorted(by_title.values(), key=lambda covered: covered.policy.title)


def _add(covered: Covered, trial: Trial, outcome: Outcome) -> None:
    covered.cases += 1
    reported = (*outcome.violations, *outcome.tolerated)
    if outcome.patched or outcome.violations:
        covered.operations.add(trial.admission.operation)
    elif not reported and outcome.malformed is None and outcome.error is None:
        covered.outcomes.add("allowed")
    covered.judges_containers |= any(f"{name}[" in each.path for each in reported for name in LISTS)
    about = trial.admission.about
    covered.lists |= {
        name for name in LISTS if value_at(about, f"{pod_path(about['kind'])}.{name}")
    }


def percent(found: Iterable[Covered]) -> float:
    """Return the share of covered situations in percent."""
    situations = [is_tried for each in found for _, is_tried in each.situations()]
    return 100.0 * sum(situations) / len(situations) if situations else 0.0
