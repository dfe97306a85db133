"""Autoscaling of a workload by the CPU that its pods use."""

from pydantic import Field

from config.api.meta import ApiModel, Int32

TARGET_CPU = Field(
    80,
    alias="targetCPU",
    ge=1,
    description="Average CPU usage that the autoscaler aims at, in percent of the pods' requests.",
)


class Autoscaling(ApiModel):
    """The bounds of the number of pods, and the CPU usage that decides between them."""

    min: Int32 | None = Field(
        None, ge=1, description="Least number of pods; by default that of the environment."
    )
    max: Int32 | None = Field(None, ge=1, description="Largest number of pods. Required.")
    target_cpu: Int32 = TARGET_CPU


class WebAppAutoscaling(ApiModel):
    """The bounds of a WebApp's number of pods, and the CPU usage that decides between them."""

    min: Int32 | None = Field(
        None, ge=1, le=10, description="Least number of pods; by default spec.replicas."
    )
    max: Int32 | None = Field(None, ge=1, le=10, description="Largest number of pods. Required.")
    target_cpu: Int32 = TARGET_CPU
