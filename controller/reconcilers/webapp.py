"""WebApp: a Deployment and a Service of the same name."""

from collections.abc import Iterator
from datetime import datetime

from config.api.webapp import WebApp, WebAppStatus
from controller.reconcilers.application import Application, applied, origins
from controller.reconcilers.labels import inherited
from controller.reconcilers.readiness import is_rolling_out, obstacle, progress, ready_replicas
from controller.reconcilers.resources import DEPLOYMENT, SERVICE
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Observed, Plan, Step
from kube.resource import JsonObject

# A WebApp has nothing to clean up: the controller never adds this finalizer, and only removes it.
FINALIZER = "webapp.example.com/finalizer"
CONTAINER = "webapp"
ORIGINS = origins(
    CONTAINER,
    {
        each: f"spec.{each}"
        for each in ("replicas", "image", "port", "resources", "securityContext")
    },
)


def plan(webapp: WebApp, observed: Observed, now: datetime) -> Plan:
    """Plan what should exist for `webapp`, given what was `observed`."""
    del now
    name, desired = webapp.name, webapp.spec.replicas
    deployment = observed.child(DEPLOYMENT, name)
    ready = ready_replicas(deployment)
    running = deployment is not None and ready == desired and not is_rolling_out(deployment)
    note = "" if running else (deployment and obstacle(deployment)) or progress(ready, desired)
    apply_deployment, apply_service = applied(application_of(webapp), ORIGINS)
    return Plan(
        steps=(
            Step("deployment", (apply_deployment,), ready=running, note=note),
            Step("service", (apply_service,)),
        ),
        status=WebAppStatus(
            phase="Pending" if deployment is None else "Running" if running else "Deploying",
            replicas=deployment["spec"].get("replicas", 1) if deployment else 0,
            ready_replicas=ready,
            selector=f"app={name}",
        ),
    )


def application_of(webapp: WebApp) -> Application:
    """Return the application exactly as the spec describes it, without defaults."""
    metadata, spec = webapp.metadata, webapp.spec
    security_context = spec.security_context
    return Application(
        name=metadata.name,
        namespace=metadata.namespace,
        container=CONTAINER,
        image=spec.image,
        port=spec.port,
        replicas=spec.replicas,
        resources=spec.resources.to_api(),
        labels=inherited(webapp),
        settings={"securityContext": security_context.to_api()} if security_context else {},
    )


def by_image(webapp: JsonObject) -> Iterator[str]:
    """Yield the image, for `kubectl get webapps --field-selector spec.image=…`."""
    if image := webapp.get("spec", {}).get("image"):
        yield image


WEBAPP = PlannedKind(
    WebApp, plan=plan, owns=(DEPLOYMENT, SERVICE), indexes={"image": by_image}, finalizer=FINALIZER
)
