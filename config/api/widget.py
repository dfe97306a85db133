"""Widget: so many pods that do nothing. The smallest kind, and a tutorial's."""

from pydantic import Field

from config.api.definition import AGE, MESSAGE, Column, Definition, Scale
from config.api.meta import ApiModel, CustomResource, Int32, Status


class WidgetSpec(ApiModel):
    """What should be there."""

    replicas: Int32 = Field(1, ge=0, description="Number of pods.")


class WidgetStatus(Status):
    """What was last observed."""

    available_replicas: Int32 | None = Field(None, description="Number of pods that are available.")
    selector: str | None = Field(None, description="Label selector of the pods, for autoscalers.")


class Widget(CustomResource):
    """So many pods that do nothing: the smallest kind, and a tutorial's."""

    definition = Definition(
        group="example.com",
        version="v1",
        kind="Widget",
        plural="widgets",
        short_names=("wd",),
        columns=(
            Column("Desired", ".spec.replicas", "integer", "Number of pods asked for."),
            Column("Available", ".status.availableReplicas", "integer", "Number of pods that are available."),
            Column("Ready", '.status.conditions[?(@.type=="Ready")].status', description="Whether all of them are."),
            AGE,
            MESSAGE,
        ),
        scale=Scale(ready=".status.availableReplicas"),
    )

    spec: WidgetSpec = Field(WidgetSpec.model_construct(), description="What should be there.")
    status: WidgetStatus = Field(default_factory=WidgetStatus, description="What was last observed.")
