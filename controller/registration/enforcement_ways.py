"""Concludes from the measured policies what holds for those that wait for their turn. Pure.

The API server calls the same webhooks for all requests of one way. If one request of it is not
answered, or several of different policies are admitted, and none is denied since, then the fault is
not one policy's: it holds for each policy whose requests go this way.
"""

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from controller.registration.enforcement_answers import ADMITTED, UNANSWERED, Enforcement
from controller.registration.enforcement_requests import DryRun, Way
from kube.resource import JsonObject

SAMPLES = 3  # different requests that are admitted, before the same is concluded for others
MAX_AGE = 3600.0  # seconds after which a way that no request takes any more is forgotten


@dataclass(slots=True)
class _State:
    asked: float = -math.inf
    """When a request was last sent."""
    failing: dict[str, tuple[DryRun, Enforcement]] = field(default_factory=dict)
    """By title, the policies with a confirmed failure since the last denial."""
    concluded: Enforcement | None = None


class Ways:
    """The ways of the policies that are measured."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._states: dict[Way, _State] = {}

    def count_wanted(self, way: Way, now: float, interval: float) -> int:
        """Return how many requests of a way to send now, before it is the turn of their policies.

        One in each interval; several to see whether a failure is one policy's.
        """
        state = self._states.get(way)
        if state is None:
            return 1
        if state.failing and state.concluded is None:
            return SAMPLES
        return int(now - state.asked >= interval)

    def conclude(self, ways: Iterable[Way]) -> Enforcement | None:
        """Return what is concluded for a policy with these ways; None: nothing."""
        states = (self._states.get(way) for way in ways)
        return next((each.concluded for each in states if each and each.concluded), None)

    def keep(self, titles: Container[str]) -> None:
        """Forget the failures of policies that are not in force any more."""
        for state in self._states.values():
            state.failing = {
                title: failure for title, failure in state.failing.items() if title in titles
            }

    def note(
        self,
        sent: float,
        denied: Mapping[DryRun, bool],
        failures: Mapping[str, Mapping[DryRun, Enforcement]],
    ) -> set[Way]:
        """Note the answers of one pass; return the ways for which the conclusion changed.

        `denied` has whether each request was denied by a webhook of Gatewright, and `failures`, by
        title, the answers that confirm that a policy is not enforced, or not answered.
        """
        reached = {dry_run.way for dry_run, is_denied in denied.items() if is_denied}
        states = {way: self._states.setdefault(way, _State()) for way in map(_way, denied)}
        before = {way: state.concluded for way, state in states.items()}
        for way, state in states.items():
            state.asked = sent
            if way in reached:
                state.failing, state.concluded = {}, None
        for title, answers in failures.items():
            for dry_run, failure in answers.items():
                if dry_run.way not in reached and _is_of_the_way(failure):
                    states[dry_run.way].failing[title] = dry_run, failure
        for way, state in states.items():
            state.concluded = state.concluded or _conclude(state.failing, way)
        self._states = {
            way: state for way, state in self._states.items() if sent - state.asked <= MAX_AGE
        }
        return {way for way, state in states.items() if state.concluded != before[way]}


def _way(dry_run: DryRun) -> Way:
    return dry_run.way


def _is_of_the_way(failure: Enforcement) -> bool:
    return failure.reason in UNANSWERED or failure == ADMITTED


def _conclude(failing: Mapping[str, tuple[DryRun, Enforcement]], way: Way) -> Enforcement | None:
    admitted = list[JsonObject]()
    for dry_run, failure in failing.values():
        if failure.reason in UNANSWERED:
            return failure
        if len(admitted) < SAMPLES and dry_run.request.object not in admitted:
            admitted.append(dry_run.request.object)
    if len(admitted) < SAMPLES:
        return None
    return ADMITTED._replace(
        message=f"the API server admits what {len(failing)} other policies must deny: creations of "
        f"{way.resource.plural} in namespaces that the same webhooks select"
    )
