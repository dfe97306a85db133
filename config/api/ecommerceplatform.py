"""EcommercePlatform: a shop's database, cache, backend, frontend, monitoring and Ingress, sized by its environment."""

from pydantic import Field

from config.api.components import (
    Cache,
    ComponentsStatus,
    Database,
    Environment,
    Workload,
    ready_column,
)
from config.api.definition import AGE, MESSAGE, Column, Definition
from config.api.meta import ApiModel, CustomResource


class Monitoring(ApiModel):
    """What Prometheus sees of the platform."""

    enabled: bool = Field(True, description="Whether backend, frontend and database are scraped.")
    alerts: bool | None = Field(None, description="Whether there are alerts; by default in production only.")
    path: str = Field("/metrics", pattern=r"^/", description="Where backend and frontend serve their metrics.")


class EcommercePlatformSpec(ApiModel):
    """What should run."""

    environment: Environment = Field("development", description="What sizes, backups, spreading and alerts default to.")
    frontend: Workload = Field(Workload.model_construct(), description="What visitors reach, through the Ingress.")
    backend: Workload = Field(
        Workload.model_construct(), description="What the frontend talks to, and what talks to the database."
    )
    database: Database = Field(Database.model_construct(), description="Where the data is.")
    cache: Cache = Field(Cache.model_construct(), description="The cache of backend and frontend.")
    monitoring: Monitoring = Field(Monitoring.model_construct(), description="Metrics and alerts.")
    host: str | None = Field(
        None, description="DNS name that the Ingress answers for, such as shop.example.com; without it there is none."
    )
    ingress_class_name: str | None = Field(None, description="Class of the Ingress; the cluster's default if unset.")
    tls_secret_name: str | None = Field(
        None, description="Secret with the certificate for the host; without it the Ingress speaks plain HTTP."
    )


class EcommercePlatform(CustomResource):
    """A shop: the controller makes its database, cache, backend, frontend, monitoring and Ingress."""

    definition = Definition(
        group="platform.example.com",
        version="v1",
        kind="EcommercePlatform",
        plural="ecommerceplatforms",
        short_names=("ecp",),
        columns=(
            Column("Environment", ".spec.environment", description="development, staging or production."),
            Column("Phase", ".status.phase", description="Deploying, Running, Degraded or Failed."),
            ready_column("Database"),
            ready_column("Backend"),
            ready_column("Frontend"),
            Column("Host", ".spec.host", description="DNS name that the Ingress answers for."),
            AGE,
            MESSAGE,
        ),
    )

    spec: EcommercePlatformSpec = Field(EcommercePlatformSpec.model_construct(), description="What should run.")
    status: ComponentsStatus = Field(default_factory=ComponentsStatus, description="What was last observed.")
