"""Sets default requests and limits on containers that have none.

Why: the safe setting should be the default, and a default in the pod template is visible to users.

Sets: each of `limits` and `requests` on containers and init containers that do not set that
resource. Values that are set stay, and no default contradicts them: a default limit below the
container's request becomes that request; a container with a limit gets no default request, since
its request is its limit; a resource in the pod-level `spec.resources` gets no defaults. On an
update, only containers whose resources change get defaults, so that an unrelated change starts no
rollout. An existing Pod is never changed. ReplicaSets of a Deployment are not changed, since the
Deployment would no longer recognize them; their pods are.
Fix: nothing to do; set other amounts where the defaults do not fit.
"""

from pydantic import Field, model_validator

from webhook.engine import Params, Patches, Policy, Request
from webhook.policies._records import is_copy
from webhook.policies._resources import Amount, of_containers, of_pod


class ResourceDefaults(Params):
    """The defaults, by resource."""

    limits: dict[str, Amount] = Field({}, description="limits, by resource")
    requests: dict[str, Amount] = Field({}, description="requests, by resource")

    @model_validator(mode="after")
    def _is_possible(self) -> "ResourceDefaults":
        if not self.limits and not self.requests:
            raise ValueError("expected limits or requests")
        for name, requested in self.requests.items():
            if name in self.limits and requested.millis > self.limits[name].millis:
                raise ValueError(f"the request of {name} must not be above its limit")
        return self


def mutate(request: Request, params: ResourceDefaults) -> Patches:
    """Yield a patch for each resource that a container does not set."""
    before = request.before()
    if is_copy(request) or (before is not None and request.resource_kind == "Pod"):
        return
    whole = of_pod(request)
    shared = {} if whole is None else whole.requests
    old = before.containers() if before is not None else ()
    resources_before = {each.path(): each.mapping("resources") for each in old}
    for container in of_containers(request):
        if resources_before.get(container.path()) == container.mapping("resources"):
            continue
        for name, limit in params.limits.items():
            if name not in container.limits and name not in shared:
                own = container.requests.get(name)
                raised = own is not None and own.millis > limit.millis
                yield container.set(("resources", "limits", name), str(own if raised else limit))
        for name, requested in params.requests.items():
            if name not in container.requests and name not in shared:
                yield container.set(("resources", "requests", name), str(requested))


POLICY = Policy("resource-defaults", ResourceDefaults, mutate=mutate, category="capacity")
