"""Monitoring of a platform: a ServiceMonitor and alerts if their APIs exist, else annotations for Prometheus."""

from config.api.ecommerceplatform import Monitoring
from controller.reconcilers.application import ORIGIN as METADATA
from controller.reconcilers.components import Component, Whole, removed, without
from controller.runtime.plan import Apply, Object
from kube.resource import Resource

GROUP = "monitoring.coreos.com"
SERVICE_MONITOR = Resource(GROUP, "v1", "servicemonitors", "ServiceMonitor")
PROMETHEUS_RULE = Resource(GROUP, "v1", "prometheusrules", "PrometheusRule")
SCRAPED = ("backend", "frontend")
INTERVAL = "30s"
ORIGIN = {SERVICE_MONITOR: METADATA | {"spec.endpoints": "spec.monitoring.path"}, PROMETHEUS_RULE: METADATA}


def monitoring(whole: Whole, spec: Monitoring) -> Component:
    """Return the monitoring objects; without their APIs, the Services have annotations instead."""
    places = [
        (resource, whole.name) for resource in (SERVICE_MONITOR, PROMETHEUS_RULE) if whole.observed.serves(resource)
    ]
    if not spec.enabled:
        return without(whole, "monitoring", places)
    alerts = whole.tier.alerts if spec.alerts is None else spec.alerts
    wanted = {SERVICE_MONITOR: _service_monitor(whole, spec.path)}
    wanted |= {PROMETHEUS_RULE: _prometheus_rule(whole)} if alerts else {}
    absent = [resource.kind for resource in wanted if (resource, whole.name) not in places]
    writes = [
        *(Apply(wanted[resource], ORIGIN[resource]) for resource, _ in places if resource in wanted),
        *removed(whole, [place for place in places if place[0] not in wanted]),
    ]
    said = f"{' and '.join(absent)} of {GROUP} not served here"
    note = f"{said}: Services are annotated instead" if SERVICE_MONITOR.kind in absent else said
    return Component(
        "monitoring",
        writes,
        ready=all(whole.observed.child(*place) is not None for place in places if place[0] in wanted),
        note=note if absent else "",
        doing="setup failed",
    )


def annotations(whole: Whole, spec: Monitoring, port: int) -> dict[str, str]:
    """Return what a Service says to a Prometheus that goes by annotations, where there is no ServiceMonitor."""
    if not spec.enabled or whole.observed.serves(SERVICE_MONITOR):
        return {}
    return {"prometheus.io/scrape": "true", "prometheus.io/port": str(port), "prometheus.io/path": spec.path}


def _metadata(whole: Whole) -> Object:
    return {"name": whole.name, "namespace": whole.namespace, "labels": whole.labelled("monitoring")}


def _service_monitor(whole: Whole, path: str) -> Object:
    component = {"key": "app.kubernetes.io/component", "operator": "In", "values": list(SCRAPED)}
    return {
        "apiVersion": SERVICE_MONITOR.api_version,
        "kind": SERVICE_MONITOR.kind,
        "metadata": _metadata(whole),
        "spec": {
            "selector": {"matchLabels": {"platform": whole.name}, "matchExpressions": [component]},
            "endpoints": [{"port": "http", "path": path, "interval": INTERVAL}],
        },
    }


def _prometheus_rule(whole: Whole) -> Object:
    """Return alerts on what kube-state-metrics and Prometheus itself say of the platform."""
    at = f'namespace="{whole.namespace}"'
    deployments = f'{at},deployment=~"{whole.name}-(cache|backend|frontend)"'
    database = f'{at},statefulset="{whole.named("db")}"'
    rules = [
        _alert(
            "PlatformComponentUnavailable",
            f"kube_deployment_status_replicas_available{{{deployments}}} "
            f"< kube_deployment_spec_replicas{{{deployments}}}",
            "{{ $labels.deployment }} has fewer replicas than it should",
        ),
        _alert(
            "PlatformDatabaseUnavailable",
            f"kube_statefulset_status_replicas_ready{{{database}}} < kube_statefulset_replicas{{{database}}}",
            "{{ $labels.statefulset }} has fewer instances than it should",
        ),
        _alert(
            "PlatformTargetDown",
            f'up{{{at},service=~"{whole.name}-(backend|frontend)"}} == 0',
            "{{ $labels.pod }} does not answer Prometheus",
        ),
    ]
    return {
        "apiVersion": PROMETHEUS_RULE.api_version,
        "kind": PROMETHEUS_RULE.kind,
        "metadata": _metadata(whole),
        "spec": {"groups": [{"name": f"platform-{whole.name}", "rules": rules}]},
    }


def _alert(name: str, expression: str, summary: str) -> Object:
    return {
        "alert": name,
        "expr": expression,
        "for": "5m",
        "labels": {"severity": "critical"},
        "annotations": {"summary": summary, "description": f"{summary} for five minutes."},
    }
