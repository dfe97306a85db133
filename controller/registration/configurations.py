"""Registration: what the API server is to send to the webhook, as a pure function of the policies in force."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kube.resource import Resource
from webhook.engine import Engine

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

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Service:
    """The Service in front of the webhook."""

    namespace: str
    name: str
    port: int = 443

    @property
    def url(self) -> str:
        """How the API server's name for it looks as a URL."""
        return f"https://{self.name}.{self.namespace}.svc:{self.port}"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds that the API server waits for an answer: 1 to 30."""

    validating: int = 3
    mutating: int = 1


@dataclass(frozen=True, slots=True)
class Address:
    """Where the API server finds the webhook, whose certificates it trusts there if known, and how long it waits."""

    at: Service | str
    ca_bundle: bytes | None
    timeouts: Timeouts = Timeouts()

    @property
    def url(self) -> str:
        """Where a probe finds it."""
        return self.at if isinstance(self.at, str) else self.at.url

    def client_config(self, path: str) -> Object:
        """Return the clientConfig (admissionregistration.k8s.io/v1) of one path."""
        bundle = {"caBundle": base64.b64encode(self.ca_bundle).decode()} if self.ca_bundle else {}
        if isinstance(self.at, str):
            return {"url": self.at.rstrip("/") + path} | bundle
        service = {"namespace": self.at.namespace, "name": self.at.name, "port": self.at.port, "path": path}
        return {"service": service} | bundle


def registration(
    name: str, engine: Engine, address: Address, excluded_namespaces: Iterable[str], *, active: bool = True
) -> tuple[Object, Object]:
    """Return the validating and the mutating configuration for the policies in force.

    They ask for what the policies look at and nothing else. Policies that fail closed share one webhook, so that all
    violations come at once; those that fail open have a second one. `active=False` gives them no rules yet.
    """
    excluded = sorted({*SYSTEM_NAMESPACES, *excluded_namespaces})
    selector = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": excluded}]}

    def webhooks(verb: str, *, mutating: bool) -> Iterator[Object]:
        for fails_closed in (True, False):
            rules = list(_rules(engine, mutating=mutating, fails_closed=fails_closed))
            if rules:
                yield {
                    "name": f"{verb if fails_closed else f'{verb}-ignore'}.{DOMAIN}",
                    "clientConfig": address.client_config(f"/{verb}"),
                    "rules": rules if active else [],
                    "failurePolicy": "Fail" if fails_closed else "Ignore",
                    "matchPolicy": "Equivalent",
                    "namespaceSelector": selector,
                    "objectSelector": {},
                    "sideEffects": "None",
                    "timeoutSeconds": address.timeouts.mutating if mutating else address.timeouts.validating,
                    "admissionReviewVersions": ["v1"],
                } | ({"reinvocationPolicy": "IfNeeded"} if mutating else {})

    def configuration(resource: Resource, found: Iterable[Object]) -> Object:
        return {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": name},
            "webhooks": list(found),
        }

    return (
        configuration(VALIDATING, webhooks("validate", mutating=False)),
        configuration(MUTATING, webhooks("mutate", mutating=True)),
    )


def _rules(engine: Engine, *, mutating: bool, fails_closed: bool) -> Iterator[Object]:
    """Yield the rules for all that the policies look at: one for those resources that differ in nothing but name."""
    resources: dict[tuple[str, tuple[str, ...], tuple[str, ...], bool], list[str]] = {}
    for target in engine.targets(mutating=mutating, fails_closed=fails_closed):
        plural = f"{target.kind.plural}/{target.subresource}" if target.subresource else target.kind.plural
        key = target.kind.group, target.kind.versions, tuple(sorted(target.operations)), target.kind.namespaced
        resources.setdefault(key, []).append(plural)
    for (group, versions, operations, namespaced), plurals in sorted(resources.items()):
        yield {
            "apiGroups": [group],
            "apiVersions": list(versions),
            "resources": sorted(plurals),
            "operations": list(operations),
            "scope": "Namespaced" if namespaced else "Cluster",
        }


def published(configuration: Mapping[str, Any] | None) -> list[bytes]:
    """Return the CA bundles that a stored configuration tells the API server to trust, one for each webhook."""
    webhooks = (configuration or {}).get("webhooks") or []
    return [base64.b64decode(webhook["clientConfig"].get("caBundle") or "") for webhook in webhooks]
