"""The trials of case files. Each file is read once in a process: many tests try every case."""

from functools import cache
from pathlib import Path

from config.documents import DocumentError
from webhook.harness.cases import Trial, load_trials
from webhook.policy_sets.catalogue import catalogue

FILES = tuple(sorted(Path(__file__).parent.glob("*.yaml")))


@cache
def trials_of(file: Path) -> tuple[Trial, ...]:
    """Return the trials of a case file. They are shared: change copies of their objects only."""
    return tuple(load_trials(file, catalogue()))


def trials_of_policy(name: str) -> tuple[Trial, ...]:
    """Return the trials of a built-in policy."""
    file = Path(__file__).with_name(f"{name.replace('-', '_')}.yaml")
    if not file.exists():
        raise DocumentError(
            f"tests/policies/{file.name} is missing; write the cases of {name} there"
        )
    return trials_of(file)
