"""WebApp: a web application, run as a Deployment and a Service of the same name."""

from typing import Literal

from pydantic import Field, SkipValidation

from config.api.autoscaling import WebAppAutoscaling
from config.api.core import ResourceRequirements, SecurityContext
from config.api.definition import AGE, MESSAGE, Column, Definition, Scale
from config.api.formats import ImageName
from config.api.meta import ApiModel, CustomResource, Int32, Status

DEFAULT_RESOURCES = ResourceRequirements.model_construct(
    requests={"cpu": "100m", "memory": "128Mi"}, limits={"cpu": "500m", "memory": "512Mi"}
)


class WebAppSpec(ApiModel):
    """The application to run."""

    replicas: Int32 = Field(ge=1, le=10, description="Number of pods, 1 to 10.")
    image: ImageName = Field(
        min_length=1, description="Image of the container, such as nginx:1.21."
    )
    port: Int32 = Field(
        8080,
        ge=1,
        le=65535,
        description="Port of the container, and of the Service of the same name.",
    )
    resources: ResourceRequirements = Field(
        DEFAULT_RESOURCES,
        description="Compute resources of the container; if unset as a whole, requests of 100m cpu "
        "and 128Mi memory and limits of 500m cpu and 512Mi memory.",
    )
    security_context: SecurityContext | None = Field(
        None, description="Security settings of the container."
    )
    autoscaling: WebAppAutoscaling | None = Field(
        None,
        description="Scales by CPU usage, with a HorizontalPodAutoscaler of the same name; "
        "replicas is then the default of min.",
    )


class WebAppStatus(Status):
    """The observed state."""

    phase: Literal["Pending", "Deploying", "Running", "Failed"] | None = Field(
        None,
        description="Pending until the Deployment exists, Deploying until the desired number of "
        "pods is ready, then Running; Failed when the spec cannot be applied.",
    )
    replicas: Int32 | None = Field(None, description="Number of pods in the Deployment's spec.")
    ready_replicas: Int32 | None = Field(None, description="Number of pods that are ready.")
    selector: str | None = Field(
        None, description="Label selector of the pods, for the scale subresource."
    )


class WebApp(CustomResource):
    """A web application: the controller creates a Deployment and a Service of the same name."""

    definition = Definition(
        group="example.com",
        version="v1",
        kind="WebApp",
        plural="webapps",
        short_names=("wa",),
        scale=Scale(),
        container="spec",
        selectable_fields=(".spec.image",),
        columns=(
            Column("Phase", ".status.phase", description="Pending, Deploying, Running or Failed."),
            Column("Desired", ".spec.replicas", "integer", "Desired number of pods."),
            Column("Ready", ".status.readyReplicas", "integer", "Number of pods that are ready."),
            Column("Image", ".spec.image", description="Image of the container."),
            AGE,
            MESSAGE,
        ),
    )

    spec: WebAppSpec = Field(description="The desired state.")
    # not validated, since no plan reads it: saves a fourth of the time to parse a WebApp
    status: SkipValidation[WebAppStatus | None] = Field(None, description="The observed state.")
