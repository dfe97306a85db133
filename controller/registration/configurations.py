"""The two webhook configurations, as a pure function of the policies in force."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from controller.registration.calls import Calls, calls_for
from controller.registration.demands import (
    SORTS,
    DemandKey,
    DemandReader,
    PolicyId,
    Sort,
    demands,
    policies_asking,
)
from controller.registration.scope import NamePatterns
from kube.resource import JsonObject, Resource
from webhook.engine import Engine
from webhook.engine.kinds import Kind

VALIDATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
MUTATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)

SYSTEM_NAMESPACES = ("kube-system", "kube-node-lease")
DOMAIN = "gatewright.io"


@dataclass(frozen=True, slots=True)
class Service:
    """The Service in front of the webhook."""

    namespace: str
    name: str
    port: int = 443

    @property
    def url(self) -> str:
        """The URL with the DNS name by which the API server calls it."""
        return f"https://{self.name}.{self.namespace}.svc:{self.port}"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds that the API server waits for an answer: 1 to 30."""

    validating: int = 3
    mutating: int = 1


@dataclass(frozen=True, slots=True)
class WebhookClientConfig:
    """Where the API server finds the webhook, which certificates it trusts, and its time-outs."""

    at: Service | str
    ca_bundle: bytes | None
    timeouts: Timeouts = Timeouts()

    @property
    def url(self) -> str:
        """The URL for a probe."""
        return self.at if isinstance(self.at, str) else self.at.url

    def client_config(self, path: str) -> JsonObject:
        """Return the clientConfig (admissionregistration.k8s.io/v1) of one path."""
        bundle = {"caBundle": base64.b64encode(self.ca_bundle).decode()} if self.ca_bundle else {}
        if isinstance(self.at, str):
            return {"url": self.at.rstrip("/") + path} | bundle
        service = {
            "namespace": self.at.namespace,
            "name": self.at.name,
            "port": self.at.port,
            "path": path,
        }
        return {"service": service} | bundle


@dataclass(frozen=True, slots=True)
class Registration:
    """The webhooks of each sort, which depend on the policies in force only.

    They match the requests that a policy may judge, and as few others as the API's selectors can
    express. Policies that fail closed and those that fail open have separate webhooks; no request
    matches two webhooks of one sort, so that one denial lists all violations.
    """

    calls: Mapping[Sort, Calls]
    widened: frozenset[PolicyId] = frozenset()
    """Policies for which requests are sent from more namespaces than they select."""

    def configurations(
        self, name: str, address: WebhookClientConfig, *, active: bool = True
    ) -> tuple[JsonObject, JsonObject]:
        """Return the validating and the mutating configuration; without rules if not `active`."""
        return tuple(  # type: ignore[return-value]  # one of each verb
            {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {"name": name},
                "webhooks": self.webhooks(resource, address, active=active),
            }
            for resource in (VALIDATING, MUTATING)
        )

    def count(self, resource: Resource) -> int:
        """Return the number of webhooks of one configuration."""
        mutating = resource == MUTATING
        return sum(
            len(call.targets) for sort, call in self.calls.items() if sort.mutating is mutating
        )

    def webhooks(
        self, resource: Resource, address: WebhookClientConfig, *, active: bool = True
    ) -> list[JsonObject]:
        """Return the webhooks of one configuration; without rules if not `active`."""
        mutating = resource == MUTATING
        verb = "mutate" if mutating else "validate"
        timeouts = address.timeouts
        rendered: list[JsonObject] = []
        for fails_closed in (True, False):
            calls = self.calls[Sort(mutating, fails_closed)].targets
            for number, (call, keys) in enumerate(calls.items(), start=1):
                suffix = ("" if fails_closed else "-ignore") + ("" if number == 1 else f"-{number}")
                webhook = {
                    "name": f"{verb}{suffix}.{DOMAIN}",
                    "clientConfig": address.client_config(f"/{verb}"),
                    "rules": list(_rules(keys)) if active else [],
                    "failurePolicy": "Fail" if fails_closed else "Ignore",
                    "matchPolicy": "Equivalent",
                    "namespaceSelector": call.namespace_selector,
                    "objectSelector": {},
                    "sideEffects": "None",
                    "timeoutSeconds": timeouts.mutating if mutating else timeouts.validating,
                    "admissionReviewVersions": ["v1"],
                }
                reinvocation = {"reinvocationPolicy": "IfNeeded"} if mutating else {}
                rendered.append(webhook | call.match_conditions | reinvocation)
        return rendered


class RegistrationReader:
    """Returns the registration for one engine after the other."""

    def __init__(self, excluded_namespaces: Iterable[str]) -> None:
        """Take the namespaces that are never sent, besides those of the system."""
        names = {*SYSTEM_NAMESPACES, *excluded_namespaces}
        self._excluded = NamePatterns(tuple(sorted(names)), match=False)
        self._reader = DemandReader()
        self._before: Registration | None = None

    def read(self, engine: Engine) -> Registration:
        """Return the registration for the policies in force: linear in their number.

        It is the same object as the last one, in time of the changed policies, if these select the
        same namespaces.
        """
        is_changed = self._reader.read(engine)
        if self._before is None or is_changed:
            calls = {
                sort: calls_for(demands(engine, self._reader.alike, sort), self._excluded)
                for sort in SORTS
            }
        elif not self._before.widened:
            return self._before
        else:
            calls = dict(self._before.calls)
        self._before = Registration(calls, self._widened_policies(engine, calls))
        return self._before

    def _widened_policies(self, engine: Engine, calls: Mapping[Sort, Calls]) -> frozenset[PolicyId]:
        return frozenset(
            (policy.namespace, policy.name)
            for sort, call in calls.items()
            for policy in policies_asking(engine, self._reader.alike, sort, set(call.widened))
        )


def registration(engine: Engine, excluded_namespaces: Iterable[str]) -> Registration:
    """Return the registration for the policies in force."""
    return RegistrationReader(excluded_namespaces).read(engine)


def _rules(keys: Iterable[DemandKey]) -> Iterator[JsonObject]:
    """Yield the rules for targets: one for those resources that differ in nothing but name."""
    operations: dict[tuple[Kind, str], set[str]] = {}
    for kind, subresource, operation in keys:
        operations.setdefault((kind, subresource), set()).add(operation)
    resources: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (kind, subresource), operations_of_kind in operations.items():
        plural = f"{kind.plural}/{subresource}" if subresource else kind.plural
        key = kind.group, kind.versions, tuple(sorted(operations_of_kind))
        resources.setdefault(key, []).append(plural)
    for (group, versions, operation_names), plurals in sorted(resources.items()):
        yield {
            "apiGroups": [group],
            "apiVersions": list(versions),
            "resources": sorted(plurals),
            "operations": list(operation_names),
            # A resource has one scope, which is unknown for a custom kind that a policy names.
            "scope": "*",
        }


def published_bundles(configuration: Mapping[str, Any] | None) -> list[bytes]:
    """Return the CA bundles in a stored configuration, one for each webhook."""
    webhooks = (configuration or {}).get("webhooks") or []
    return [base64.b64decode(webhook["clientConfig"].get("caBundle") or "") for webhook in webhooks]
