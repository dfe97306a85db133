"""Every container has CPU and memory limits.

Why: a container without limits can starve every other container on its node. Judged: all containers but ephemeral
ones, on which the API forbids resources. A pod-level limit (`spec.resources`) counts for all of the pod's containers.

Allowed: `resources: {limits: {cpu: 500m, memory: 512Mi}}`.
Denied:  a container without `resources.limits`, or with only one of the two; a limit of a resource in `forbidden`.
Fix: set the missing limits, remove the forbidden ones.
"""

from typing import Literal

from pydantic import Field, model_validator

from webhook.engine import Policy, Request, Violations
from webhook.policies._resources import Required, missing, needs, of_all, violation


class ResourceLimits(Required):
    """Which limits a container must have, and which it must not."""

    forbidden: list[Literal["cpu", "memory", "ephemeral-storage"]] = Field(
        [], description="resources that must have no limit"
    )

    @model_validator(mode="after")
    def _is_possible(self) -> "ResourceLimits":
        if not self.required and not self.forbidden:
            raise ValueError("expected at least one required or forbidden resource")
        if both := [name for name in self.required if name in self.forbidden]:
            raise ValueError(f"{' and '.join(both)} cannot be both required and forbidden")
        return self


def validate(request: Request, params: ResourceLimits) -> Violations:
    """Yield one violation for each container that lacks a required limit, and one for each forbidden limit."""
    yield from missing(request, "limits", params)
    for each in of_all(request) if params.forbidden else ():
        for resource in params.forbidden:
            if resource in each.limits:
                rule = f"no limit of {resource} is allowed in {params.tier}"
                yield violation(each, "limits", resource, each.limits[resource].text, rule, "remove it")


POLICY = Policy("resource-limits", ResourceLimits, validate=validate, category="capacity", needs=needs)
