"""Backup: dumps of one database server or database, on a schedule, in an object store."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from config.api.core import ResourceRequirements
from config.api.definition import AGE, MESSAGE, READY, Column, Definition
from config.api.formats import DataKey, ImageName, ObjectName
from config.api.meta import (
    INT_OR_STRING,
    OPEN,
    ApiModel,
    CustomResource,
    Int64,
    Rfc3339Time,
    Status,
)
from config.api.storage import BackupDestination, Retention, Schedule, StorageSize

SourceType = Literal["postgresql", "mysql", "mongodb"]
DEFAULT_RESOURCES = ResourceRequirements.model_construct(
    requests={"cpu": "100m", "memory": "256Mi"}, limits={"cpu": "1", "memory": "1Gi"}
)

DRILL_RESOURCES = ResourceRequirements.model_construct(
    requests={"cpu": "100m", "memory": "512Mi"}, limits={"cpu": "1", "memory": "1Gi"}
)


class LoginReference(ApiModel):
    """A Secret with a login, in the same namespace."""

    name: ObjectName = Field("", description="Name of the Secret.")
    username_key: DataKey = Field("username", description="Key of the user's name.")
    password_key: DataKey = Field("password", description="Key of the password.")


def _name_reference(value: Any) -> Any:
    """Accept a plain string as a reference with that name."""
    if not isinstance(value, str | dict | LoginReference):
        raise ValueError(
            "must be the name of a Secret, or an object with name, usernameKey and passwordKey"
        )
    return {"name": value} if isinstance(value, str) else value


Login = Annotated[
    LoginReference,
    BeforeValidator(_name_reference),
    WithJsonSchema(
        {
            **OPEN,
            "description": "Secret in the same namespace with the login: name, usernameKey "
            "(username) and passwordKey (password); or only its name.",
        }
    ),
]
Port = Annotated[int | str, WithJsonSchema(INT_OR_STRING)]


class DatabaseConnection(ApiModel):
    """The connection to the database. Unknown keys are kept and ignored."""

    host: str | None = Field(None, description="Host name or address of the server.")
    port: Port | None = Field(
        None, description="Port; 5432, 3306 or 27017 by default, as the type says."
    )
    database: str | None = Field(
        None, description="Database to dump; default: all databases of the server."
    )
    username: str | None = Field(None, description="User name, if it is not in the Secret.")
    secret_ref: Login | None = Field(None)
    authentication_database: str | None = Field(
        None, description="For mongodb: the authentication database; admin by default."
    )


class BackupSource(ApiModel):
    """The database to dump."""

    type: SourceType | None = Field(None, description="postgresql, mysql (MariaDB too) or mongodb.")
    connection: DatabaseConnection = Field(
        DatabaseConnection.model_construct(),
        description="Connection to the database.",
        json_schema_extra=OPEN,
    )


class DrillQuery(ApiModel):
    """A question to the restored databases."""

    database: str | None = Field(
        None, description="Database to ask; default: spec.source.connection.database."
    )
    query: str = Field(
        "", description="SQL that returns true, such as SELECT count(*) > 1000 FROM orders."
    )


class BackupDrill(ApiModel):
    """Restores of the newest backup into a throw-away server, which show that it is restorable."""

    schedule: Schedule = "0 4 * * 0"
    storage: StorageSize = Field(
        "10Gi",
        description="Size of the throw-away server's volume in whole Gi, such as 10Gi; it must "
        "hold the databases.",
    )
    storage_class_name: ObjectName | None = Field(
        None, description="Storage class of that volume; the cluster's default if unset."
    )
    image: ImageName | None = Field(
        None,
        description="Image of the throw-away server, for databases with extensions; default: the "
        "official image of the server that was dumped, in its version.",
    )
    queries: list[DrillQuery] = Field(
        [],
        max_length=20,
        description="Questions to the restored databases; each must return true.",
    )
    resources: ResourceRequirements = Field(
        DRILL_RESOURCES,
        description="Compute resources of the throw-away server; by default, amount by amount, "
        "requests of 100m cpu and 512Mi memory and limits of 1 cpu and 1Gi memory.",
    )


class BackupSpec(ApiModel):
    """The source, the destination, the schedule and the retention of backups."""

    source: BackupSource = Field(
        BackupSource.model_construct(), description="The database to dump."
    )
    destination: BackupDestination = Field(
        BackupDestination.model_construct(), description="Where dumps go."
    )
    schedule: Schedule = "0 2 * * *"
    retention: Retention = "30d"
    drill: BackupDrill | None = Field(
        None, description="Restores the newest backup on a schedule, to know that it works."
    )
    suspend: bool = Field(False, description="Whether backups and drills are suspended.")
    active_deadline_seconds: Int64 = Field(
        21600,
        ge=60,
        description="Time limit of one backup in seconds, retries included; 6 hours by default.",
    )
    service_account_name: ObjectName | None = Field(
        None,
        description="ServiceAccount of the pods, for stores that authenticate by it; default: the "
        "namespace's default.",
    )
    resources: ResourceRequirements = Field(
        DEFAULT_RESOURCES,
        description="Compute resources of the container; by default, amount by amount, requests of "
        "100m cpu and 256Mi memory and limits of 1 cpu and 1Gi memory.",
    )


class BackupStatus(Status):
    """The observed state."""

    last_successful_time: Rfc3339Time | None = Field(
        None, description="When the last successful backup was complete."
    )
    last_size: Int64 | None = Field(
        None, description="Size of the last successful backup in the store, in bytes."
    )
    last_backup: str | None = Field(
        None, description="Name of the last successful backup, the argument of /restore.sh."
    )
    server: str | None = Field(
        None,
        description="Server that the last successful backup is of, with its version, such as "
        "postgres:16.",
    )
    last_verified_time: Rfc3339Time | None = Field(
        None, description="When the last successful drill had restored a backup."
    )
    last_verified_backup: str | None = Field(
        None, description="Name of the backup that the last successful drill restored."
    )
    next_time: Rfc3339Time | None = Field(None, description="When the next backup begins.")


class Backup(CustomResource):
    """Scheduled dumps of a database: the controller creates a CronJob."""

    definition = Definition(
        group="backup.example.com",
        version="v1",
        kind="Backup",
        plural="backups",
        short_names=("bk",),
        columns=(
            Column("Source", ".spec.source.type", description="postgresql, mysql or mongodb."),
            Column("Schedule", ".spec.schedule", description="Cron schedule of the backups."),
            Column(
                "Last Success",
                ".status.lastSuccessfulTime",
                "date",
                "Time since the last successful backup.",
            ),
            Column(
                "Size",
                ".status.lastSize",
                "integer",
                "Size of the last successful backup, in bytes.",
            ),
            Column("Next", ".status.nextTime", description="When the next backup begins."),
            Column(
                "Ready",
                READY,
                description="Whether backups are scheduled and succeed.",
            ),
            AGE,
            Column(
                "Verified",
                ".status.lastVerifiedTime",
                "date",
                "Time since a drill last restored a backup.",
                wide=True,
            ),
            Column(
                "Restorable",
                '.status.conditions[?(@.type=="Restorable")].status',
                description="Whether the last drill could restore a backup.",
                wide=True,
            ),
            Column(
                "Last Run",
                '.status.conditions[?(@.type=="BackedUp")].message',
                description="Result of the last backup.",
                wide=True,
            ),
            MESSAGE,
        ),
    )

    spec: BackupSpec = Field(
        BackupSpec.model_construct(), description="What to dump, where to, and when."
    )
    status: BackupStatus = Field(default_factory=BackupStatus, description="The observed state.")
