"""Predicts what the registration gives up for a policy object that is about to be applied."""

from collections.abc import Callable, Iterable, Sequence

from config.faults import FaultsError
from controller.registration.configurations import RegistrationReader
from controller.registration.demands import PolicyId
from kube.resource import JsonObject
from webhook.engine import BoundPolicy, Engine
from webhook.policy_sets.bound_objects import bind, document_of
from webhook.policy_sets.catalogue import catalogue


class RegistrationForecast:
    """Compares the registrations with and without a policy; for use by one thread at a time."""

    def __init__(
        self, engine: Callable[[], Engine | None], excluded_namespaces: Iterable[str]
    ) -> None:
        """Take the engine in force, and the namespaces that are never sent."""
        self._engine = engine
        self._reader = RegistrationReader(excluded_namespaces)
        self._now: tuple[Engine, frozenset[PolicyId]] | None = None

    def widened_by(self, value: JsonObject) -> Sequence[str]:
        """Return the titles of the policies that a policy object would widen, itself first.

        Requests from more namespaces than they select would be sent, and are not now. The time is
        that of one change of policies; empty if the object is invalid, or no policy is in force.
        """
        engine = self._engine()
        if engine is None:
            return ()
        try:
            policy = bind(document_of(value), catalogue())
        except FaultsError:
            return ()  # the policy policy-objects denies it
        if not isinstance(policy, BoundPolicy):
            return ()
        if self._now is None or self._now[0] is not engine:
            self._now = engine, self._reader.read(engine).widened
        others = (each for each in engine.policies if each.title != policy.title)
        changed = self._reader.read(engine.with_policies([*others, policy]))
        found = changed.widened - self._now[1]
        titles = (name if place is None else f"{place}/{name}" for place, name in found)
        return sorted(titles, key=lambda title: (title != policy.title, title))
