"""The policy objects of the cluster: the last valid version of each stays in force.

An object that conflicts with the policies in force counts as invalid, as does a tenant's policy or
exception that exceeds the size limit of its namespace, or of all tenants; both are tried again when
others change.
"""

import hashlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from config.api.policy import AdmissionPolicy, ClusterAdmissionPolicy
from config.api.policy_exception import PolicyException
from config.faults import FaultsError
from kube.resource import JsonObject, Resource
from kube.store import Change, Entry, Store
from webhook.engine import BoundPolicy
from webhook.engine.conflicts import ConflictingPoliciesError
from webhook.engine.exceptions import BoundException
from webhook.policy_sets.bound_objects import (
    MAX_POLICY_BYTES,
    MAX_TENANTS_BYTES,
    Catalogue,
    bind,
    document_of,
    size_of,
)
from webhook.policy_sets.policy_set import FailedCasesError, PolicySet, find_replaced
from webhook.server.metrics import WebhookMetrics
from webhook.server.ordered import Ordered

RESOURCES = tuple(
    kind.definition.resource for kind in (ClusterAdmissionPolicy, AdmissionPolicy, PolicyException)
)

CLUSTER_POLICY, TENANTS, EXCEPTION = RESOURCES
CASE_FAILED = "CaseFailed"  # the reason if a case that policies carry fails
KIND_ORDER = {each.kind: index for index, each in enumerate(RESOURCES)}
ObjectId = tuple[Resource, str]

log = logging.getLogger("gatewright.webhook.policies")


class WhyNotInForce(NamedTuple):
    """Why a valid object is not in force: the reason of its condition Ready, and the message."""

    reason: str
    message: str


class NoRoomError(ConflictingPoliciesError):
    """The objects of tenants exceed their total size: judging by them would be too slow.

    `size` is that of the object, in bytes.
    """

    def __init__(self, message: str, size: int) -> None:
        """Take the message for the status."""
        super().__init__(message)
        self.size = size


class PolicyObjects:
    """Policies and exceptions from stores of RESOURCES, by kind and key."""

    def __init__(
        self,
        stores: Iterable[Store],
        catalogue: Catalogue,
        metrics: WebhookMetrics,
        home: str | None = None,
        prove: Callable[[JsonObject], None] = lambda stored: None,
    ) -> None:
        """Take the stores of the objects, and the catalogue of built-in policies.

        Exceptions in the namespace `home` are not those of a tenant. `prove` runs the cases of a
        stored object, and raises FailedCasesError.
        """
        self._prove = prove
        self._home = home
        self._stores = tuple(stores)
        self._by_resource = {each.resource: each for each in self._stores}
        # Ids of objects that changed; the event loop appends, the thread of `compile` takes.
        self._touched = deque[ObjectId](
            (store.resource, key) for store in self._stores for key in store.entries()
        )
        for store in self._stores:
            store.subscribers.append(partial(self._on_change, store.resource))
        self._catalogue = catalogue
        self._metrics = metrics
        # uid and generation of the compiled objects, valid or not
        self._versions: dict[ObjectId, tuple[str, int]] = {}
        self._good: dict[ObjectId, BoundPolicy | BoundException] = {}
        self._good_versions: dict[ObjectId, tuple[str, int]] = {}
        # The valid ones in order, and the kind and key of each.
        self._policies, self._exceptions = Ordered[BoundPolicy](), Ordered[BoundException]()
        # Those that may replace a policy in force by itself.
        self._replacing: dict[ObjectId, BoundPolicy] = {}
        self._version = 0  # the sum of the hashes of the versions in force
        self._sizes = Counter[str]()  # bytes of the tenants' valid objects, by namespace
        self.problems: dict[ObjectId, Exception] = {}
        """Errors of the objects whose newest version is not in force."""
        self.changed_verdicts: dict[ObjectId, FailedCasesError] = {}
        """Failed cases of objects that are in force by their status: an earlier version of
        Gatewright judged these cases as they expect."""
        self._compiled: dict[ObjectId, tuple[str, int]] = {}

    @property
    def are_known(self) -> bool:
        """Whether all objects were listed, or their CRDs are not installed."""
        return all(store.known.is_set() for store in self._stores)

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call `callback` after each change of an object."""
        for store in self._stores:
            store.subscribers.append(lambda _: callback())

    def _on_change(self, resource: Resource, change: Change) -> None:
        self._touched.append((resource, change.key))

    def compile(self, check: Callable[[BoundPolicy, PolicySet], None]) -> bool:
        """Compile the objects that changed, except in status; return whether any did.

        `check` raises ConflictingPoliciesError for a policy that conflicts with a set. It may take
        seconds, so this runs in a thread, with one caller at a time.
        """
        stored = self._take_changes()
        for id in (id for id, entry in stored.items() if entry is None):
            for table in (self._versions, self._compiled, self.problems, self.changed_verdicts):
                table.pop(id, None)
            if self._replace(id, None):
                self._metrics.policy_generation.remove(id[0].kind, id[1])
        # Of two in conflict the older one is in force, also in a replica that starts later.
        newest = {id: entry for id, entry in stored.items() if entry is not None}
        for id, entry in sorted(newest.items(), key=lambda each: _seniority(*each)):
            self._put_in_force(id, entry, check)
        for id in self._possible_now(stored):
            if (stored_entry := self._by_resource[id[0]].entry(id[1])) is not None:
                self._put_in_force(id, stored_entry, check)
        return bool(stored)

    def _take_changes(self) -> dict[ObjectId, Entry | None]:
        """Return the objects that changed, except in status, since the last call; None: deleted."""
        newest: dict[ObjectId, Entry | None] = {}
        for _ in range(len(self._touched)):
            id = self._touched.popleft()
            entry = self._by_resource[id[0]].entry(id[1])
            version = None if entry is None else (entry.uid, entry.generation)
            if self._versions.get(id) != version:
                newest[id] = entry
                if version is not None:
                    self._versions[id] = version
        return newest

    def in_force(self, new: ObjectId | None = None, bound: BoundPolicy | None = None) -> PolicySet:
        """Return all valid objects, by kind and name; a `new` one replaces its old version."""
        policies, replacing = self._policies.values, self._replacing
        if new is not None and bound is not None:
            policies = (*self._policies.without(_place(new)), bound)
            replacing = {**replacing, new: bound}
        return PolicySet(policies, self._exceptions.values, find_replaced(replacing.values()))

    def has(self, policy: BoundPolicy) -> bool:
        """Return whether a valid object has the name of a policy, and replaces it."""
        kind = CLUSTER_POLICY if policy.namespace is None else TENANTS
        return (kind, policy.title) in self._good

    @property
    def version(self) -> bytes:
        """The identity of all versions in force, in whatever order they came into force."""
        return (self._version % 2**256).to_bytes(32)

    def has_compiled(self, id: ObjectId, uid: str, generation: int) -> bool:
        """Return whether this version of an object has been compiled, and its cases run."""
        return self._compiled.get(id) == (uid, generation)

    def refusal(self, id: ObjectId) -> WhyNotInForce | None:
        """Return why an object is not in force although it is valid by itself, or None."""
        problem = self.problems.get(id)
        if isinstance(problem, ConflictingPoliciesError):
            return WhyNotInForce("Conflict", str(problem))
        if isinstance(problem, FailedCasesError) and id not in self.changed_verdicts:
            return WhyNotInForce(CASE_FAILED, str(problem))
        return None

    def _possible_now(self, changed: Collection[ObjectId]) -> list[ObjectId]:
        """Return the objects with a conflict that may be gone, since others changed."""
        possible = []
        for id, problem in self.problems.items():
            if not isinstance(problem, ConflictingPoliciesError) or id in changed:
                continue
            if not isinstance(problem, NoRoomError) or self._has_room(id, problem.size):
                possible.append(id)
        return possible

    def _put_in_force(
        self, id: ObjectId, entry: Entry, check: Callable[[BoundPolicy, PolicySet], None]
    ) -> None:
        """Put an object in force if it is valid, else store its error."""
        resource, key = id
        document = document_of(entry.object)
        try:
            self._check_room(id, document)
            bound = bind(document, self._catalogue, stored=True)
            if isinstance(bound, BoundPolicy) and bound.policy.mutate is not None:
                check(bound, self.in_force(id, bound))
            self._prove(entry.object)
        except (FaultsError, ConflictingPoliciesError, FailedCasesError) as error:
            if str(self.problems.get(id)) != str(error):
                kept = (
                    "its last good version stays in force"
                    if id in self._good
                    else "it is not in force"
                )
                log.warning("%s %s cannot be used, %s: %s", resource.kind, key, kept, error)
            self.problems[id] = error.with_traceback(None)
            is_new = id not in self._good and id not in self._compiled
            if is_new and isinstance(error, FailedCasesError) and _is_in_force(entry):
                self.changed_verdicts[id] = error
            else:
                self.changed_verdicts.pop(id, None)
            self._compiled[id] = entry.uid, entry.generation
            return
        self.changed_verdicts.pop(id, None)
        self._replace(id, bound)
        self._good_versions[id] = self._compiled[id] = entry.uid, entry.generation
        self._version += _hash(id, self._good_versions[id])
        self.problems.pop(id, None)
        self._metrics.policy_generation.labels(resource.kind, key).set(entry.generation)

    def _check_room(self, id: ObjectId, document: Mapping[str, Any]) -> None:
        """Reject a tenant's object that exceeds the size limit of its namespace, or of all."""
        namespace = self._tenant(id)
        if namespace is None:
            return
        size, old = size_of(document), self._good.get(id)
        more = size - (old.size if old is not None else 0)
        own = self._sizes[namespace] + more
        if own > MAX_POLICY_BYTES:
            text = (
                f"the AdmissionPolicies and PolicyExceptions of namespace {namespace} would have "
                f"{own:,} bytes together; at most {MAX_POLICY_BYTES:,} are in force"
            )
            raise NoRoomError(text, size)
        everything = self._sizes.total() + more
        if everything > MAX_TENANTS_BYTES:
            text = (
                "the AdmissionPolicies and PolicyExceptions of all namespaces would have "
                f"{everything:,} bytes together; at most {MAX_TENANTS_BYTES:,} are in force"
            )
            raise NoRoomError(text, size)

    def _has_room(self, id: ObjectId, size: int) -> bool:
        """Return whether an object that had no room would have it now."""
        namespace = self._tenant(id) or ""
        is_small = self._sizes[namespace] + size <= MAX_POLICY_BYTES
        return id in self._good or (is_small and self._sizes.total() + size <= MAX_TENANTS_BYTES)

    def _tenant(self, id: ObjectId) -> str | None:
        """Return the namespace whose limit an object counts for, if it is a tenant's."""
        namespace = id[1].partition("/")[0]
        is_tenants = id[0] == TENANTS or (id[0] == EXCEPTION and namespace != self._home)
        return namespace if is_tenants else None

    def _replace(self, id: ObjectId, bound: BoundPolicy | BoundException | None) -> bool:
        """Replace the last valid version of an object, or remove it.

        Return whether there was one.
        """
        old = self._good.pop(id, None)
        if old is not None:
            self._version -= _hash(id, self._good_versions.pop(id))
        if bound is not None:
            self._good[id] = bound
        self._replacing.pop(id, None)
        if isinstance(bound, BoundPolicy) and bound.policy.always:
            self._replacing[id] = bound
        if id[0] == EXCEPTION:
            self._exceptions.put(_place(id), bound if isinstance(bound, BoundException) else None)
        else:
            self._policies.put(_place(id), bound if isinstance(bound, BoundPolicy) else None)
        for policy, sign in ((old, -1), (bound, 1)):
            if policy is not None and (namespace := self._tenant(id)) is not None:
                self._sizes[namespace] += sign * policy.size
        return old is not None


def _is_in_force(entry: Entry) -> bool:
    """Return whether the status says that this generation of an object is in force."""
    object = entry.object
    status = object.get("status") or {}
    return status.get("observedGeneration") == entry.generation and any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )


def _place(id: ObjectId) -> tuple[int, str]:
    return KIND_ORDER[id[0].kind], id[1]


def _seniority(id: ObjectId, entry: Entry) -> tuple[int, str, str]:
    created: str = entry.object["metadata"]["creationTimestamp"]
    return KIND_ORDER[id[0].kind], created, id[1]


def _hash(id: ObjectId, version: tuple[str, int]) -> int:
    text = f"{id[0].kind}/{id[1]}/{version[0]}/{version[1]}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest())
