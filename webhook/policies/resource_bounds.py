"""Requests and limits are within bounds.

Why: one container should not be able to use a whole node, and a container with too little memory is
killed at its start. Judged: limits and requests of containers and of a pod as a whole
(`spec.resources`). An unset request equals the limit. Other unset amounts are not judged:
`resource-limits` and `resource-requests` require them. With `cpu: {max: 0}` every CPU limit is
denied.

Allowed: `resources: {limits: {cpu: "2"}}` with `limits: {cpu: {max: 2}}`; the bounds themselves are
allowed.
Denied:  `resources: {limits: {cpu: 2001m}}`.
Fix: stay within the bounds, or ask for an exception.
"""

from pydantic import Field, model_validator

from config.quantities import Quantity
from webhook.engine import Params, Policy, Request, Violations
from webhook.policies._resources import Amount, Completed, needs, of_all, violation


class Bounds(Params):
    """The lowest and the highest amount of a resource."""

    min: Amount | None = Field(None, description="smallest amount")
    max: Amount | None = Field(None, description="largest amount")

    @model_validator(mode="after")
    def _is_possible(self) -> "Bounds":
        if self.min is None and self.max is None:
            raise ValueError("expected min or max")
        if self.min is not None and self.max is not None and self.min.millis > self.max.millis:
            raise ValueError("min must not be above max")
        return self

    def fault(self, amount: Quantity) -> tuple[str, str, int] | None:
        """Return the bound that an amount violates, the fix, and the excess.

        None if within bounds.
        """
        low, high = self.min, self.max
        if low is not None and amount.millis < low.millis:
            return f"at least {low}", f"raise it to {low} or more", low.millis - amount.millis
        if high is not None and amount.millis > high.millis:
            return f"at most {high}", f"lower it to {high} or less", amount.millis - high.millis
        return None


class ResourceBounds(Completed):
    """Bounds by resource."""

    limits: dict[str, Bounds] = Field({}, description="bounds of limits, by resource")
    requests: dict[str, Bounds] = Field({}, description="bounds of requests, by resource")

    @model_validator(mode="after")
    def _says_something(self) -> "ResourceBounds":
        if not self.limits and not self.requests:
            raise ValueError("expected bounds of limits or of requests")
        return self


def validate(request: Request, params: ResourceBounds) -> Violations:
    """Yield one violation for each amount out of bounds."""
    for resources in of_all(request, limit_ranges=params.limit_ranges):
        for part, by_resource in (("limits", params.limits), ("requests", params.requests)):
            for resource, bounds in by_resource.items():
                amount = getattr(resources, part).get(resource)
                if amount is not None and (fault := bounds.fault(amount)):
                    bound, fix, excess = fault
                    rule = f"{part} of {resource} must be {bound}"
                    yield violation(resources, part, resource, amount.text, rule, fix, excess)


POLICY = Policy(
    "resource-bounds", ResourceBounds, validate=validate, category="capacity", needs=needs
)
