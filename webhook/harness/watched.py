"""Record whether a policy read the object: one that returned earlier has judged nothing."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any

from webhook.engine import Policy, Request

ROUTING = frozenset({"kind", "resource_kind"})  # attributes that a policy reads to decide whether a request concerns it
RECORDS = frozenset({"pod", "pod_metadata", "containers", "volumes", "images", "before"})  # None or empty means absent


class Looks:
    """The names of the policies that read the object of the current trial."""

    def __init__(self) -> None:
        """Start with no names."""
        self.policies: set[str] = set()
        self.watched: frozenset[str] = frozenset()

    def wrapped(self, catalogue: Mapping[str, Policy]) -> dict[str, Policy]:
        """Return the policies wrapped for recording. Rules in CEL are not wrapped: they always read the object."""
        self.watched = frozenset(catalogue)
        return {name: self._wrapped(policy) for name, policy in catalogue.items()}

    def _wrapped(self, policy: Policy) -> Policy:
        def watch(judge: Callable[[Request, Any], Iterable[Any]]) -> Callable[[Request, Any], Iterator[Any]]:
            @wraps(judge)
            def watched(request: Request, params: Any) -> Iterator[Any]:
                def looked() -> None:
                    self.policies.add(policy.name)

                for each in judge(_Watched(request, looked), params):  # type: ignore[arg-type]
                    looked()
                    yield each

            return watched

        return replace(
            policy,
            validate=None if policy.validate is None else watch(policy.validate),
            mutate=None if policy.mutate is None else watch(policy.mutate),
        )


class _Watched:
    """A request that records when a part of its object is read."""

    def __init__(self, request: Request, looked: Callable[[], None]) -> None:
        self._request, self._looked = request, looked

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._request, name)
        if name in RECORDS:
            return lambda *args, **kwargs: self._records(value(*args, **kwargs))
        if name not in ROUTING:
            self._looked()
        return value

    def _records(self, found: Any) -> Any:
        found = tuple(found) if isinstance(found, Iterator) else found
        if found is not None and found != ():
            self._looked()
        return found
