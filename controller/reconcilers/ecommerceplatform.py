"""EcommercePlatform: database, cache, queue, workloads, monitoring and Ingress, in order."""

from datetime import datetime

from config.api.components import Workload
from config.api.ecommerceplatform import EcommercePlatform, EcommercePlatformSpec
from controller.reconcilers.claims import READS_CLASSES
from controller.reconcilers.component import Component, ComponentsParent, without
from controller.reconcilers.components import WORKLOAD, cache, url_variable, workload
from controller.reconcilers.databases import (
    BACKUPS,
    OWNED,
    READS_JOBS,
    database,
    variables,
)
from controller.reconcilers.labels import inherited, metadata_origin
from controller.reconcilers.monitoring import (
    PROMETHEUS_RULE,
    SERVICE_MONITOR,
    annotations,
    monitoring,
)
from controller.reconcilers.queues import queue, queue_variables
from controller.reconcilers.resources import (
    BACKUP,
    CLAIM,
    INGRESS,
    SECRET,
    STATEFUL_SET,
    STORAGE_CLASS,
)
from controller.reconcilers.rollup import rolled_up
from controller.reconcilers.servers import INDEX, READS_CLAIMS, by_parent
from controller.reconcilers.services import INDEX as SERVICES
from controller.reconcilers.services import READS_SERVICES, by_uid, services
from controller.reconcilers.tiers import TIERS
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Apply, Observed, Plan
from kube.resource import JsonObject

FINALIZER = "platform.example.com/finalizer"
INGRESS_ORIGIN = {
    **metadata_origin(),
    "spec.rules": "spec.host",
    "spec.tls": "spec.tlsSecretName",
    "spec.tls[0].hosts": "spec.host",
    "spec.ingressClassName": "spec.ingressClassName",
}


def plan(platform: EcommercePlatform, observed: Observed, now: datetime) -> Plan:
    """Plan what should exist for `platform`, given what was `observed`."""
    spec = platform.spec
    labels = {**inherited(platform), "platform": platform.name}
    parent = ComponentsParent(
        platform.name,
        platform.namespace,
        labels,
        TIERS[spec.environment],
        observed,
        platform.status.conditions,
        now,
        is_deleting=platform.metadata.deletion_timestamp is not None,
    )

    def application(name: str, workload_spec: Workload, variables: list[JsonObject]) -> Component:
        return workload(
            parent,
            name,
            workload_spec,
            variables,
            annotations(parent, spec.monitoring, workload_spec.port),
        )

    stores, caches = (
        database(parent, spec.database, monitored=spec.monitoring.enabled),
        cache(parent, spec.cache),
    )
    cache_url = url_variable("CACHE_URL", caches)
    login = variables(parent, spec.database)
    messages, queue_login = queue(parent, spec.queue), queue_variables(parent, spec.queue)
    backend = application("backend", spec.backend, [*login, *cache_url, *queue_login])
    frontend = application(
        "frontend", spec.frontend, [*url_variable("BACKEND_URL", backend), *cache_url]
    )
    components = (stores, caches, messages, backend, frontend)
    further = services(
        parent,
        platform.uid,
        spec.services,
        {component.name: component for component in components},
        {"database": login, "queue": queue_login},
        lambda port: annotations(parent, spec.monitoring, port),
    )
    scraped = ["backend", "frontend", *(each.name for each in spec.services)]
    return rolled_up(
        platform,
        [
            (stores, ()),
            (caches, ()),
            (messages, ()),
            (backend, (stores, messages)),
            (frontend, (backend,)),
            (monitoring(parent, spec.monitoring, scraped), (frontend,)),
            (ingress(parent, spec), (frontend,)),
            *further,
        ],
    )


def ingress(parent: ComponentsParent, spec: EcommercePlatformSpec) -> Component:
    """Return the Ingress that sends requests for the host to the frontend.

    It is ready without an address.
    """
    if spec.host is None:
        return without(parent, "ingress", [(INGRESS, parent.name)])
    service = {"name": parent.child_name("frontend"), "port": {"name": "http"}}
    rule = {
        "host": spec.host,
        "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": service}}]},
    }
    chosen: JsonObject = {}
    if spec.ingress_class_name:
        chosen["ingressClassName"] = spec.ingress_class_name
    if spec.tls_secret_name:
        chosen["tls"] = [{"hosts": [spec.host], "secretName": spec.tls_secret_name}]
    object = {
        "apiVersion": INGRESS.api_version,
        "kind": INGRESS.kind,
        "metadata": {
            "name": parent.name,
            "namespace": parent.namespace,
            "labels": parent.child_labels("ingress"),
        },
        "spec": {**chosen, "rules": [rule]},
    }
    return Component(
        "ingress",
        [Apply(object, INGRESS_ORIGIN)],
        ready=parent.observed.child(INGRESS, parent.name) is not None,
        url=f"{'https' if spec.tls_secret_name else 'http'}://{spec.host}/",
        doing="setup failed",
    )


REMOVED = (*WORKLOAD, INGRESS, SERVICE_MONITOR, PROMETHEUS_RULE)
ECOMMERCE_PLATFORM = PlannedKind(
    EcommercePlatform,
    plan=plan,
    owns=(*OWNED, *REMOVED),
    creates_only=(SECRET,),
    reads=(READS_CLAIMS, READS_CLASSES, READS_JOBS, READS_SERVICES),
    patches=(CLAIM,),
    deletes=(*REMOVED, STATEFUL_SET, CLAIM, *BACKUPS),
    optional=(STORAGE_CLASS, BACKUP, SERVICE_MONITOR, PROMETHEUS_RULE),
    indexes={INDEX: by_parent, SERVICES: by_uid},
    finalizer=FINALIZER,
)
