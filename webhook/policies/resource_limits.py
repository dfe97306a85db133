"""Every container says how much cpu and memory it may use.

Why: a container without limits can starve everything else on its node. Judged: containers and init containers of pods
and of everything that makes pods, and a WebApp's resources. Ephemeral containers are left alone: the API forbids
resources on them.

Allowed: `resources: {limits: {cpu: 500m, memory: 512Mi}}`.
Denied:  a container without `resources.limits`, or with only one of the two.
Fix: set the missing limits.
"""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violation


class ResourceLimits(Params):
    """Which limits a container must have."""

    required: list[Literal["cpu", "memory", "ephemeral-storage"]] = Field(
        ["cpu", "memory"], min_length=1, description="resources that need a limit"
    )
    tier: str = Field("production", description="what the message calls these workloads")


def validate(request: Request, params: ResourceLimits) -> Iterator[Violation]:
    """Yield one violation for each container that lacks a required limit."""
    for container in request.containers(ephemeral=False):
        limits = container.mapping("resources.limits")
        missing = [resource for resource in params.required if limits.get(resource) is None]
        if missing:
            yield Violation(
                container.path("resources.limits"),
                found=f"{' and '.join(missing)} missing",
                rule=f"resource limits required in {params.tier}",
                fix="set both" if len(missing) == 2 else "set all of them" if len(missing) > 2 else "set it",
            )


POLICY = Policy("resource-limits", ResourceLimits, validate=validate, kinds="pods", category="capacity")
