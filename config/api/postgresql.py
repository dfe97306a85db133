"""PostgreSQL: one primary and streaming standbys, with users, databases and backups."""

from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from config.api.core import ResourceRequirements
from config.api.definition import AGE, MESSAGE, Column, Definition, Scale
from config.api.formats import ImageName, ObjectName
from config.api.meta import (
    INT_OR_STRING,
    ApiModel,
    CustomResource,
    Int32,
    Rfc3339Time,
    Status,
)
from config.api.storage import Dumps, StorageSize
from config.postgresql_parameters import DEFAULT_VERSION

PostgresqlVersion = Literal["12", "13", "14", "15", "16", "17", "18"]
ParameterValue = Annotated[int | str, WithJsonSchema(INT_OR_STRING)]
# 64Mi of it are for Patroni.
DEFAULT_RESOURCES = ResourceRequirements.model_construct(
    requests={"cpu": "250m", "memory": "576Mi"}, limits={"cpu": "1", "memory": "1088Mi"}
)


class PostgreSQLBackup(Dumps):
    """The schedule, the destination and the retention of the database's backups."""

    enabled: bool = Field(False, description="Whether the databases are backed up.")
    storage: StorageSize | None = Field(
        None,
        description="Size of the volume claim for dumps in whole Gi, such as 20Gi, used without a "
        "destination; default: the database's size.",
    )


class PostgreSQLUser(ApiModel):
    """A role that may log in. Secret <name>-user-<user> has its password (- instead of _)."""

    name: str = Field("", description="Name of the role: lower case letters, digits and _.")


class PostgreSQLDatabase(ApiModel):
    """A database."""

    name: str = Field("", description="Name of the database: lower case letters, digits, _ and -.")
    owner: str = Field("postgres", description="The role that owns it: one of users, or postgres.")


class PostgreSQLMonitoring(ApiModel):
    """Prometheus monitoring of the database."""

    enabled: bool = Field(
        False,
        description="Whether to run an exporter beside each instance, and annotate the pods for "
        "scraping.",
    )


class PostgreSQLRestore(ApiModel):
    """A backup to begin with."""

    backup: ObjectName = Field(
        "", description="Name of a Backup of PostgreSQL in the same namespace."
    )
    at: Rfc3339Time | None = Field(
        None, description="The newest backup begun by then is restored; default: the newest one."
    )


class PostgreSQLSpec(ApiModel):
    """The database to run."""

    version: PostgresqlVersion = Field(
        DEFAULT_VERSION, description="Major version. A later one needs majorUpgrade."
    )
    major_upgrade: Literal["Refused", "Reversible", "Final"] = Field(
        "Refused",
        description="What a later version does: nothing (Refused), or an upgrade in place. Its "
        "earlier data is kept for the way back (Reversible), or given up once all instances are "
        "ready (Final).",
    )
    storage: StorageSize = Field(
        "10Gi",
        description="Size of each instance's volume in whole Gi, such as 10Gi; it can grow if the "
        "storage class allows expansion.",
    )
    storage_class_name: ObjectName | None = Field(
        None, description="Storage class of the volumes; the cluster's default if unset. Immutable."
    )
    replicas: Int32 = Field(
        1,
        ge=1,
        le=5,
        description="Number of instances: one is the primary, the others are streaming standbys, "
        "one of which takes the place of a lost primary.",
    )
    synchronous: Literal["Preferred", "Required"] = Field(
        "Preferred",
        description="Commits wait for a standby. While none is available, the primary goes on "
        "alone (Preferred), or writes wait (Required, with three or more instances).",
    )
    parameters: dict[str, ParameterValue] = Field(
        {},
        description='Parameters of the server, such as work_mem: "16MB" or max_connections: 200.',
    )
    image: ImageName | None = Field(
        None,
        description="Image with PostgreSQL of this version and Patroni; default: "
        "gatewright-postgresql:<version>.",
    )
    resources: ResourceRequirements = Field(
        DEFAULT_RESOURCES,
        description="Compute resources of each instance; by default, amount by amount, requests of "
        "250m cpu and 576Mi memory and limits of 1 cpu and 1088Mi memory.",
    )
    backup: PostgreSQLBackup = Field(
        PostgreSQLBackup.model_construct(), description="Backups of all databases."
    )
    restore_from: PostgreSQLRestore | None = Field(
        None,
        description="A backup that a new database is restored from, once; it cannot be added "
        "later, nor changed once it is restored.",
    )
    users: list[PostgreSQLUser] = Field(
        [], description="Roles to create; a role removed from this list is not dropped."
    )
    databases: list[PostgreSQLDatabase] = Field(
        [], description="Databases to create; a database removed from this list is not dropped."
    )
    monitoring: PostgreSQLMonitoring = Field(
        PostgreSQLMonitoring.model_construct(), description="Metrics of the database."
    )
    deletion_policy: Literal["Retain", "Delete"] = Field(
        "Retain",
        description="What happens to the volume claims when this object is deleted: Retain keeps "
        "the data.",
    )


class PostgreSQLStatus(Status):
    """The observed state."""

    phase: Literal["Pending", "Deploying", "Running", "Degraded", "Failed"] | None = Field(
        None,
        description="Pending until the StatefulSet exists, Deploying until all instances are "
        "ready and the backup of restoreFrom is restored, then Running; Degraded when instances "
        "are lost later; Failed when the spec cannot be applied.",
    )
    replicas: Int32 | None = Field(None, description="Number of instances that exist.")
    ready_replicas: Int32 | None = Field(None, description="Number of instances that are ready.")
    version: str | None = Field(None, description="Running major version.")
    previous_version: str | None = Field(
        None, description="Major version before an upgrade that can be taken back."
    )
    storage: str | None = Field(None, description="Size of the smallest volume of an instance.")
    primary: str | None = Field(None, description="Pod of the primary, which Patroni chooses.")
    endpoint: str | None = Field(None, description="Host and port of the primary.")
    secret: str | None = Field(
        None, description="Secret with the username and password of the superuser."
    )
    selector: str | None = Field(None, description="Label selector of the pods.")
    last_backup_time: Rfc3339Time | None = Field(
        None, description="When the last successful backup was complete."
    )
    restored_from: str | None = Field(
        None, description="Name of the backup that the database was restored from."
    )
    roles_job: str | None = Field(
        None,
        description="Finished Job that created users and databases, if its time to live deletes "
        "it: it does not run again.",
    )


class PostgreSQL(CustomResource):
    """PostgreSQL: the controller creates the instances, Services, credentials and backups."""

    definition = Definition(
        group="database.example.com",
        version="v1",
        kind="PostgreSQL",
        plural="postgresqls",
        short_names=("pg",),
        columns=(
            Column(
                "Phase",
                ".status.phase",
                description="Pending, Deploying, Running, Degraded or Failed.",
            ),
            Column("Version", ".spec.version", description="Desired major version."),
            Column("Desired", ".spec.replicas", "integer", "Desired number of instances."),
            Column(
                "Ready", ".status.readyReplicas", "integer", "Number of instances that are ready."
            ),
            Column("Storage", ".spec.storage", description="Size of each volume."),
            AGE,
            Column(
                "Endpoint",
                ".status.endpoint",
                description="Host and port of the primary.",
                wide=True,
            ),
            MESSAGE,
        ),
        scale=Scale(),
    )

    spec: PostgreSQLSpec = Field(PostgreSQLSpec.model_construct(), description="The desired state.")
    status: PostgreSQLStatus = Field(
        default_factory=PostgreSQLStatus, description="The observed state."
    )
