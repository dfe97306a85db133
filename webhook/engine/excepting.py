"""Which exceptions count for a policy, and what they leave of it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from config.api.policy import ExceptionEntry
from config.faults import FaultsError, did_you_mean, parse
from webhook.engine.bound import BoundPolicy
from webhook.engine.exceptions import BoundException, Exempt
from webhook.engine.match import globs
from webhook.engine.policy import Params, Policy

Entries = Mapping[tuple[str | None, str], list[tuple[BoundException, ExceptionEntry]]]


def check_exception(exception: BoundException, policies: Iterable[BoundPolicy], home: str | None = None) -> None:
    """Refuse an exception from a policy that is not there, or with parameters it has not. FaultsError names all.

    Where `home` is known (as for `in_force`), so is one that does not count where it stands.
    """
    policies = tuple(policies)
    named = {policy.name: policy for policy in policies if home is None or exception.namespace in _places(policy, home)}
    of_the_cluster = {policy.name for policy in policies if policy.namespace is None}
    faults: list[tuple[str, str]] = []
    for index, entry in enumerate(exception.spec.exceptions):
        at = f"spec.exceptions[{index}]"
        if entry.policy not in named:
            text = f'no policy object "{entry.policy}"{did_you_mean(entry.policy, named)}'
            if entry.policy in of_the_cluster:
                text = f'"{entry.policy}" is a cluster policy; exceptions from it count in namespace {home} only'
            faults.append((f"{at}.policy", text))
            continue
        try:
            _other_params(named[entry.policy], entry, f"{at}.params")
        except FaultsError as error:
            faults += error.faults
    if faults:
        raise FaultsError(faults)


def _other_params(policy: BoundPolicy, entry: ExceptionEntry, path: str = "params") -> Params | None:
    if entry.params is None:
        return None
    return parse_params(policy.policy, policy.params.model_dump(mode="json") | entry.params, path)


def _places(policy: BoundPolicy, home: str | None) -> dict[str | None, None]:
    """Return where exceptions from this policy may stand."""
    return dict.fromkeys((None, home) if policy.namespace is None else (policy.namespace,))


def by_place_and_policy(exceptions: Iterable[BoundException]) -> Entries:
    """Sort what exceptions say by where they stand, and from which policy they are."""
    entries: dict[tuple[str | None, str], list[tuple[BoundException, ExceptionEntry]]] = {}
    for exception in exceptions:
        for entry in exception.spec.exceptions:
            entries.setdefault((exception.namespace, entry.policy), []).append((exception, entry))
    return entries


def exempt(policy: BoundPolicy, entries: Entries, home: str | None) -> Iterator[Exempt]:
    """Yield what the exceptions except from a policy; one with parameters that the policy has not excepts nothing."""
    for place in _places(policy, home):
        for exception, entry in entries.get((place, policy.name), ()):
            try:
                params = _other_params(policy, entry)
            except FaultsError:
                continue  # told where the exception is checked
            yield Exempt(
                expires=exception.spec.expires,
                kinds=None if entry.kinds is None else frozenset(entry.kinds),
                names=globs(entry.names),
                namespaces=globs(entry.namespaces),
                containers=globs(entry.containers),
                images=globs(entry.images),
                params=params,
                title=exception.title,
            )


def parse_params(policy: Policy, params: Mapping[str, Any], path: str) -> Params:
    """Return the parameters of a policy. FaultsError, its paths below `path`, where they cannot be used."""
    try:
        return parse(policy.params, dict(params), noun="parameter")
    except FaultsError as error:
        raise error.below(path) from None
