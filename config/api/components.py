"""Types that AppStack and EcommercePlatform share: database, cache, queue, backend, frontend."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from config.api.autoscaling import Autoscaling
from config.api.core import QuantityText, ResourceRequirements, SecurityContext
from config.api.definition import Column
from config.api.formats import DataKey, ImageName, ObjectName
from config.api.meta import INT_OR_STRING, ApiModel, Int32, Status, keyed_by
from config.api.storage import Dumps

EnvironmentName = Literal["development", "staging", "production"]
ComponentVersion = Annotated[  # users write 14 without quotes
    str,
    BeforeValidator(lambda value: str(value) if type(value) is int else value),
    WithJsonSchema(INT_OR_STRING),
]


class KeyReference(ApiModel):
    """One key of a Secret or a ConfigMap in the same namespace."""

    name: ObjectName = Field("", description="Name of the object.")
    key: DataKey = Field("", description="Key in it.")
    optional: bool | None = Field(
        None, description="Whether the variable is omitted if the key is missing."
    )


class VariableSource(ApiModel):
    """The source of an environment variable's value."""

    secret_key_ref: KeyReference | None = Field(None, description="A key of a Secret.")
    config_map_key_ref: KeyReference | None = Field(None, description="A key of a ConfigMap.")


class EnvVar(ApiModel):
    """An environment variable of a container."""

    name: str = Field("", description="Name of the variable.")
    value: str | None = Field(
        None, description="Its value; $(OTHER) refers to an earlier variable."
    )
    value_from: VariableSource | None = Field(
        None, description="Source of its value, instead of value."
    )


class DatabaseBackup(Dumps):
    """The schedule, the destination and the retention of the database's backups."""

    enabled: bool | None = Field(
        None,
        description="Whether the database is backed up; by default in staging and production, not "
        "in development.",
    )
    storage: QuantityText | None = Field(
        None,
        description="Size of the volume claim for dumps, used without a destination; default: the "
        "database's size.",
    )


class Database(ApiModel):
    """The database component."""

    type: Literal["postgresql", "mysql"] = Field(
        "postgresql", description="Database software. Immutable."
    )
    version: ComponentVersion | None = Field(
        None,
        description="Its version: of postgresql a major one, 12 to 18 (17 by default), which "
        "cannot be changed later; "
        'of mysql such as "8.4" (the default), in quotes, which may go up one series at a time: '
        "5.7, 8.0, 8.4, 9.",
    )
    storage: QuantityText | None = Field(
        None,
        description="Size of each volume, such as 500Gi or 1Ti, rounded up to whole Gi; by default "
        "10Gi in development, 50Gi in staging, 100Gi in production.",
    )
    storage_class_name: ObjectName | None = Field(
        None, description="Storage class of the volumes; the cluster's default if unset. Immutable."
    )
    replicas: Int32 | None = Field(
        None,
        ge=1,
        le=5,
        description="Number of postgresql instances, the primary included; by default 1 in "
        "development, 2 in staging, 3 in production. mysql has one.",
    )
    backup: DatabaseBackup = Field(
        DatabaseBackup.model_construct(), description="Backups of the database."
    )
    resources: ResourceRequirements | None = Field(
        None,
        description="Compute resources of each instance; each amount by default that of the "
        "environment.",
    )
    deletion_policy: Literal["Retain", "Delete"] = Field(
        "Retain",
        description="What happens to the volumes when the database is deleted: Retain keeps the "
        "data.",
    )


class CacheComponent(ApiModel):
    """The cache component: a Valkey server, which speaks the Redis protocol."""

    enabled: bool = Field(True, description="Whether to create a cache.")
    resources: ResourceRequirements | None = Field(
        None,
        description="Compute resources of its container; each amount by default that of the "
        "environment.",
    )


class Queue(ApiModel):
    """The message queue: one server whose messages survive its pod."""

    type: Literal["rabbitmq", "nats"] = Field(
        "rabbitmq", description="Queue software: RabbitMQ, or NATS with JetStream. Immutable."
    )
    version: ComponentVersion | None = Field(
        None,
        description='Its version, in quotes: of rabbitmq such as "4.2" (the default), of nats such '
        'as "2.14" (the default). It cannot go down.',
    )
    storage: QuantityText | None = Field(
        None,
        description="Size of its volume, rounded up to whole Gi; by default 1Gi in development, "
        "5Gi in staging, 10Gi in production.",
    )
    storage_class_name: ObjectName | None = Field(
        None, description="Storage class of the volume; the cluster's default if unset. Immutable."
    )
    resources: ResourceRequirements | None = Field(
        None,
        description="Compute resources of the server; each amount by default that of the "
        "environment.",
    )
    deletion_policy: Literal["Retain", "Delete"] = Field(
        "Retain",
        description="What happens to the volume when the queue is deleted: Retain keeps the "
        "messages.",
    )


class Workload(ApiModel):
    """An application workload: a Deployment and a Service."""

    replicas: Int32 | None = Field(
        None,
        ge=1,
        description="Number of pods; by default 1 in development, 2 in staging, 3 in production.",
    )
    image: ImageName | None = Field(
        None, min_length=1, description="Image of the container, used as written."
    )
    port: Int32 = Field(8080, ge=1, le=65535, description="Port of the container and the Service.")
    readiness_path: str | None = Field(
        None,
        pattern=r"^/",
        description="HTTP path of the readiness probe; without it, a pod is ready as soon as it "
        "runs.",
    )
    env: list[EnvVar] = Field(
        [],
        description="Environment variables, in addition to those with the addresses of the other "
        "components.",
        json_schema_extra=keyed_by("name"),
    )
    resources: ResourceRequirements | None = Field(
        None,
        description="Compute resources of the container; replaces the environment's defaults as a "
        "whole.",
    )
    security_context: SecurityContext | None = Field(
        None,
        description="Security settings of the container; each field overrides the restricted "
        "default.",
    )
    autoscaling: Autoscaling | None = Field(
        None,
        description="Scales by CPU usage, with a HorizontalPodAutoscaler, instead of replicas.",
    )


class ServiceWorkload(Workload):
    """A further workload, which is created once those that it depends on are ready."""

    name: str = Field(
        pattern=r"^[a-z]([-a-z0-9]*[a-z0-9])?$",
        max_length=40,
        description="Its name: the Deployment and the Service are <name of the stack>-<name>.",
    )
    depends_on: list[str] = Field(
        [],
        description="Services, and components of the stack, that must be ready before it is "
        "created; their addresses are in its environment.",
    )


SERVICES: Any = Field(
    [],
    description="Further workloads beside backend and frontend.",
    json_schema_extra=keyed_by("name"),
)


class ComponentsStatus(Status):
    """The observed state."""

    phase: Literal["Deploying", "Running", "Degraded", "Failed"] | None = Field(
        None,
        description="Deploying until every component is ready, then Running; Degraded when one is "
        "no longer ready; Failed when the spec cannot be applied.",
    )
    endpoints: dict[str, str] | None = Field(None, description="URL of each component, by name.")


def ready_column(component: str, *, wide: bool = False) -> Column:
    """Return the column with a component's readiness."""
    path = f'.status.conditions[?(@.type=="{component}Ready")].status'
    return Column(
        component, path, description=f"Whether the {component.lower()} is ready.", wide=wide
    )
