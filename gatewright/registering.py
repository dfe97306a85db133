"""What the leader does for the webhook: its certificates, its registration, and which policies are in force.

It is imported only where there is a webhook: X.509 and the policies are a seventh of a controller's memory.
"""

from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry

from config.crds import of_several_versions
from config.settings import Settings
from controller.registration.certificates import Certificates, Names, service_names
from controller.registration.configurations import Service, Timeouts
from controller.registration.conversion import Conversion
from controller.registration.policies import PolicyStatuses
from controller.registration.registrar import Registrar
from controller.runtime.cache import Cache
from controller.runtime.controller import Controller
from controller.runtime.manager import Manager
from controller.runtime.types import Request
from gatewright.policies_in_force import policies_of
from gatewright.process import Background
from kube.endpoint import Endpoint
from kube.resource import Resource
from webhook.policies import catalogue
from webhook.server.metrics import Metrics
from webhook.server.policies import Policies
from webhook.server.policy_objects import EXCEPTION, RESOURCES, Id, PolicyObjects

CONFIGURATION = "gatewright"  # name of both webhook configurations, where nothing else is said


def add_registration(settings: Settings, endpoint: Endpoint, runtime: Manager) -> dict[str, Background]:
    """Let the leader keep the certificates and the registration right; return what follows the policies.

    cert-manager, where it is used, keeps the certificates and fills in the caBundle itself.
    """
    namespace = settings.namespace or endpoint.namespace
    at = settings.webhook_url or Service(namespace, settings.webhook_service)
    policies, look_again = add_policies(settings, runtime, namespace)
    name = settings.webhook_configuration or CONFIGURATION
    ca_bundle, also = None, list[Cache]()
    if not settings.cert_manager:
        dns_names = _dns_names(settings, namespace)
        names = Names(namespace, settings.ca_secret, settings.tls_secret, name, dns_names, tuple(of_several_versions()))
        certificates = Certificates(runtime.client, runtime.caches, names)
        runtime.add(certificates.controller(runtime.metrics))
        ca_bundle, also = certificates.ca_bundle, [certificates.ca_cache, certificates.tls_cache]
    registrar = Registrar(
        runtime.client,
        runtime.caches,
        name,
        at,
        policies,
        ca_bundle=ca_bundle,
        excluded_namespaces=excluded_namespaces(settings, endpoint),
        timeouts=Timeouts(settings.validating_timeout_seconds, settings.mutating_timeout_seconds),
    )
    registration = registrar.controller(runtime.metrics, also=also)
    runtime.add(registration)
    conversion = Conversion(runtime.client, runtime.caches, of_several_versions(), name, at, ca_bundle=ca_bundle)
    runtime.add(conversion.controller(runtime.metrics, also=also))

    def on_new_policies() -> None:
        registration.add(registrar.request)
        look_again()

    return {"policies": partial(policies.follow, on_new_policies)}


def add_policies(settings: Settings, runtime: Manager, home: str) -> tuple[Policies, Callable[[], None]]:
    """Return the policies that the webhooks have in force, and what to call when they changed."""
    metrics = Metrics(CollectorRegistry())  # what it counts is the webhook's to show
    objects = PolicyObjects(catalogue(), metrics)
    caches = [runtime.caches.of(resource, optional=True) for resource in RESOURCES]
    for cache in caches:
        cache.subscribe(objects.subscriber(cache.resource))
    policies = policies_of(settings, metrics, objects, home, lambda: all(cache.is_synced for cache in caches))
    return policies, add_policy_statuses(runtime, policies, objects, home)


def add_policy_statuses(runtime: Manager, policies: Policies, objects: PolicyObjects, home: str) -> Callable[[], None]:
    """Let the leader say in the status of each policy object whether it is in force.

    What is returned is to be called when other policies are in force: what exceptions are from.
    """
    controllers: dict[Resource, Controller] = {}
    told: set[Id] = set()
    for resource in RESOURCES:
        statuses = PolicyStatuses(
            runtime.client,
            runtime.caches.of(resource, optional=True),
            catalogue(),
            lambda: policies.engine.policies if policies.engine else None,
            home,
            conflict=partial(objects.conflict, resource),
        )
        controllers[resource] = statuses.controller(runtime.metrics)
        runtime.add(controllers[resource])

    def look_again() -> None:
        problems = set(objects.problems)
        of_exceptions = {(EXCEPTION, key) for key in runtime.caches.of(EXCEPTION, optional=True)}
        for resource, key in of_exceptions | (told ^ problems):
            controllers[resource].add(Request.of(key))
        told.clear()
        told.update(problems)

    return look_again


def excluded_namespaces(settings: Settings, endpoint: Endpoint) -> list[str]:
    """Return the namespaces that are never sent to the webhook: ours, where we are installed in one, and those set."""
    if settings.namespace is not None:
        return [settings.namespace, *settings.excluded_namespaces]
    return [*([] if settings.webhook_url else [endpoint.namespace]), *settings.excluded_namespaces]


def _dns_names(settings: Settings, namespace: str) -> tuple[str, ...]:
    if settings.webhook_url is None:
        return service_names(settings.webhook_service, namespace)
    return (urlsplit(settings.webhook_url).hostname or "",)
