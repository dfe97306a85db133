"""EcommercePlatform: a shop with its components, sized by environment."""

from pydantic import Field

from config.api.components import (
    SERVICES,
    CacheComponent,
    ComponentsStatus,
    Database,
    EnvironmentName,
    Queue,
    ServiceWorkload,
    Workload,
    ready_column,
)
from config.api.definition import AGE, MESSAGE, Column, Definition
from config.api.formats import ObjectName
from config.api.meta import ApiModel, CustomResource


class Monitoring(ApiModel):
    """Prometheus monitoring of the platform."""

    enabled: bool = Field(True, description="Whether backend, frontend and database are scraped.")
    alerts: bool | None = Field(
        None, description="Whether to create alerts; by default in production only."
    )
    path: str = Field(
        "/metrics", pattern=r"^/", description="HTTP path of the metrics of backend and frontend."
    )


class EcommercePlatformSpec(ApiModel):
    """The components to run."""

    environment: EnvironmentName = Field(
        "development", description="Sets the defaults for sizes, backups, spreading and alerts."
    )
    frontend: Workload = Field(
        Workload.model_construct(), description="The workload behind the Ingress."
    )
    backend: Workload = Field(
        Workload.model_construct(),
        description="The workload that the frontend uses, and that uses the database.",
    )
    database: Database = Field(Database.model_construct(), description="The database server.")
    services: list[ServiceWorkload] = SERVICES
    cache: CacheComponent = Field(
        CacheComponent.model_construct(), description="The cache of backend and frontend."
    )
    queue: Queue | None = Field(
        None, description="The message queue of the backend; without it, none is created."
    )
    monitoring: Monitoring = Field(Monitoring.model_construct(), description="Metrics and alerts.")
    host: str | None = Field(
        None,
        description="DNS name of the Ingress, such as shop.example.com; without it, no Ingress is "
        "created.",
    )
    ingress_class_name: ObjectName | None = Field(
        None, description="Class of the Ingress; the cluster's default if unset."
    )
    tls_secret_name: ObjectName | None = Field(
        None,
        description="Secret with the certificate for the host; without it, the Ingress serves "
        "plain HTTP.",
    )


class EcommercePlatform(CustomResource):
    """A shop: the controller creates database, cache, backend, frontend, monitoring and Ingress."""

    definition = Definition(
        group="platform.example.com",
        version="v1",
        kind="EcommercePlatform",
        plural="ecommerceplatforms",
        short_names=("ecp",),
        columns=(
            Column(
                "Environment",
                ".spec.environment",
                description="development, staging or production.",
            ),
            Column("Phase", ".status.phase", description="Deploying, Running, Degraded or Failed."),
            ready_column("Database"),
            ready_column("Queue", wide=True),
            ready_column("Backend"),
            ready_column("Frontend"),
            Column("Host", ".spec.host", description="DNS name of the Ingress."),
            AGE,
            MESSAGE,
        ),
    )

    spec: EcommercePlatformSpec = Field(
        EcommercePlatformSpec.model_construct(), description="The components to run."
    )
    status: ComponentsStatus = Field(
        default_factory=ComponentsStatus, description="The observed state."
    )
