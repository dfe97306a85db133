"""AppStack: database, cache, backend and frontend, each optional, created one after the other."""

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


class AppStackSpec(ApiModel):
    """What should run; what is left out is not made."""

    environment: Environment = Field("development", description="What sizes, backups and spreading default to.")
    database: Database | None = Field(None, description="Where the data is.")
    cache: Cache | None = Field(None, description="The cache of backend and frontend.")
    backend: Workload | None = Field(None, description="What talks to the database.")
    frontend: Workload | None = Field(None, description="What talks to the backend.")


class AppStack(CustomResource):
    """An application with what it needs: each component is made once the one before it is ready."""

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
            ready_column("Backend"),
            ready_column("Frontend"),
            AGE,
            MESSAGE,
        ),
    )

    spec: AppStackSpec = Field(
        AppStackSpec.model_construct(), description="What should run; what is left out is not made."
    )
    status: ComponentsStatus = Field(default_factory=ComponentsStatus, description="What was last observed.")
