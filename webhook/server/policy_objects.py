"""The policy objects of the cluster: the last good version of each, however many bad ones follow.

An object that conflicts with what is in force already is not good either; it is tried again when others change.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping

from config.api.policy import AdmissionPolicy, ClusterAdmissionPolicy, PolicyException
from config.faults import FaultsError
from kube.resource import Resource
from kube.store import Change, Entry
from webhook.engine import BoundPolicy
from webhook.engine.conflicts import ConflictingPoliciesError
from webhook.engine.exceptions import BoundException
from webhook.engine.policy_set import Catalogue, PolicySet, bind, document_of
from webhook.server.metrics import Metrics

RESOURCES = tuple(
    Resource(about.group, about.version, about.plural, about.kind, about.namespaced)
    for about in (kind.definition for kind in (ClusterAdmissionPolicy, AdmissionPolicy, PolicyException))
)

EXCEPTION = RESOURCES[2]
Id = tuple[Resource, str]

log = logging.getLogger("gatewright.webhook.policies")


class PolicyObjects:
    """Policies and exceptions from watches of RESOURCES, by kind and key."""

    def __init__(self, catalogue: Catalogue, metrics: Metrics) -> None:
        """Take the policies that objects can name.

        `changed` is called after each change; `check` raises ConflictingPoliciesError for a set with conflicts.
        """
        self._catalogue = catalogue
        self._metrics = metrics
        self._changes: deque[tuple[Id, Entry | None]] = deque()
        self._good: dict[Id, BoundPolicy | BoundException] = {}
        self._conflicting: dict[Id, Entry] = {}
        self.problems: dict[Id, str] = {}
        """What is wrong with those whose newest version is not in force."""
        self.changed: Callable[[], None] = lambda: None
        self.check: Callable[[PolicySet], object] = lambda policies: None

    def compile(self) -> PolicySet:
        """Compile what has changed, and return all that is good, by kind and name.

        It may take seconds, so it is called beside the event loop, and by one caller at a time.
        """
        newest: dict[Id, Entry | None] = {}
        while self._changes:
            id, entry = self._changes.popleft()
            newest.pop(id, None)
            newest[id] = entry
        if newest:  # those with conflicts may fit now
            newest |= {id: entry for id, entry in self._conflicting.items() if id not in newest}
        for id, entry in newest.items():
            self._conflicting.pop(id, None)
            if entry is None:
                self._good.pop(id, None)
                self.problems.pop(id, None)
                self._metrics.forget_generation(id[0].kind, id[1])
            else:
                self._take(id, entry)
        return _policy_set(self._good)

    def conflict(self, resource: Resource, key: str) -> str | None:
        """Say why an object that is good by itself is not in force beside the others, or None."""
        return self.problems.get((resource, key)) if (resource, key) in self._conflicting else None

    def subscriber(self, resource: Resource) -> Callable[[Change], None]:
        """Return what a watch of `resource` calls with each change; a change of the status alone is ignored."""

        def on_change(change: Change) -> None:
            if change.old and change.new and change.old.generation == change.new.generation:
                return
            self._changes.append(((resource, change.key), change.new))
            self.changed()

        return on_change

    def _take(self, id: Id, entry: Entry) -> None:
        resource, key = id
        try:
            made = bind(document_of(entry.object), self._catalogue)
            if isinstance(made, BoundPolicy) and made.policy.mutate is not None:
                self.check(_policy_set(self._good | {id: made}))
        except (FaultsError, ConflictingPoliciesError) as error:
            if isinstance(error, ConflictingPoliciesError):
                self._conflicting[id] = entry
            if self.problems.get(id) != str(error):
                kept = "its last good version stays in force" if id in self._good else "it is not in force"
                log.warning("%s %s cannot be used, %s: %s", resource.kind, key, kept, error)
            self.problems[id] = str(error)
        else:
            self._good[id] = made
            self.problems.pop(id, None)
            self._metrics.policy_generation.labels(resource.kind, key).set(entry.generation)


def _policy_set(objects: Mapping[Id, BoundPolicy | BoundException]) -> PolicySet:
    good = [each for _, each in sorted(objects.items(), key=_order)]
    return PolicySet(
        tuple(each for each in good if isinstance(each, BoundPolicy)),
        tuple(each for each in good if isinstance(each, BoundException)),
    )


def _order(item: tuple[Id, object]) -> tuple[int, str]:
    (resource, key), _ = item
    return RESOURCES.index(resource), key
