"""The policy objects of the cluster: the last good version of each, however many bad ones follow."""

import logging
from collections.abc import Callable

from config.api.policy import AdmissionPolicy, ClusterAdmissionPolicy, PolicyException
from config.faults import FaultsError
from kube.changes import Change
from kube.resource import Resource
from webhook.engine import BoundPolicy
from webhook.engine.exceptions import BoundException
from webhook.engine.policy_set import Catalogue, PolicySet, bind, document_of
from webhook.server.metrics import Metrics

RESOURCES = tuple(
    Resource(about.group, about.version, about.plural, about.kind, about.namespaced)
    for about in (kind.definition for kind in (ClusterAdmissionPolicy, AdmissionPolicy, PolicyException))
)

log = logging.getLogger("gatewright.webhook.policies")


class PolicyObjects:
    """What watches of RESOURCES brought: policies and exceptions by kind and key."""

    def __init__(self, catalogue: Catalogue, metrics: Metrics) -> None:
        """Know the policies that objects can name; `changed` is called after each change."""
        self._catalogue = catalogue
        self._metrics = metrics
        self._good: dict[tuple[Resource, str], BoundPolicy | BoundException] = {}
        self.changed: Callable[[], None] = lambda: None

    @property
    def policy_set(self) -> PolicySet:
        """What they say, by kind and name."""
        good = [each for _, each in sorted(self._good.items(), key=_order)]
        return PolicySet(
            tuple(each for each in good if isinstance(each, BoundPolicy)),
            tuple(each for each in good if isinstance(each, BoundException)),
        )

    def subscriber(self, resource: Resource) -> Callable[[Change], None]:
        """Return what a watch of `resource` is to call."""

        def on_change(change: Change) -> None:
            if change.new is None:
                self._good.pop((resource, change.key), None)
                self._metrics.forget_generation(resource.kind, change.key)
            else:
                self._take(resource, change.key, change.new.object, change.new.generation)
            self.changed()

        return on_change

    def _take(self, resource: Resource, key: str, object: dict[str, object], generation: int) -> None:
        try:
            self._good[resource, key] = bind(document_of(object), self._catalogue)
        except FaultsError as error:
            kept = "its last good version stays in force" if (resource, key) in self._good else "it is not in force"
            log.warning("%s %s cannot be used, %s: %s", resource.kind, key, kept, error)
        else:
            self._metrics.policy_generation.labels(resource.kind, key).set(generation)


def _order(item: tuple[tuple[Resource, str], object]) -> tuple[int, str]:
    (resource, key), _ = item
    return RESOURCES.index(resource), key
