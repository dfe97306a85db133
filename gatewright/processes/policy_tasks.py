"""The leader's tasks that depend on the policies in force: statuses, registration and audit."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Never

from config.settings import Settings
from controller.audit.audit import FIGURES, REQUEST, Audit
from controller.registration.configurations import SYSTEM_NAMESPACES
from controller.registration.demands import PolicyId
from controller.registration.enforcement import EnforcementProbe
from controller.registration.enforcement_answers import ENFORCED
from controller.registration.policy_statuses import PolicyStatuses
from controller.registration.refused_policies import REQUEST as REFUSED
from controller.registration.refused_policies import refused_policies
from controller.runtime.controller import Controller
from controller.runtime.leader import Election
from controller.runtime.manager import Manager
from controller.runtime.status import of_type
from controller.runtime.types import ReconcileRequest
from kube.resource import JsonObject, Resource
from kube.watched import AbsentError, WatchedObject
from webhook.engine import BoundPolicy
from webhook.engine.exceptions import changed_names
from webhook.policy_sets.catalogue import catalogue
from webhook.registries.cache import ImageLookUps
from webhook.server.cluster_policies import EXCEPTION, RESOURCES, ObjectId
from webhook.server.engine_in_force import Policies

EXCEPTED = "policy"  # the index of exceptions by the policies that they name
COVERED = ("covers",)  # fields that an audit sets in the status of an exception


class PolicyTasks:
    """Enqueues, in the leader's controllers, the objects that an event affects.

    | event                       | enqueued                                                  |
    |-----------------------------|-----------------------------------------------------------|
    | other policies are in force | the registration, the audit, the exceptions from those     |
    |                             | that changed, and policy objects that cannot be in force  |
    |                             | any more, or can again                                    |
    | an audit has judged         | policy objects and exceptions with other figures          |
    | policies of files or of     | an event about the ConfigMap that is named, or about the  |
    | ConfigMaps are not usable   | Lease                                                     |
    | other policies are widened  | these policy objects, for their condition Narrow          |
    """

    def __init__(
        self,
        settings: Settings,
        manager: Manager,
        policies: Policies,
        home: str,
        excluded_namespaces: Sequence[str],
        images: ImageLookUps,
    ) -> None:
        """Add controllers of policy objects' statuses to `manager`, and the audit if it is on.

        Exceptions from cluster policies are in the namespace `home`. The audit reads `images`.
        """
        self.policies = policies
        self._caches = {each: manager.caches.of(each, optional=True) for each in RESOURCES}
        self._caches[EXCEPTION].add_index(EXCEPTED, _excepted_policies)
        self._are_in_force = False
        self._figures: dict[ObjectId, Any] | None = None  # of the last audit
        self._problems = set[ObjectId]()
        self._widened = set[ObjectId]()
        self._statuses = {each: self._status_controller(each, manager, home) for each in RESOURCES}
        self._audit: Audit | None = None
        self.enforcement: EnforcementProbe | None = None
        self._after_policies: list[tuple[Controller, ReconcileRequest]] = []
        self._refused = refused_policies(
            partial(carriers, policies.config_maps, manager.election),
            lambda: policies.refused,
            manager.recorder,
            manager.metrics,
        )
        manager.add(self._refused)
        if settings.audit:
            self._audit = Audit(
                manager.client,
                lambda: policies.engine,
                manager.metrics.registry,
                interval=settings.audit_interval,
                qps=settings.audit_qps,
                format=settings.audit_reports,
                namespaces=settings.namespaces,
                excluded_namespaces=[*SYSTEM_NAMESPACES, *excluded_namespaces],
                kubernetes=settings.kubernetes_policies,
                images=images,
                on_judged=self._on_audit_judged,
            )
            audit_controller = self._audit.controller(manager.metrics, manager.caches)
            manager.add(audit_controller)
            self.add(audit_controller, REQUEST)

    def add(self, controller: Controller, request: ReconcileRequest) -> None:
        """Enqueue a request whenever the policies in force change."""
        self._after_policies.append((controller, request))

    async def run(self) -> Never:
        """Keep the policies in force up to date, forever."""
        await self.policies.follow(self._on_new_policies, self._on_refused_policies)

    def _status_controller(self, resource: Resource, manager: Manager, home: str) -> Controller:
        statuses = PolicyStatuses(
            manager.client,
            self._caches[resource],
            catalogue(),
            self._policies_in_force,
            home,
            refusal=partial(self.policies.refusal, resource),
            is_compiled=lambda key, uid, generation: self.policies.objects.has_compiled(
                (resource, key), uid, generation
            ),
            audited=partial(self._audit_status, resource),
            is_widened=lambda key: (resource, key) in self._widened,
            enforced=partial(self._enforced_condition, resource),
        )
        controller = statuses.controller(manager.metrics)
        manager.add(controller)
        return controller

    def _policies_in_force(self) -> Sequence[BoundPolicy] | None:
        return None if self.policies.engine is None else self.policies.engine.policies

    def _on_new_policies(self) -> None:
        problems, cache = self.policies.problems(), self._caches[EXCEPTION]
        if self._are_in_force:
            names = changed_names(*self.policies.changes)
            affected = {key for name in names for key in cache.index(EXCEPTED, name)}
        else:
            affected, self._are_in_force = set(cache), True
        exceptions = {(EXCEPTION, key) for key in affected}
        self._enqueue_statuses(exceptions | (self._problems ^ problems))
        self._problems = problems
        for controller, request in self._after_policies:
            controller.add(request)

    def _on_refused_policies(self) -> None:
        self._refused.add(REFUSED)

    def on_widened(self, policies: Iterable[PolicyId]) -> None:
        """Report policies for which requests are sent from more namespaces than they select."""
        cluster, tenants, _ = RESOURCES
        widened = {
            (cluster, name) if namespace is None else (tenants, f"{namespace}/{name}")
            for namespace, name in policies
        }
        changed = {
            (resource, key)
            for resource, key in widened ^ self._widened
            if key in self._caches[resource]
        }
        self._widened = widened
        self._enqueue_statuses(changed)

    def on_measured(self, titles: Iterable[str]) -> None:
        """Report the policies whose measured enforcement changed."""
        cluster, tenants, _ = RESOURCES
        measured = [(tenants if "/" in title else cluster, title) for title in titles]
        self._enqueue_statuses(each for each in measured if each[1] in self._caches[each[0]])

    def _enforced_condition(
        self, resource: Resource, key: str, status: Mapping[str, Any]
    ) -> JsonObject | None:
        """Return the condition Enforced: as measured, or before that the object's present one."""
        if self.enforcement is None or resource == EXCEPTION:
            return None
        if (enforced := self.enforcement.of(key)) is not None:
            return enforced.condition()
        if not self.enforcement.is_measured(key):
            return None
        kept = of_type(ENFORCED, status.get("conditions") or [])
        fields = ("type", "status", "reason", "message")
        return None if kept is None else {field: kept[field] for field in fields}

    def _on_audit_judged(self) -> None:
        figures: dict[ObjectId, Any] = {
            (resource, key): self._audit_status(resource, key, {})
            for resource, cache in self._caches.items()
            for key in cache
        }
        before = {} if self._figures is None else self._figures
        self._enqueue_statuses(
            id for id, figure in figures.items() if id not in before or before[id] != figure
        )
        self._figures = figures

    def _enqueue_statuses(self, objects: Iterable[ObjectId]) -> None:
        for resource, key in objects:
            self._statuses[resource].add(ReconcileRequest.of(key))

    def _audit_status(
        self, resource: Resource, key: str, status: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return the status fields of a policy object or an exception that an audit sets.

        Before the first audit of this process, these are the object's present values.
        """
        if self._audit is None:
            return {}
        if self._audit.totals is None:
            fields = COVERED if resource == EXCEPTION else FIGURES
            return {field: status[field] for field in fields if field in status}
        if resource == EXCEPTION:
            return {"covers": self._audit.covers[f"PolicyException {key}"]}
        return self._audit.totals.get(key, {})


def carriers(
    config_maps: Sequence[WatchedObject], election: Election | None, message: str
) -> list[tuple[JsonObject, str]]:
    """Return the objects for events about policies without an object of their own.

    Each ConfigMap that lines of the message name, with these lines; otherwise the first ConfigMap,
    or without one the Lease, with the whole message.
    """
    lines = message.splitlines()
    carrying = list[tuple[JsonObject, str]]()
    first = None if election is None or config_maps else election.lease
    for config_map in config_maps:
        stored = _read_config_map(config_map)
        if stored is None:
            continue
        first = first or stored
        own = [line for line in lines if line.startswith(f"{config_map}: ")]
        if own:
            carrying.append((stored, "\n".join(own)))
    if carrying or first is None:
        return carrying
    return [(first, message)]


def _read_config_map(config_map: WatchedObject) -> JsonObject | None:
    try:
        return {**config_map.get(), "apiVersion": "v1", "kind": "ConfigMap"}
    except AbsentError:
        return None


def _excepted_policies(exception: JsonObject) -> list[str]:
    """Return the names of the policies that an exception names."""
    entries = (exception.get("spec") or {}).get("exceptions") or []
    return [str(each.get("policy")) for each in entries]
