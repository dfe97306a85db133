"""The controller, put together: the kinds it makes, the certificates, and the registration of the webhook."""

import asyncio
import socket
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry

from config.faults import FaultsError, did_you_mean
from config.settings import Settings
from controller.reconcilers import planned_kinds
from controller.reconcilers.certificates import Certificates, Names, service_names
from controller.reconcilers.policies import PolicyStatuses
from controller.reconcilers.registrar import Registrar
from controller.reconcilers.registration import Service
from controller.runtime.caches import Cache
from controller.runtime.controller import Controller
from controller.runtime.leader import LeadershipLostError, LeaseSettings
from controller.runtime.plan import PlannedKind
from controller.runtime.result import Request
from controller.runtime.runtime import Runtime
from gatewright.listeners import Observed
from gatewright.process import Background, ProcessFailedError
from gatewright.serving import policies_of
from kube.endpoint import Endpoint
from kube.resource import Resource
from webhook.policies import catalogue
from webhook.server.metrics import Metrics
from webhook.server.policies import Policies
from webhook.server.policy_objects import EXCEPTION, Id, PolicyObjects

CONFIGURATION = "gatewright"  # name of both webhook configurations, where nothing else is said


def runtime_of(settings: Settings, endpoint: Endpoint, observed: Observed, *, elects: bool) -> Runtime:
    """Return a runtime with the wanted kinds; FaultsError where a setting cannot be used."""
    lease = None
    if elects:
        try:
            lease = LeaseSettings(
                settings.namespace or endpoint.namespace,
                settings.lease_name,
                settings.lease_duration.total_seconds(),
                settings.renew_deadline.total_seconds(),
                settings.retry_period.total_seconds(),
            )
        except ValueError as error:
            raise FaultsError([("", str(error))]) from None
    runtime = Runtime(
        endpoint,
        observed.registry,
        identity=f"{socket.gethostname()}_{uuid.uuid4()}",
        lease=lease,
        namespaces=settings.namespaces,
        per_object_metrics=settings.object_metrics,
    )
    for kind in wanted_kinds(settings.kinds):
        runtime.add_kind(kind, workers=settings.workers, settings={"registry": settings.registry})
    observed.ready["controller"] = runtime.readiness.check
    observed.alive["event loop"] = runtime.heartbeat.check
    return runtime


def wanted_kinds(names: Sequence[str]) -> list[PlannedKind[Any]]:
    """Return the planned kinds of these names, whatever their case; all of them for no names."""
    known = {kind.name: kind for kind in planned_kinds()}
    unknown = [name for name in names if name.lower() not in known]
    if unknown:
        kinds = [kind.resource.kind for kind in known.values()]
        raise FaultsError(("--kinds", f'no kind "{name}"{did_you_mean(name, kinds)}') for name in unknown)
    return [known[name.lower()] for name in names] or list(known.values())


def add_registration(
    settings: Settings, endpoint: Endpoint, runtime: Runtime, resources: Sequence[Resource]
) -> dict[str, Background]:
    """Let the leader keep the certificates and the registration right; return what follows the policies.

    `resources` are those of the policy objects that the API server has.

    cert-manager, where it is used, keeps the certificates and fills in the caBundle itself.
    """
    namespace = settings.namespace or endpoint.namespace
    at = settings.webhook_url or Service(namespace, settings.webhook_service)
    policies, look_again = add_policies(settings, runtime, resources, namespace)
    name = settings.webhook_configuration or CONFIGURATION
    ca_bundle, also = None, list[Cache]()
    if not settings.cert_manager:
        names = Names(namespace, settings.ca_secret, settings.tls_secret, name, _dns_names(settings, namespace))
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
        excluded_namespaces=own_namespaces(settings, endpoint),
    )
    registration = registrar.controller(runtime.metrics, also=also)
    runtime.add(registration)

    def on_new_policies() -> None:
        registration.add(registrar.request)
        look_again()

    return {"policies": partial(policies.follow, on_new_policies)}


def add_policies(
    settings: Settings, runtime: Runtime, resources: Sequence[Resource], home: str
) -> tuple[Policies, Callable[[], None]]:
    """Return the policies that the webhooks have in force, and what to call when they changed."""
    metrics = Metrics(CollectorRegistry())  # what it counts is the webhook's to show
    objects = PolicyObjects(catalogue(), metrics)
    caches = [runtime.caches.of(resource) for resource in resources]
    for cache in caches:
        cache.subscribe(objects.subscriber(cache.resource))
    policies = policies_of(settings, metrics, objects, home, lambda: all(cache.is_synced for cache in caches))
    return policies, add_policy_statuses(runtime, resources, policies, objects, home)


def add_policy_statuses(
    runtime: Runtime, resources: Sequence[Resource], policies: Policies, objects: PolicyObjects, home: str
) -> Callable[[], None]:
    """Let the leader say in the status of each policy object whether it is in force.

    What is returned is to be called when other policies are in force: what exceptions are from.
    """
    controllers: dict[Resource, Controller] = {}
    told: set[Id] = set()
    for resource in resources:
        statuses = PolicyStatuses(
            runtime.client,
            runtime.caches.of(resource),
            catalogue(),
            lambda: policies.engine.policies if policies.engine else None,
            home,
            conflict=partial(objects.conflict, resource),
        )
        controllers[resource] = statuses.controller(runtime.metrics)
        runtime.add(controllers[resource])

    def look_again() -> None:
        problems = set(objects.problems)
        of_exceptions = {(each, key) for each in resources if each == EXCEPTION for key in runtime.caches.of(each)}
        for resource, key in of_exceptions | (told ^ problems):
            controllers[resource].add(Request.of(key))
        told.clear()
        told.update(problems)

    return look_again


def own_namespaces(settings: Settings, endpoint: Endpoint) -> list[str]:
    """Return the namespace that is never sent to the webhook, where we are installed in one."""
    if settings.namespace is not None:
        return [settings.namespace]
    return [] if settings.webhook_url else [endpoint.namespace]


def _dns_names(settings: Settings, namespace: str) -> tuple[str, ...]:
    if settings.webhook_url is None:
        return service_names(settings.webhook_service, namespace)
    return (urlsplit(settings.webhook_url).hostname or "",)


async def run_leading(runtime: Runtime, stop: asyncio.Event) -> None:
    """Run until `stop` is set; a lost lease ends the process, with one line."""
    try:
        await runtime.run(stop)
    except LeadershipLostError as error:
        raise ProcessFailedError(str(error)) from error
