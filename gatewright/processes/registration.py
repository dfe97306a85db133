"""The leader's tasks for the webhook: certificates, registration, and the status of policy objects.

It is imported only if a webhook is configured: X.509 and the policies are a seventh of a
controller's memory.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry

from config.crds import of_several_versions
from config.settings import Settings
from controller.audit.audit import FIGURES, REQUEST, Audit
from controller.registration.certificates import CertificateNames, Certificates, service_names
from controller.registration.configurations import SYSTEM_NAMESPACES, Service, Timeouts
from controller.registration.conversion import Conversion
from controller.registration.policies import PolicyStatuses
from controller.registration.registrar import Registrar
from controller.runtime.cache import Cache
from controller.runtime.controller import Controller
from controller.runtime.manager import Manager
from controller.runtime.types import ReconcileRequest
from gatewright.processes.policies_in_force import policies_of
from gatewright.processes.process import Background
from kube.endpoint import Endpoint
from kube.resource import Resource
from webhook.policy_sets.catalogue import catalogue
from webhook.server.metrics import WebhookMetrics
from webhook.server.policies import Policies
from webhook.server.policy_objects import EXCEPTION, RESOURCES, ObjectId

CONFIGURATION = "gatewright"  # name of both webhook configurations, where nothing else is said


def add_registration(
    settings: Settings, endpoint: Endpoint, manager: Manager
) -> dict[str, Background]:
    """Add what the leader does for policies: statuses, registration and audit.

    Returns the task that follows the policies.
    """
    home = settings.namespace or endpoint.namespace
    excluded = excluded_namespaces(settings, endpoint)
    policies = policies_seen_by(settings, manager, home)
    on_change = [add_audit(settings, manager, policies, home, excluded)]
    if settings.webhook_configuration or settings.webhook_url:
        on_change.append(_add_webhook(settings, manager, policies, home, excluded))

    def on_new_policies() -> None:
        for call in on_change:
            call()

    return {"policies": partial(policies.follow, on_new_policies)}


def _add_webhook(
    settings: Settings, manager: Manager, policies: Policies, home: str, excluded: list[str]
) -> Callable[[], None]:
    """Let the leader maintain the webhook's certificates and its registration.

    Return what to call at new policies.

    cert-manager, where it is used, maintains the certificates and fills in the caBundle itself.
    """
    at = settings.webhook_url or Service(home, settings.webhook_service)
    name = settings.webhook_configuration or CONFIGURATION
    ca_bundle, also = None, list[Cache]()
    if not settings.cert_manager:
        dns_names = _dns_names(settings, home)
        names = CertificateNames(
            home,
            settings.ca_secret,
            settings.tls_secret,
            name,
            dns_names,
            tuple(of_several_versions()),
        )
        certificates = Certificates(manager.client, manager.caches, names)
        manager.add(certificates.controller(manager.metrics))
        ca_bundle, also = certificates.ca_bundle, [certificates.ca_cache, certificates.tls_cache]
    registrar = Registrar(
        manager.client,
        manager.caches,
        name,
        at,
        lambda: policies.engine,
        ca_bundle=ca_bundle,
        excluded_namespaces=excluded,
        timeouts=Timeouts(settings.validating_timeout_seconds, settings.mutating_timeout_seconds),
    )
    registration = registrar.controller(manager.metrics, also=also)
    manager.add(registration)
    conversion = Conversion(
        manager.client, manager.caches, of_several_versions(), name, at, ca_bundle=ca_bundle
    )
    manager.add(conversion.controller(manager.metrics, also=also))
    return lambda: registration.add(registrar.request)


def add_audit(
    settings: Settings, manager: Manager, policies: Policies, home: str, excluded: list[str]
) -> Callable[[], None]:
    """Add the statuses of policy objects, and the audit if it is on.

    Return what to call at new policies.
    """
    audit = audit_of(settings, manager, policies, excluded) if settings.audit else None
    look_again = add_policy_statuses(manager, policies, home, audit)
    if audit is None:
        return look_again
    controller = audit.controller(manager.metrics, manager.caches)
    manager.add(controller)

    def on_new_policies() -> None:
        look_again()
        controller.add(REQUEST)

    return on_new_policies


def audit_of(
    settings: Settings, manager: Manager, policies: Policies, excluded: list[str]
) -> Audit:
    """Return the audit by the policies in force."""
    return Audit(
        manager.client,
        lambda: policies.engine,
        manager.metrics.registry,
        interval=settings.audit_interval,
        qps=settings.audit_qps,
        format=settings.audit_reports,
        namespaces=settings.namespaces,
        excluded_namespaces=[*SYSTEM_NAMESPACES, *excluded],
        kubernetes=settings.kubernetes_policies,
    )


def policies_seen_by(settings: Settings, manager: Manager, home: str) -> Policies:
    """Return the policies that the webhooks have in force, from the caches of a manager."""
    metrics = WebhookMetrics(CollectorRegistry())  # the webhook exposes what it counts
    caches = [manager.caches.of(resource, optional=True) for resource in RESOURCES]
    stores = [store for cache in caches for store in cache.stores.values()]
    return policies_of(settings, metrics, stores, home)


def add_policy_statuses(
    manager: Manager, policies: Policies, home: str, audit: Audit | None = None
) -> Callable[[], None]:
    """Let the leader write the status of each policy object, with the audit's figures.

    The function that is returned must be called when other policies are in force.
    """
    controllers: dict[Resource, Controller] = {}
    reported: set[ObjectId] = set()
    for resource in RESOURCES:
        statuses = PolicyStatuses(
            manager.client,
            manager.caches.of(resource, optional=True),
            catalogue(),
            lambda: policies.engine.policies if policies.engine else None,
            home,
            conflict=partial(policies.objects.conflict, resource),
            audited=partial(_audited, audit, resource),
        )
        controllers[resource] = statuses.controller(manager.metrics)
        manager.add(controllers[resource])

    def after_audit() -> None:
        for resource in (each for each in RESOURCES if each != EXCEPTION):
            for key in manager.caches.of(resource, optional=True):
                controllers[resource].add(ReconcileRequest.of(key))

    if audit is not None:
        audit.on_finished = after_audit

    def look_again() -> None:
        problems = set(policies.objects.problems)
        of_exceptions = {(EXCEPTION, key) for key in manager.caches.of(EXCEPTION, optional=True)}
        for resource, key in of_exceptions | (reported ^ problems):
            controllers[resource].add(ReconcileRequest.of(key))
        reported.clear()
        reported.update(problems)

    return look_again


def _audited(
    audit: Audit | None, resource: Resource, key: str, status: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the last audit's figures for a policy object's status, or those it has."""
    if audit is None or resource == EXCEPTION:
        return {}
    if audit.totals is None:
        return {field: status[field] for field in FIGURES if field in status}
    return audit.totals.get(key, {})


def excluded_namespaces(settings: Settings, endpoint: Endpoint) -> list[str]:
    """Return the namespaces never sent to the webhook: Gatewright's own, and those set."""
    if settings.namespace is not None:
        return [settings.namespace, *settings.excluded_namespaces]
    return [*([] if settings.webhook_url else [endpoint.namespace]), *settings.excluded_namespaces]


def _dns_names(settings: Settings, namespace: str) -> tuple[str, ...]:
    if settings.webhook_url is None:
        return service_names(settings.webhook_service, namespace)
    return (urlsplit(settings.webhook_url).hostname or "",)
