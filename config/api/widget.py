"""Widget: a number of pause pods. The smallest kind, for tutorials."""

from pydantic import Field

from config.api.definition import AGE, MESSAGE, READY, Column, Definition, Scale
from config.api.meta import ApiModel, CustomResource, Int32, Status


class WidgetSpec(ApiModel):
    """The desired state."""

    replicas: Int32 = Field(1, ge=0, description="Number of pods.")


class WidgetStatus(Status):
    """The observed state."""

    available_replicas: Int32 | None = Field(None, description="Number of pods that are available.")
    selector: str | None = Field(None, description="Label selector of the pods, for autoscalers.")


class Widget(CustomResource):
    """A number of pause pods: the smallest kind, for tutorials."""

    definition = Definition(
        group="example.com",
        version="v1",
        kind="Widget",
        plural="widgets",
        short_names=("wd",),
        columns=(
            Column("Desired", ".spec.replicas", "integer", "Desired number of pods."),
            Column(
                "Available",
                ".status.availableReplicas",
                "integer",
                "Number of pods that are available.",
            ),
            Column(
                "Ready",
                READY,
                description="Whether all pods are available.",
            ),
            AGE,
            MESSAGE,
        ),
        scale=Scale(ready=".status.availableReplicas"),
    )

    spec: WidgetSpec = Field(WidgetSpec.model_construct(), description="The desired state.")
    status: WidgetStatus = Field(default_factory=WidgetStatus, description="The observed state.")
