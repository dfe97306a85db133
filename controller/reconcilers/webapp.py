"""WebApp: a Deployment and a Service of the same name."""

from collections.abc import Iterator
from datetime import datetime

from config.api.webapp import WebApp, WebAppStatus
from controller.runtime.plan import Apply, Object, Plan, PlannedKind, Seen, Step
from kube.resource import Resource

DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
SERVICE = Resource("", "v1", "services", "Service")

CONTAINER = "spec.template.spec.containers[name=webapp]"
DEPLOYMENT_ORIGIN = {
    "spec.replicas": "spec.replicas",
    f"{CONTAINER}.image": "spec.image",
    f"{CONTAINER}.ports": "spec.port",
    f"{CONTAINER}.resources": "spec.resources",
    f"{CONTAINER}.securityContext": "spec.securityContext",
}
SERVICE_ORIGIN = {"spec.ports": "spec.port"}


def plan(webapp: WebApp, seen: Seen, now: datetime) -> Plan:
    """Say what should exist for `webapp`, given what was `seen`."""
    del now
    deployment = seen.child(DEPLOYMENT, webapp.name)
    running = ready_replicas(deployment) == webapp.spec.replicas
    return Plan(
        steps=(
            Step("deployment", [Apply(desired_deployment(webapp), origin=DEPLOYMENT_ORIGIN)], holds=running),
            Step("service", [Apply(desired_service(webapp), origin=SERVICE_ORIGIN)]),
        ),
        status=WebAppStatus(
            phase="Pending" if deployment is None else "Running" if running else "Deploying",
            replicas=deployment["spec"].get("replicas", 1) if deployment else 0,
            ready_replicas=ready_replicas(deployment),
            selector=f"app={webapp.name}",
        ),
    )


def desired_deployment(webapp: WebApp) -> Object:
    """Return the Deployment that runs the application."""
    container: Object = {
        "name": "webapp",
        "image": webapp.spec.image,
        "ports": [{"name": "http", "containerPort": webapp.spec.port, "protocol": "TCP"}],
        "resources": webapp.spec.resources.to_api(),
    }
    if webapp.spec.security_context:
        container["securityContext"] = webapp.spec.security_context.to_api()
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(webapp),
        "spec": {
            "replicas": webapp.spec.replicas,
            "selector": {"matchLabels": labels(webapp)},
            "template": {"metadata": {"labels": labels(webapp)}, "spec": {"containers": [container]}},
        },
    }


def desired_service(webapp: WebApp) -> Object:
    """Return the Service that leads to the application's pods."""
    port = {"name": "http", "port": webapp.spec.port, "targetPort": webapp.spec.port, "protocol": "TCP"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(webapp),
        "spec": {"selector": labels(webapp), "ports": [port]},
    }


def metadata(webapp: WebApp) -> Object:
    """Return the metadata of both children."""
    return {"name": webapp.name, "namespace": webapp.namespace, "labels": labels(webapp)}


def labels(webapp: WebApp) -> dict[str, str]:
    """Return the labels by which the Service and the Deployment find the pods."""
    return {"app": webapp.name}


def ready_replicas(deployment: Object | None) -> int:
    """Return how many pods are ready."""
    return int((deployment or {}).get("status", {}).get("readyReplicas", 0))


def by_image(webapp: Object) -> Iterator[str]:
    """Yield the image, as `kubectl get webapps --field-selector spec.image=…` finds it."""
    if image := webapp.get("spec", {}).get("image"):
        yield image


WEBAPP = PlannedKind(WebApp, plan=plan, owns=(DEPLOYMENT, SERVICE), indexes={"image": by_image})
