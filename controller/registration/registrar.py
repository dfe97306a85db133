"""The reconciler of both webhook configurations; `registration` computes their content.

The chart installs them empty, so that no webhook is called before one answers; then the leader
fills them in. From then on the rules follow the policies, and the caBundle follows the certificate
authority. A configuration that was deleted stays deleted, unless this process creates them:
deleting them is how an operator disables Gatewright in an emergency.

They are not written by server-side apply: that would keep what another writer added, such as a
matchCondition that is never true.
"""

import time
from collections.abc import Callable, Sequence

from controller.registration.configurations import (
    DOMAIN,
    MUTATING,
    VALIDATING,
    Service,
    Timeouts,
    WebhookClientConfig,
    registration,
)
from controller.registration.upkeep import DesiredPart, Upkeep
from controller.runtime.cache import Caches
from kube.client import Client
from kube.resource import JsonObject, Resource
from webhook.engine import Engine


class Registrar(Upkeep):
    """The reconciler of both configurations.

    When policies change, add `request` to its controller.
    """

    name = "registration"
    purpose = "not registered"
    written = "registered"

    def __init__(
        self,
        client: Client,
        caches: Caches,
        configuration: str,
        at: Service | str,
        engine: Callable[[], Engine | None],
        *,
        ca_bundle: Callable[[], bytes | None] | None,
        excluded_namespaces: Sequence[str],
        creates: bool = False,
        timeouts: Timeouts = Timeouts(),  # noqa: B008
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the name of both configurations, the webhook's address, and the policies in force.

        With `creates`, a configuration that does not exist is created.
        """
        both = [(resource, configuration) for resource in (VALIDATING, MUTATING)]
        super().__init__(client, caches, both, at, ca_bundle, clock)
        self._configuration = configuration
        self._engine = engine
        self._excluded_namespaces = tuple(excluded_namespaces)
        self._creates = creates
        self._timeouts = timeouts

    def desired(self, resource: Resource, stored: JsonObject | None) -> DesiredPart | None:
        """Return the webhooks.

        They have no rules until another controller has filled in a caBundle.
        """
        trusted = self.trusted(stored)
        engine = self._engine()
        if (
            engine is None
            or (stored is None and not self._creates)
            or (trusted is None and self.ca_bundle is not None)
        ):
            return None
        address = WebhookClientConfig(self.at, trusted, self._timeouts)
        is_active = trusted is not None
        both = registration(
            self._configuration, engine, address, self._excluded_namespaces, active=is_active
        )
        webhooks = next(each["webhooks"] for each in both if each["kind"] == resource.kind)
        return DesiredPart(webhooks, address, is_active and not self._has_rules(stored))

    def ready(self) -> str | None:
        """Return why the API server calls no webhook yet, or None.

        A configuration that was deleted is not a problem: it is how an operator disables
        Gatewright.
        """
        found = [cache.get(name) for (_, name), cache in self.caches.items()]
        if not any(found) or any(map(self._has_rules, found)):
            return None
        return self.problem or "no webhook is registered yet"

    def _has_rules(self, stored: JsonObject | None) -> bool:
        return any(webhook.get("rules") for webhook in self.part(stored))

    def part(self, stored: JsonObject | None) -> list[JsonObject]:
        """Return Gatewright's webhooks of a stored configuration."""
        return list(filter(_is_own, (stored or {}).get("webhooks") or []))

    def patch(self, stored: JsonObject, part: list[JsonObject]) -> JsonObject:
        """Replace Gatewright's webhooks, after those of others."""
        others = [webhook for webhook in stored.get("webhooks") or [] if not _is_own(webhook)]
        return {"webhooks": others + part}


def _is_own(webhook: JsonObject) -> bool:
    return str(webhook["name"]).endswith(f".{DOMAIN}")
