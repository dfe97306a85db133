"""EcommercePlatform: database, cache, backend, frontend, monitoring and Ingress, each after its dependencies."""

from datetime import datetime

from config.api.components import Workload
from config.api.ecommerceplatform import EcommercePlatform, EcommercePlatformSpec
from controller.reconcilers.claims import READS_CLASSES
from controller.reconcilers.components import Component, Whole, cache, told, without, workload
from controller.reconcilers.databases import BACKUPS, OWNED, database, variables
from controller.reconcilers.labels import inherited, metadata_origin
from controller.reconcilers.monitoring import PROMETHEUS_RULE, SERVICE_MONITOR, annotations, monitoring
from controller.reconcilers.mysql_claims import INDEX, READS_CLAIMS, by_parent
from controller.reconcilers.resources import BACKUP, BUDGET, CLAIM, DEPLOYMENT, INGRESS, SECRET, SERVICE
from controller.reconcilers.rollup import rolled_up
from controller.reconcilers.tiers import TIERS
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Apply, Object, Observed, Plan

INGRESS_ORIGIN = {
    **metadata_origin(),
    "spec.rules": "spec.host",
    "spec.tls": "spec.tlsSecretName",
    "spec.tls[0].hosts": "spec.host",
    "spec.ingressClassName": "spec.ingressClassName",
}


def plan(platform: EcommercePlatform, observed: Observed, now: datetime) -> Plan:
    """Plan what should exist for `platform`, given what was `observed`."""
    del now
    spec = platform.spec
    labels = {**inherited(platform), "platform": platform.name}
    whole = Whole(platform.name, platform.namespace, labels, TIERS[spec.environment], observed)

    def application(name: str, workload_spec: Workload, variables: list[Object]) -> Component:
        return workload(whole, name, workload_spec, variables, annotations(whole, spec.monitoring, workload_spec.port))

    stores, caches = database(whole, spec.database, monitored=spec.monitoring.enabled), cache(whole, spec.cache)
    cache_url = told("CACHE_URL", caches)
    backend = application("backend", spec.backend, [*variables(whole, spec.database), *cache_url])
    frontend = application("frontend", spec.frontend, [*told("BACKEND_URL", backend), *cache_url])
    return rolled_up(
        platform,
        [
            (stores, ()),
            (caches, ()),
            (backend, (stores,)),
            (frontend, (backend,)),
            (monitoring(whole, spec.monitoring), (frontend,)),
            (ingress(whole, spec), (frontend,)),
        ],
    )


def ingress(whole: Whole, spec: EcommercePlatformSpec) -> Component:
    """Return the Ingress, which sends all that comes for the host to the frontend; it need not have an address."""
    if spec.host is None:
        return without(whole, "ingress", [(INGRESS, whole.name)])
    service = {"name": whole.named("frontend"), "port": {"name": "http"}}
    rule = {
        "host": spec.host,
        "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": service}}]},
    }
    chosen: Object = {}
    if spec.ingress_class_name:
        chosen["ingressClassName"] = spec.ingress_class_name
    if spec.tls_secret_name:
        chosen["tls"] = [{"hosts": [spec.host], "secretName": spec.tls_secret_name}]
    object = {
        "apiVersion": INGRESS.api_version,
        "kind": INGRESS.kind,
        "metadata": {"name": whole.name, "namespace": whole.namespace, "labels": whole.labelled("ingress")},
        "spec": {**chosen, "rules": [rule]},
    }
    return Component(
        "ingress",
        [Apply(object, INGRESS_ORIGIN)],
        ready=whole.observed.child(INGRESS, whole.name) is not None,
        url=f"{'https' if spec.tls_secret_name else 'http'}://{spec.host}/",
        doing="setup failed",
    )


REMOVED = (DEPLOYMENT, SERVICE, BUDGET, INGRESS, SERVICE_MONITOR, PROMETHEUS_RULE)
ECOMMERCE_PLATFORM = PlannedKind(
    EcommercePlatform,
    plan=plan,
    owns=(*OWNED, *REMOVED),
    creates_only=(SECRET,),
    reads=(READS_CLAIMS, READS_CLASSES),
    patches=(CLAIM,),
    deletes=(*REMOVED, *BACKUPS),
    optional=(BACKUP, SERVICE_MONITOR, PROMETHEUS_RULE),
    indexes={INDEX: by_parent},
)
