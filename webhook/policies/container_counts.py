"""A pod has at most the allowed number of containers.

Why: the containers of a pod are scheduled, scaled and evicted together; a pod with a dozen
containers is several applications that cannot be scaled separately.

Allowed: ten containers and ten init containers.
Denied:  eleven of either.
Fix: move containers into pods of their own.
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations


class ContainerCounts(Params):
    """How many containers a pod may have."""

    containers: int = Field(10, ge=1, description="highest number of containers")
    init: int = Field(
        10, ge=0, description="highest number of init containers, sidecars among them"
    )


def validate(request: Request, params: ContainerCounts) -> Violations:
    """Yield a violation for each list of containers that is too long."""
    pod = request.pod()
    if pod is None:
        return
    lists = [container.list for container in request.containers()]
    for field, maximum in (("containers", params.containers), ("initContainers", params.init)):
        count = lists.count(field)
        if count > maximum:
            rule, fix = f"a pod cannot have more than {maximum}", "move some into pods of their own"
            yield pod.violation(
                field, count, rule, fix, found=f"{count} of them", excess=count - maximum
            )


POLICY = Policy("container-counts", ContainerCounts, validate=validate, category="workloads")
