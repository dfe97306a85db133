"""Containers that say nothing of their resources get sensible ones.

Why: the safe setting should be the one that needs no typing, and a default in the template is one that people can see.

Sets: each of `limits` and `requests` where a container, init containers included, says nothing of that resource. What
is said stays, and is never contradicted: a limit that would be below the container's request becomes that request; a
container with a limit gets no other request, since its request is its limit; resources that the pod has as a whole
(`spec.resources`) are left for its containers to share. An update gets defaults only for containers whose resources it
changes, so that no rollout comes from an edit of something else; those of a Pod that exists cannot be changed.
Fix: nothing to do; say other amounts where the defaults do not fit.
"""

from collections.abc import Iterator

from pydantic import Field, model_validator

from webhook.engine import Fields, Params, Patch, Policy, Request
from webhook.engine.resources import Amount, amount, of_containers, of_pod


class ResourceDefaults(Params):
    """What is set where nothing is said."""

    limits: dict[str, Amount] = Field({}, description="limits, by resource")
    requests: dict[str, Amount] = Field({}, description="requests, by resource")

    @model_validator(mode="after")
    def _is_possible(self) -> "ResourceDefaults":
        if not self.limits and not self.requests:
            raise ValueError("expected limits or requests")
        for name, asked in self.requests.items():
            if name in self.limits and amount(asked).value > amount(self.limits[name]).value:
                raise ValueError(f"the request of {name} must not be above its limit")
        return self


def mutate(request: Request, params: ResourceDefaults) -> Iterator[Patch]:
    """Yield a patch for each resource that is not spoken of."""
    before = request.before()
    if before is not None and request.resource_kind == "Pod":
        return
    whole = of_pod(request)
    shared = whole.requests if whole is not None else {}
    known = {each.path(): each.mapping("resources") for each in before.containers()} if before is not None else {}
    for each in of_containers(request):
        container = each.owner
        if known.get(container.path()) == container.mapping("resources"):
            continue
        for name, limit in params.limits.items():
            if name not in each.limits and name not in shared:
                own = each.requests.get(name)
                raised = own is not None and own.value > amount(limit).value
                yield _patch(container, "limits", name, own if raised else limit)
        for name, asked in params.requests.items():
            if name not in each.requests and name not in shared:
                yield _patch(container, "requests", name, asked)


def _patch(container: Fields, part: str, name: str, value: object) -> Patch:
    return container.set(("resources", part, name), str(value))


POLICY = Policy("resource-defaults", ResourceDefaults, mutate=mutate, kinds="pods", category="capacity")
