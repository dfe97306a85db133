"""Backup fields that several kinds share: destination, schedule and retention."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from config.api.formats import DataKey, ObjectName
from config.api.meta import ApiModel

Schedule = Annotated[
    str,
    Field(
        min_length=1,
        description="Cron schedule: minute, hour, day of month, month and day of week, such as "
        '"0 2 * * *", or a word such as "@daily".',
    ),
]
WHOLE_GI = "^[0-9]+Gi$"


def _in_gi(size: str) -> str:
    if not re.fullmatch(WHOLE_GI, size):
        raise ValueError("must be whole Gi; write it as 10Gi (1Ti is 1024Gi)")
    return size


StorageSize = Annotated[
    str,
    AfterValidator(_in_gi),
    Field(
        json_schema_extra={
            "pattern": WHOLE_GI,
            # The message for a pattern is the pattern; this one says what to write.
            "x-kubernetes-validations": [
                {
                    "rule": f"self.matches('{WHOLE_GI}')",
                    "message": "must be whole Gi, such as 10Gi (1Ti is 1024Gi)",
                }
            ],
        }
    ),
]
Retention = Annotated[
    str,
    Field(
        pattern=r"^[1-9][0-9]{0,4}[hdw]$",
        description='How long a backup is kept: a number of hours, days or weeks, such as "30d".',
    ),
]


class SecretReference(ApiModel):
    """A Secret in the same namespace."""

    name: ObjectName = Field("", description="Name of the Secret.")
    key: DataKey | None = Field(None, description="Key in the Secret, if one value is meant.")


class BackupDestination(ApiModel):
    """An object store that backups go to."""

    type: Literal["s3", "gcs", "azure"] = Field("s3", description="Kind of object store.")
    bucket: str | None = Field(None, description="Bucket; for azure the container.")
    prefix: str = Field(
        "", description="Prefix of the names of all backups, such as shop/postgresql."
    )
    endpoint: str | None = Field(
        None, description="URL of a store outside the cloud provider, such as http://minio:9000."
    )
    region: str | None = Field(
        None, description="For s3: region of the bucket; us-east-1 by default."
    )
    secret_ref: SecretReference | None = Field(
        None,
        description="Secret with the store's credentials; without one, the pod's own identity is "
        "used.",
    )


class Dumps(ApiModel):
    """The schedule, the destination and the retention of a database server's backups."""

    schedule: Schedule = "0 2 * * *"
    retention: Retention = "30d"
    destination: BackupDestination | None = Field(
        None,
        description="Object store for the dumps; without one, they go to their own volume claim.",
    )
