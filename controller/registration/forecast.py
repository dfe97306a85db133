"""Predicts what the registration gives up for a policy object that is about to be applied."""

import time
from collections.abc import Callable, Iterable, Sequence

from config.faults import FaultsError
from controller.registration.configurations import RegistrationReader
from controller.registration.demands import PolicyId
from kube.resource import JsonObject
from webhook.engine import BoundPolicy, Engine
from webhook.policy_sets.bound_objects import bind, document_of
from webhook.policy_sets.catalogue import catalogue

# A forecast is followed by a pause of this many times its processor time, so that the creation of
# thousands of policies at once is not slowed down.
PAUSES = 9


class RegistrationForecast:
    """Compares the registrations with and without a policy; for use by one thread at a time."""

    def __init__(
        self,
        engine: Callable[[], Engine | None],
        excluded_namespaces: Iterable[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the engine in force, and the namespaces that are never sent."""
        self._engine = engine
        self._reader = RegistrationReader(excluded_namespaces)
        self._now: tuple[Engine, frozenset[PolicyId]] | None = None
        self._clock = clock
        self._next = 0.0  # when the next forecast may be made

    def widened_by(self, value: JsonObject) -> Sequence[str]:
        """Return the titles of the policies that a policy object would widen, itself first.

        Requests from more namespaces than they select would be sent, and are not now. The time is
        that of one change of policies. Empty if the object is invalid, if no policy is in force, or
        if the last forecast is too recent.
        """
        engine = self._engine()
        if engine is None or self._clock() < self._next:
            return ()
        used = time.thread_time()
        try:
            return self._compare(engine, value)
        finally:
            self._next = self._clock() + PAUSES * (time.thread_time() - used)

    def _compare(self, engine: Engine, value: JsonObject) -> Sequence[str]:
        """Return the titles of the policies that only a registration with a policy widens."""
        try:
            policy = bind(document_of(value), catalogue())
        except FaultsError:
            return ()  # the policy policy-objects denies it
        if not isinstance(policy, BoundPolicy):
            return ()
        if self._now is None or self._now[0] is not engine:
            self._now = engine, self._reader.read(engine).widened
        # In the place of the one before: elsewhere, it would move all that follow.
        policies = [policy if each.title == policy.title else each for each in engine.policies]
        is_new = all(each is not policy for each in policies)
        changed = self._reader.read(engine.with_policies([*policies, *[policy] * is_new]))
        widened = changed.widened - self._now[1]
        titles = (name if place is None else f"{place}/{name}" for place, name in widened)
        return sorted(titles, key=lambda title: (title != policy.title, title))
