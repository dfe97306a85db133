"""The leader's tasks for the webhook: its certificates, and its registration at the API server.

It is imported only if a webhook is configured: X.509 and the policies take a seventh of a
controller's memory.
"""

from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry

from config.crds import of_several_versions
from config.settings import Settings
from controller.reconcilers.resources import CONFIG_MAP
from controller.registration.certificates import CertificateNames, Certificates, service_names
from controller.registration.configurations import SYSTEM_NAMESPACES, Service, Timeouts
from controller.registration.conversion import Conversion
from controller.registration.enforcement import EnforcementProbe
from controller.registration.registrar import Registrar
from controller.runtime.cache import Cache
from controller.runtime.manager import Manager
from gatewright.processes.controller_process import enabled_kinds
from gatewright.processes.listeners import ProcessHealth
from gatewright.processes.policies_in_force import policies_of
from gatewright.processes.policy_tasks import PolicyTasks
from kube.endpoint import Endpoint
from kube.watched import WatchedObject
from webhook.registries.cache import ImageLookUps
from webhook.server.cluster_policies import RESOURCES
from webhook.server.engine_in_force import Policies
from webhook.server.metrics import WebhookMetrics

CONFIGURATION = "gatewright"  # default name of both webhook configurations


def leader_tasks(
    settings: Settings,
    endpoint: Endpoint,
    manager: Manager,
    observed: ProcessHealth,
    images: ImageLookUps,
) -> PolicyTasks:
    """Return the tasks for policies, with the webhook's registration if one is configured.

    The process is not ready before policies are in force: a new version that fails their cases does
    not replace the one before. If cert-manager is used, it maintains the certificates and sets the
    caBundle.
    """
    home = settings.namespace or endpoint.namespace
    policies = _policies(settings, manager, home)
    observed.ready["policies"] = policies.ready
    observed.details["policies"] = policies.in_force
    excluded = excluded_namespaces(settings, endpoint)
    tasks = PolicyTasks(settings, manager, policies, home, excluded, images)
    if not (settings.webhook_configuration or settings.webhook_url):
        return tasks
    ca_bundle, caches = None, list[Cache]()
    if not settings.cert_manager:
        certificates = _certificates(settings, manager, home)
        ca_bundle = certificates.ca_bundle
        caches = [certificates.ca_cache, certificates.tls_cache]
    register(settings, manager, observed, tasks, home, excluded, ca_bundle=ca_bundle, caches=caches)
    return tasks


def register(
    settings: Settings,
    manager: Manager,
    observed: ProcessHealth,
    tasks: PolicyTasks,
    home: str,
    excluded: Sequence[str],
    *,
    ca_bundle: Callable[[], bytes | None] | None,
    caches: Sequence[Cache] = (),
    creates: bool = False,
) -> None:
    """Add the controllers that register the webhook, for admission and conversion, to `manager`.

    The process is ready once the webhook is registered.

    Changes of objects in `caches` enqueue the registration. Without a `ca_bundle`, another
    controller sets it. With `creates`, missing webhook configurations are created.
    """
    at = settings.webhook_url or Service(home, settings.webhook_service)
    registrar = Registrar(
        manager.client,
        manager.caches,
        _name(settings),
        at,
        lambda: tasks.policies.engine,
        ca_bundle=ca_bundle,
        excluded_namespaces=excluded,
        creates=creates,
        timeouts=Timeouts(settings.validating_timeout_seconds, settings.mutating_timeout_seconds),
        on_widened=tasks.on_widened,
    )
    observed.ready["registration"] = registrar.ready
    registration = registrar.controller(manager.metrics, also=caches)
    manager.add(registration)
    tasks.add(registration, registrar.request)
    if settings.measure_enforcement:
        # Imported here: the harness and its examples take some megabytes.
        from gatewright.processes.denied_requests import denied_requests

        tasks.enforcement = EnforcementProbe(
            manager.client,
            lambda: tasks.policies.engine,
            denied_requests(tasks.policies.carried),
            lambda: registrar.namespace_selectors,
            manager.metrics.registry,
            excluded_namespaces=[*SYSTEM_NAMESPACES, *excluded],
            on_changed=tasks.on_measured,
        )
        manager.add(tasks.enforcement.controller(manager.metrics))
    conversion = Conversion(
        manager.client,
        manager.caches,
        _find_converted(settings),
        _name(settings),
        at,
        ca_bundle=ca_bundle,
    )
    manager.add(conversion.controller(manager.metrics, also=caches))


def _policies(settings: Settings, manager: Manager, home: str) -> Policies:
    """Return the policies that the webhooks have in force, from the caches of a manager."""
    metrics = WebhookMetrics(CollectorRegistry())  # not exposed here: the webhook exposes its own
    caches = [manager.caches.of(resource, optional=True) for resource in RESOURCES]
    stores = [store for cache in caches for store in cache.stores.values()]
    config_maps = list[WatchedObject]()
    for name in settings.policies_config_map:
        (watch,) = manager.caches.one(CONFIG_MAP, name, home).watches
        config_maps.append(WatchedObject(watch, home, name))
    return policies_of(settings, metrics, stores, home, config_maps=config_maps)


def _certificates(settings: Settings, manager: Manager, home: str) -> Certificates:
    if settings.webhook_url is None:
        hosts = service_names(settings.webhook_service, home)
    else:
        hosts = (urlsplit(settings.webhook_url).hostname or "",)
    names = CertificateNames(
        home,
        settings.ca_secret,
        settings.tls_secret,
        _name(settings),
        hosts,
        tuple(_find_converted(settings)),
    )
    certificates = Certificates(manager.client, manager.caches, names)
    manager.add(certificates.controller(manager.metrics))
    return certificates


def _find_converted(settings: Settings) -> list[str]:
    """Return the CRDs with several versions whose kinds are reconciled here.

    The webhook of another release may convert other CRDs: two controllers would overwrite each
    other's address.
    """
    reconciled = {kind.resource.plural for kind in enabled_kinds(settings.kinds)}
    return [crd for crd in of_several_versions() if crd.partition(".")[0] in reconciled]


def _name(settings: Settings) -> str:
    return settings.webhook_configuration or CONFIGURATION


def excluded_namespaces(settings: Settings, endpoint: Endpoint) -> list[str]:
    """Return the namespaces never sent to the webhook: its own, and those of the settings."""
    if settings.namespace is not None:
        return [settings.namespace, *settings.excluded_namespaces]
    own = [] if settings.webhook_url else [endpoint.namespace]
    return [*own, *settings.excluded_namespaces]
