"""Combines components into the plan of their parent: steps, phase, endpoints, requeue time."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from config.api.appstack import AppStack
from config.api.components import ComponentsStatus
from config.api.ecommerceplatform import EcommercePlatform
from controller.reconcilers.component import Component
from controller.runtime.plan import Plan, Problem

WAITING_INTERVAL = timedelta(seconds=30)
RUNNING_INTERVAL = timedelta(minutes=10)


def rolled_up(
    parent: AppStack | EcommercePlatform,
    components: Sequence[tuple[Component, Sequence[Component]]],
) -> Plan:
    """Return the plan.

    Each component is paired with those that must be ready before it is created.
    """
    enabled = [component for component, _ in components if component.enabled]
    is_running, otherwise = all(each.ready for each in enabled), _phase(parent, enabled)
    return Plan(
        steps=[component.step(needs) for component, needs in components],
        status=ComponentsStatus(
            phase="Running" if is_running else otherwise,
            endpoints={each.name: each.url for each in enabled if each.url},
            conditions=[
                condition
                for engine in enabled
                for condition in (*engine.dumps.conditions, *engine.conditions)
            ]
            or None,
        ),
        problem=_problem(enabled),
        requeue_after=RUNNING_INTERVAL if is_running else WAITING_INTERVAL,
        finalized=all(component.finalized for component, _ in components),
        failing=otherwise,
        unexplained=[job for each in enabled for job in each.dumps.unexplained],
    )


def _problem(components: Sequence[Component]) -> Problem | None:
    """Return the problems that only a change of the spec solves, joined by reason."""
    problems = [each.problem for each in components if each.problem]
    alike = [each.message for each in problems if each.reason == problems[0].reason]
    return Problem("; ".join(alike), problems[0].reason) if problems else None


def _phase(
    parent: AppStack | EcommercePlatform, components: Sequence[Component]
) -> Literal["Deploying", "Degraded", "Failed"]:
    """Return the phase of a parent that is not ready: failed, degraded or progressing.

    A parent that was ready before is degraded.
    """
    if any(each.is_failed for each in components):
        return "Failed"
    did_run = (
        parent.status.phase in ("Running", "Degraded")
        and parent.status.observed_generation == parent.generation
    )
    return "Degraded" if did_run else "Deploying"
