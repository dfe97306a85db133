"""AppStack: database, cache, queue, backend and frontend, each optional, created in order."""

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
from config.api.meta import ApiModel, CustomResource


class AppStackSpec(ApiModel):
    """The components to run; an absent component is not created."""

    environment: EnvironmentName = Field(
        "development", description="Sets the defaults for sizes, backups and spreading."
    )
    database: Database | None = Field(None, description="The database server.")
    cache: CacheComponent | None = Field(None, description="The cache of backend and frontend.")
    queue: Queue | None = Field(None, description="The message queue of the backend.")
    backend: Workload | None = Field(None, description="The workload that uses the database.")
    frontend: Workload | None = Field(None, description="The workload that uses the backend.")
    services: list[ServiceWorkload] = SERVICES


class AppStack(CustomResource):
    """An application with its dependencies: each component is created after the previous one."""

    definition = Definition(
        group="app.example.com",
        version="v1",
        kind="AppStack",
        plural="appstacks",
        short_names=("stack",),
        columns=(
            Column("Phase", ".status.phase", description="Deploying, Running, Degraded or Failed."),
            ready_column("Database"),
            ready_column("Cache"),
            ready_column("Queue", wide=True),
            ready_column("Backend"),
            ready_column("Frontend"),
            AGE,
            MESSAGE,
        ),
    )

    spec: AppStackSpec = Field(
        AppStackSpec.model_construct(),
        description="The components to run; an absent component is not created.",
    )
    status: ComponentsStatus = Field(
        default_factory=ComponentsStatus, description="The observed state."
    )
