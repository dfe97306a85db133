"""Monitoring of a platform: a ServiceMonitor and alerts, or annotations for Prometheus.

Where the monitoring APIs do not exist, annotations name the port.
"""

from collections.abc import Sequence

from config.api.ecommerceplatform import Monitoring
from controller.reconcilers.application import ORIGIN as METADATA
from controller.reconcilers.component import Component, ComponentsParent, delete_existing, without
from controller.runtime.plan import Apply
from kube.resource import JsonObject, Resource

GROUP = "monitoring.coreos.com"
SERVICE_MONITOR = Resource(GROUP, "v1", "servicemonitors", "ServiceMonitor")
PROMETHEUS_RULE = Resource(GROUP, "v1", "prometheusrules", "PrometheusRule")
INTERVAL = "30s"
ORIGIN = {
    SERVICE_MONITOR: METADATA
    | {"spec.endpoints": "spec.monitoring.path", "spec.selector": "spec.services"},
    PROMETHEUS_RULE: METADATA | {"spec.groups": "spec.services"},
}


def monitoring(parent: ComponentsParent, spec: Monitoring, scraped: Sequence[str]) -> Component:
    """Return the objects that monitor the `scraped` workloads.

    Without their APIs, the Services have annotations instead.
    """
    places = [
        (resource, parent.name)
        for resource in (SERVICE_MONITOR, PROMETHEUS_RULE)
        if parent.observed.serves(resource)
    ]
    if not spec.enabled:
        return without(parent, "monitoring", places)
    alerts = parent.tier.alerts if spec.alerts is None else spec.alerts
    desired = {SERVICE_MONITOR: _service_monitor(parent, spec.path, scraped)}
    desired |= {PROMETHEUS_RULE: _prometheus_rule(parent, scraped)} if alerts else {}
    absent = [resource.kind for resource in desired if (resource, parent.name) not in places]
    writes = [
        *(
            Apply(desired[resource], ORIGIN[resource])
            for resource, _ in places
            if resource in desired
        ),
        *delete_existing(parent, [place for place in places if place[0] not in desired]),
    ]
    missing_apis = f"{' and '.join(absent)} of {GROUP} not served here"
    note = (
        f"{missing_apis}: Services are annotated instead"
        if SERVICE_MONITOR.kind in absent
        else missing_apis
    )
    return Component(
        "monitoring",
        writes,
        ready=all(
            parent.observed.child(*place) is not None for place in places if place[0] in desired
        ),
        note=note if absent else "",
        doing="setup failed",
    )


def annotations(parent: ComponentsParent, spec: Monitoring, port: int) -> dict[str, str]:
    """Return the Service's annotations for Prometheus, which replace a ServiceMonitor."""
    if not spec.enabled or parent.observed.serves(SERVICE_MONITOR):
        return {}
    return {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(port),
        "prometheus.io/path": spec.path,
    }


def _metadata(parent: ComponentsParent) -> JsonObject:
    return {
        "name": parent.name,
        "namespace": parent.namespace,
        "labels": parent.child_labels("monitoring"),
    }


def _service_monitor(parent: ComponentsParent, path: str, scraped: Sequence[str]) -> JsonObject:
    component = {"key": "app.kubernetes.io/component", "operator": "In", "values": list(scraped)}
    return {
        "apiVersion": SERVICE_MONITOR.api_version,
        "kind": SERVICE_MONITOR.kind,
        "metadata": _metadata(parent),
        "spec": {
            "selector": {"matchLabels": {"platform": parent.name}, "matchExpressions": [component]},
            "endpoints": [{"port": "http", "path": path, "interval": INTERVAL}],
        },
    }


def _prometheus_rule(parent: ComponentsParent, scraped: Sequence[str]) -> JsonObject:
    """Return the alerts on metrics of kube-state-metrics and of Prometheus itself."""
    at, services = f'namespace="{parent.namespace}"', "|".join(scraped)
    deployments = f'{at},deployment=~"{parent.name}-(cache|{services})"'
    database = f'{at},statefulset="{parent.child_name("db")}"'
    rules = [
        _alert(
            "PlatformComponentUnavailable",
            f"kube_deployment_status_replicas_available{{{deployments}}} "
            f"< kube_deployment_spec_replicas{{{deployments}}}",
            "{{ $labels.deployment }} has fewer replicas than it should",
        ),
        _alert(
            "PlatformDatabaseUnavailable",
            (
                f"kube_statefulset_status_replicas_ready{{{database}}} < "
                f"kube_statefulset_replicas{{{database}}}"
            ),
            "{{ $labels.statefulset }} has fewer instances than it should",
        ),
        _alert(
            "PlatformTargetDown",
            f'up{{{at},service=~"{parent.name}-({services})"}} == 0',
            "{{ $labels.pod }} does not answer Prometheus",
        ),
    ]
    return {
        "apiVersion": PROMETHEUS_RULE.api_version,
        "kind": PROMETHEUS_RULE.kind,
        "metadata": _metadata(parent),
        "spec": {"groups": [{"name": f"platform-{parent.name}", "rules": rules}]},
    }


def _alert(name: str, expression: str, summary: str) -> JsonObject:
    return {
        "alert": name,
        "expr": expression,
        "for": "5m",
        "labels": {"severity": "critical"},
        "annotations": {"summary": summary, "description": f"{summary} for five minutes."},
    }
