"""WebApp: a Deployment and a Service of the same name."""

from collections.abc import Iterator
from datetime import datetime

from config.api.webapp import WebApp, WebAppStatus
from controller.reconcilers.application import Application, applied, is_rolling_out, obstacle, origins, ready_replicas
from controller.reconcilers.labels import inherited
from controller.reconcilers.resources import DEPLOYMENT, SERVICE
from controller.runtime.plan import Object, Plan, Seen, Step
from controller.runtime.planned_kind import PlannedKind

FINALIZER = "webapp.example.com/finalizer"  # nothing outside of the cluster is ours, so we only ever take it off
CONTAINER = "webapp"
ORIGINS = origins(
    CONTAINER, {each: f"spec.{each}" for each in ("replicas", "image", "port", "resources", "securityContext")}
)


def plan(webapp: WebApp, seen: Seen, now: datetime) -> Plan:
    """Say what should exist for `webapp`, given what was `seen`."""
    del now
    deployment = seen.child(DEPLOYMENT, webapp.name)
    settled = deployment is not None and not is_rolling_out(deployment)
    running = settled and ready_replicas(deployment) == webapp.spec.replicas
    application = application_of(webapp)
    apply_deployment, apply_service = applied(application, ORIGINS)
    return Plan(
        steps=(
            Step("deployment", [apply_deployment], holds=running, note=(deployment and obstacle(deployment)) or ""),
            Step("service", [apply_service]),
        ),
        status=WebAppStatus(
            phase="Pending" if deployment is None else "Running" if running else "Deploying",
            replicas=deployment["spec"].get("replicas", 1) if deployment else 0,
            ready_replicas=ready_replicas(deployment),
            selector=",".join(f"{key}={value}" for key, value in application.selector.items()),
        ),
    )


def application_of(webapp: WebApp) -> Application:
    """Return what runs: exactly what the spec says, and nothing beside it."""
    security_context = webapp.spec.security_context
    return Application(
        name=webapp.name,
        namespace=webapp.namespace,
        container=CONTAINER,
        image=webapp.spec.image,
        port=webapp.spec.port,
        replicas=webapp.spec.replicas,
        resources=webapp.spec.resources.to_api(),
        labels=inherited(webapp),
        settings={"securityContext": security_context.to_api()} if security_context else {},
    )


def by_image(webapp: Object) -> Iterator[str]:
    """Yield the image, as `kubectl get webapps --field-selector spec.image=…` finds it."""
    if image := webapp.get("spec", {}).get("image"):
        yield image


WEBAPP = PlannedKind(WebApp, plan=plan, owns=(DEPLOYMENT, SERVICE), indexes={"image": by_image}, finalizer=FINALIZER)
