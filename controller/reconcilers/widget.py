"""Widget: a Deployment of pause containers, of the same name. The smallest kind, to read first."""

from datetime import datetime

from config.api.widget import Widget, WidgetStatus
from controller.reconcilers import restricted
from controller.reconcilers.images import image
from controller.reconcilers.labels import inherited, metadata_origin
from controller.reconcilers.readiness import deployment_conditions, waiting
from controller.reconcilers.resources import DEPLOYMENT
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Apply, Observed, Plan, Step
from kube.resource import JsonObject

ORIGIN = {"spec.replicas": "spec.replicas", **metadata_origin("spec.template")}
USER = 65535  # the image's user


def plan(widget: Widget, observed: Observed, now: datetime) -> Plan:
    """Plan what should exist for `widget`, given what was `observed`."""
    deployment = observed.child(DEPLOYMENT, widget.name)
    available = (deployment or {}).get("status", {}).get("availableReplicas", 0)
    pause = image(observed.settings, "pause", "3.10")
    write = Apply(plan_deployment(widget, pause), ORIGIN)
    ready = deployment is not None and available == widget.spec.replicas
    note = "" if ready else waiting(deployment, available, widget.spec.replicas)
    return Plan(
        steps=(Step("deployment", [write], ready=ready, note=note),),
        status=WidgetStatus(
            available_replicas=available,
            selector=f"app={widget.name}",
            conditions=deployment_conditions(deployment, is_ready=ready, now=now),
        ),
    )


def plan_deployment(widget: Widget, image: str) -> JsonObject:
    """Return the Deployment."""
    labels = {**inherited(widget), "app": widget.name}
    container = {
        "name": "pause",
        "image": image,
        "resources": {each: {"cpu": "10m", "memory": "16Mi"} for each in ("requests", "limits")},
        "securityContext": restricted.container(),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": widget.name, "namespace": widget.namespace, "labels": labels},
        "spec": {
            "replicas": widget.spec.replicas,
            "selector": {"matchLabels": {"app": widget.name}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "securityContext": restricted.pod(USER)},
            },
        },
    }


WIDGET = PlannedKind(Widget, plan=plan, owns=(DEPLOYMENT,))
