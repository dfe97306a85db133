"""WebApp: a Deployment and a Service of the same name."""

from collections.abc import Iterator
from datetime import datetime

from config.api.webapp import WebApp, WebAppStatus
from controller.reconcilers.application import Application, metadata, origins, plan_application
from controller.reconcilers.autoscaling import Scaled, scaling
from controller.reconcilers.labels import inherited
from controller.reconcilers.readiness import (
    deployment_conditions,
    is_rolling_out,
    ready_replicas,
    waiting,
)
from controller.reconcilers.resources import AUTOSCALER, DEPLOYMENT, SERVICE
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Observed, Plan, Step
from kube.resource import JsonObject

# A WebApp has nothing to clean up: the controller never adds this finalizer, and only removes it.
FINALIZER = "webapp.example.com/finalizer"
CONTAINER = "webapp"
ORIGINS = origins(
    CONTAINER,
    {
        field: f"spec.{field}"
        for field in ("replicas", "image", "port", "resources", "securityContext")
    },
)


def plan(webapp: WebApp, observed: Observed, now: datetime) -> Plan:
    """Plan what should exist for `webapp`, given what was `observed`."""
    name = webapp.name
    deployment = observed.child(DEPLOYMENT, name)
    application = application_of(webapp)
    scaled = Scaled(
        metadata(application), "spec.autoscaling", "spec.replicas", "Autoscaled", observed, now
    )
    by = scaling(webapp.spec.autoscaling, webapp.spec.replicas, scaled)
    application.replicas, application.autoscaled = by.replicas, by.autoscaled
    desired = by.desired_replicas(deployment)
    ready = ready_replicas(deployment)
    running = deployment is not None and ready == desired and not is_rolling_out(deployment)
    note = "" if running else waiting(deployment, ready, desired)
    apply_deployment, apply_service = plan_application(
        application,
        ORIGINS._replace(deployment={**ORIGINS.deployment, "spec.replicas": by.field}),
    )
    return Plan(
        steps=(
            Step("deployment", (apply_deployment, *by.writes), ready=running, note=note),
            Step(
                "service",
                (apply_service,),
                ready=observed.child(SERVICE, name) is not None,
                condition="ServiceReady",
            ),
        ),
        status=WebAppStatus(
            phase="Pending" if deployment is None else "Running" if running else "Deploying",
            replicas=deployment["spec"].get("replicas", 1) if deployment else 0,
            ready_replicas=ready,
            selector=f"app={name}",
            conditions=[
                *deployment_conditions(deployment, is_ready=running, now=now),
                *by.conditions,
            ],
        ),
        problem=by.problem,
    )


def application_of(webapp: WebApp) -> Application:
    """Return the application exactly as the spec describes it, without defaults."""
    spec = webapp.spec
    security_context = spec.security_context
    return Application(
        name=webapp.name,
        namespace=webapp.namespace,
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
    WebApp,
    plan=plan,
    owns=(DEPLOYMENT, SERVICE, AUTOSCALER),
    deletes=(AUTOSCALER,),
    indexes={"image": by_image},
    finalizer=FINALIZER,
)
