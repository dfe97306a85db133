"""The reconciler of the condition Ready of policy objects and exceptions: in force or not."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from config.api.policy import AdmissionPolicySpec
from config.faults import FaultsError
from controller.runtime.apply import FIELD_MANAGER
from controller.runtime.cache import Cache
from controller.runtime.controller import Controller
from controller.runtime.metrics import ControllerMetrics
from controller.runtime.sources import itself, spec_changed
from controller.runtime.status import READY, condition, date_conditions, rfc3339
from controller.runtime.types import ReconcileRequest, Result
from kube.client import Client
from kube.resource import JsonObject
from webhook.engine import BoundPolicy
from webhook.engine.exceptions import BoundException, check_exception
from webhook.policy_sets.bound_objects import Catalogue, bind, document_of
from webhook.policy_sets.kind_names import (
    custom_versions,
    is_custom,
    named_kinds,
    why_unserved,
)

IN_FORCE = "InForce"
NARROW = "Narrow"
WIDENED = (
    "requests from more namespaces than it selects reach the webhook, and are denied while no "
    "webhook answers: the policies in force select namespaces by more different labels than "
    "webhooks can express. Select them by name, or by values of one label"
)
# Between two looks whether a kind that a policy names is served by now.
LOOK_FOR_APIS = timedelta(minutes=1)
# Between two looks whether the cases of a policy object have been run.
LOOK_FOR_CASES = timedelta(milliseconds=200)

ReportedStatus = tuple[JsonObject, timedelta | None]


class PolicyStatuses:
    """The reconciler of one kind of policy object.

    It compiles objects with the code of the webhook.
    """

    def __init__(
        self,
        client: Client,
        cache: Cache,
        catalogue: Catalogue,
        policies: Callable[[], Sequence[BoundPolicy] | None],
        home: str,
        *,
        refusal: Callable[[str], tuple[str, str] | None] = lambda key: None,
        is_compiled: Callable[[str, str, int], bool] = lambda key, uid, generation: True,
        audited: Callable[[str, JsonObject], Mapping[str, Any]] = lambda key, status: {},
        is_widened: Callable[[str], bool] = lambda key: False,
        enforced: Callable[[str, JsonObject], JsonObject | None] = lambda key, status: None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Take a function that returns the policies in force, or None until all have been read.

        Exceptions from cluster policies are in the namespace `home`. `refusal` returns
        reason and message why the valid object with a key is not in force, or None. `is_compiled`
        returns whether this process has compiled a version of it: the status of an object with
        cases waits for that. `audited` returns the status
        fields that the last audit sets, from the object's key and current status. `is_widened`
        returns whether requests from more namespaces than the object selects are sent for it.
        `enforced` returns the condition Enforced, or None, from the object's key and current
        status.
        """
        self._client = client
        self._cache = cache
        self._catalogue = catalogue
        self._policies = policies
        self._home = home
        self._refusal = refusal
        self._is_compiled = is_compiled
        self._audited = audited
        self._is_widened = is_widened
        self._enforced = enforced
        self._now = now

    def controller(self, metrics: ControllerMetrics) -> Controller:
        """Return the controller that runs it."""
        controller = Controller(
            self._cache.resource.kind.lower(), reconcile=self.reconcile, metrics=metrics, workers=1
        )
        controller.watch(self._cache, itself, spec_changed, primary=True)
        return controller

    async def reconcile(self, request: ReconcileRequest) -> Result:
        """Write the status if it differs."""
        stored, now = self._cache.get(request.key), self._now()
        if stored is not None and self._awaits_cases(request.key, stored):
            return Result(requeue_after=LOOK_FOR_CASES)
        judged = (
            None
            if stored is None
            else await asyncio.to_thread(self.report_status, request.key, stored, now)
        )
        if stored is None or judged is None:
            return Result()
        ready, look_again = judged
        if (
            ready["reason"] == IN_FORCE
            and (unserved := await self._unserved_condition(stored)) is not None
        ):
            ready, look_again = unserved, LOOK_FOR_APIS
        is_valid = ready["reason"] == IN_FORCE
        versions = custom_versions(stored["spec"]) if is_valid else []
        custom = await self._client.schemas(versions)
        generation = stored["metadata"]["generation"]
        old = stored.get("status") or {}
        conditions = [ready]
        if ready["reason"] == IN_FORCE and self._is_widened(request.key):
            conditions.append(condition(NARROW, False, "Widened", WIDENED))
        if (enforced := self._enforced(request.key, old)) is not None:
            conditions.append(enforced)
        new = {
            "observedGeneration": generation,
            "conditions": date_conditions(
                conditions, old.get("conditions") or [], generation=generation, now=now
            ),
            **_actions(stored["spec"]),
            **await asyncio.to_thread(self._type_checking, stored, custom),
            **self._audited(request.key, old),
        }
        if new != old:
            named = {
                "name": request.name,
                "namespace": request.namespace,
                "uid": stored["metadata"]["uid"],
            }
            metadata = {key: value for key, value in named.items() if value is not None}
            await self._client.apply(
                self._cache.resource,
                {"metadata": metadata, "status": new},
                field_manager=FIELD_MANAGER,
                force=True,
                subresource="status",
            )
        return Result(requeue_after=look_again)

    def _awaits_cases(self, key: str, stored: JsonObject) -> bool:
        """Return whether the cases of an object have not been run yet."""
        metadata, has_cases = stored["metadata"], bool(stored["spec"].get("cases"))
        return has_cases and not self._is_compiled(key, metadata["uid"], metadata["generation"])

    def report_status(self, key: str, stored: JsonObject, now: datetime) -> ReportedStatus | None:
        """Return the condition Ready of an object, and after how long it changes by itself.

        None for an exception before policies are in force; their arrival enqueues it again.
        """
        try:
            bound = bind(document_of(stored), self._catalogue, stored=True)
            if (refusal := self._refusal(key)) is not None:
                return condition(READY, False, *refusal), None
            if isinstance(bound, BoundException):
                policies = self._policies()
                return None if policies is None else self._judged_exception(bound, policies, now)
        except FaultsError as error:
            return condition(READY, False, "Invalid", str(error)), None
        return condition(READY, True, IN_FORCE), None

    def _type_checking(self, stored: JsonObject, custom: Sequence[JsonObject]) -> JsonObject:
        """Return the status field with the type errors of CEL rules; empty if there are none.

        `custom` are OpenAPI schemas of custom kinds.
        """
        try:
            bound = bind(document_of(stored), self._catalogue, stored=True)
        except FaultsError:
            return {}  # the condition Ready has the faults
        if not isinstance(bound, BoundPolicy) or not bound.evaluates:
            return {}
        # Imported here: most policy objects need no CEL.
        from config.schemas import CustomTypes
        from webhook.policy_sets.rule_types import check_types

        spec = AdmissionPolicySpec.model_validate(stored["spec"])
        warnings = [
            {"fieldRef": fault.path, "warning": f"{fault.text}; {fault.checked_kinds}"}
            for fault in check_types(spec, bound.policy.targets, CustomTypes.of_openapi(custom))
        ]
        return {"typeChecking": {"expressionWarnings": warnings}} if warnings else {}

    async def _unserved_condition(self, stored: JsonObject) -> JsonObject | None:
        """Return the condition Ready of a policy that names custom kinds that no API serves.

        It is in force if it judges another kind. None if all are served.
        """
        named = named_kinds(stored["spec"])
        custom = {word: kinds for word, kinds in named.items() if is_custom(kinds)}
        if not custom:
            return None
        served = await self._client.resources()
        in_a_namespace = self._cache.resource.namespaced
        faults = [
            fault
            for word, kinds in custom.items()
            if (fault := why_unserved(word, kinds, served, in_a_namespace=in_a_namespace))
        ]
        if not faults:
            return None
        judges_any = len(faults) < len(named)
        reason = IN_FORCE if judges_any else "NotServed"
        return condition(READY, judges_any, reason, "\n".join(faults))

    def _judged_exception(
        self, exception: BoundException, policies: Sequence[BoundPolicy], now: datetime
    ) -> ReportedStatus:
        if now >= exception.spec.expires:
            message = (
                f"it expired at {rfc3339(exception.spec.expires)}. Delete it, or set a later "
                "spec.expires"
            )
            return condition(READY, False, "Expired", message), None
        check_exception(exception, policies, self._home)
        return condition(READY, True, IN_FORCE), exception.spec.expires - now


def _actions(spec: JsonObject) -> JsonObject:
    """Return the actions of a policy object as kubectl lists them; exceptions have none."""
    actions = spec.get("validationActions")
    return {"actions": ", ".join(actions)} if actions else {}
