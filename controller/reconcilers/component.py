"""One component of AppStack or EcommercePlatform: its step, and its deletion when disabled."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from config.api.meta import Condition
from config.service_order import title_of
from controller.reconcilers.dumps import DumpState
from controller.reconcilers.tiers import Tier
from controller.runtime.plan import Delete, Observed, Problem, Reference, Step, Write
from kube.resource import Resource

ChildKey = tuple[Resource, str]


class ComponentsParent(NamedTuple):
    """The parent of the components, with its observed children."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    tier: Tier
    observed: Observed
    conditions: Sequence[Condition] | None  # of its status
    now: datetime
    is_deleting: bool

    def child_name(self, component: str) -> str:
        """Return the name of a component's children."""
        return f"{self.name}-{component}"

    def child_labels(self, component: str) -> dict[str, str]:
        """Return the labels of a component's children, without those of selectors."""
        return {**self.labels, "app.kubernetes.io/component": component}

    def url(self, scheme: str, component: str, port: int) -> str:
        """Return the URL of a component's Service."""
        return f"{scheme}://{self.child_name(component)}.{self.namespace}.svc:{port}"


class Component(NamedTuple):
    """One component of the parent: its writes and its readiness."""

    name: str
    writes: Sequence[Write] = ()
    ready: bool = True
    note: str | Problem = ""
    url: str = ""
    enabled: bool = True
    problem: Problem | None = None  # only a change of the spec solves it
    is_failed: bool = False  # its own status reports a final failure
    doing: str = "deployment failed"
    finalized: bool = True  # whether its deletion is complete
    dumps: DumpState = DumpState()
    conditions: Sequence[Condition] = ()  # besides that of its readiness

    def step(self, needs: Iterable["Component"] = ()) -> Step:
        """Return the step that creates it once the components that it needs are ready."""
        needed = [each for each in needs if each.enabled]
        unmet = [each.name for each in needed if not each.ready]
        waiting = f"waiting for {', '.join(unmet)}" if unmet and not self.ready else ""
        return Step(
            self.name,
            self.writes,
            depends_on=[each.name for each in needed],
            ready=self.ready,
            doing=f"{self.title} {self.doing}",
            condition=f"{self.title}Ready" if self.enabled else "",
            note=self.note or waiting,
        )

    def with_problem(self, problem: Problem) -> "Component":
        """Return it as not ready, for a problem that only a change of the spec solves."""
        whole = Problem(f"{self.title} {self.doing}: {problem.message}", problem.reason)
        return self._replace(ready=False, note=problem, problem=whole)

    @property
    def title(self) -> str:
        """Its name in conditions."""
        return title_of(self.name)


def without(parent: ComponentsParent, name: str, places: Iterable[ChildKey]) -> Component:
    """Return a disabled component, whose existing children are deleted."""
    return Component(name, delete_existing(parent, places), enabled=False)


def delete_existing(parent: ComponentsParent, places: Iterable[ChildKey]) -> list[Write]:
    """Return the deletions of the children that exist at these places."""
    observed = (
        (resource, name, parent.observed.child(resource, name)) for resource, name in places
    )
    return [
        Delete(Reference(resource, name, child["metadata"]["uid"], parent.namespace))
        for resource, name, child in observed
        if child is not None
    ]
