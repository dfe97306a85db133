"""The two webhook configurations, as a pure function of the policies in force."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from controller.registration.calls import calls_for
from controller.registration.demands import DemandKey, demands
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


def registration(
    name: str,
    engine: Engine,
    address: WebhookClientConfig,
    excluded_namespaces: Iterable[str],
    *,
    active: bool = True,
) -> tuple[JsonObject, JsonObject]:
    """Return the validating and the mutating configuration for the policies in force.

    They match the requests that a policy may judge, and as few others as a few webhooks can
    express. Policies that fail closed and those that fail open have separate webhooks; no request
    matches two webhooks of one sort, so that one denial lists all violations. `active=False`:
    without rules yet.
    """
    excluded = NamePatterns(tuple(sorted({*SYSTEM_NAMESPACES, *excluded_namespaces})), match=False)

    def configuration(resource: Resource, verb: str, *, mutating: bool) -> JsonObject:
        webhooks = list[JsonObject]()
        for fails_closed in (True, False):
            calls = calls_for(
                demands(engine, mutating=mutating, fails_closed=fails_closed), excluded
            )
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
                    "timeoutSeconds": address.timeouts.mutating
                    if mutating
                    else address.timeouts.validating,
                    "admissionReviewVersions": ["v1"],
                }
                webhooks.append(
                    webhook
                    | call.match_conditions
                    | ({"reinvocationPolicy": "IfNeeded"} if mutating else {})
                )
        named = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name},
        }
        return named | {"webhooks": webhooks}

    return configuration(VALIDATING, "validate", mutating=False), configuration(
        MUTATING, "mutate", mutating=True
    )


def _rules(keys: Iterable[DemandKey]) -> Iterator[JsonObject]:
    """Yield the rules for targets: one for those resources that differ in nothing but name."""
    operations: dict[tuple[Kind, str], set[str]] = {}
    for kind, subresource, operation in keys:
        operations.setdefault((kind, subresource), set()).add(operation)
    resources: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (kind, subresource), found in operations.items():
        plural = f"{kind.plural}/{subresource}" if subresource else kind.plural
        key = kind.group, kind.versions, tuple(sorted(found))
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


def published(configuration: Mapping[str, Any] | None) -> list[bytes]:
    """Return the CA bundles in a stored configuration, one for each webhook."""
    webhooks = (configuration or {}).get("webhooks") or []
    return [base64.b64decode(webhook["clientConfig"].get("caBundle") or "") for webhook in webhooks]
