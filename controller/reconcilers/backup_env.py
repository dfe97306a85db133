"""The environment variables that pass a Backup's spec to images/backup.

Secrets are passed by reference only.
"""

from collections.abc import Iterator, Mapping

from config.api.backup import Backup, BackupSource
from config.api.storage import BackupDestination, SecretReference
from kube.resource import JsonObject

PORTS = {"postgresql": "5432", "mysql": "3306", "mongodb": "27017"}
UNITS = {"h": 3600, "d": 86400, "w": 604800}
S3_KEYS = {"ACCESS_KEY_ID": "AWS_ACCESS_KEY_ID", "SECRET_ACCESS_KEY": "AWS_SECRET_ACCESS_KEY"}
AZURE_KEYS = {"ACCOUNT": "AZURE_STORAGE_ACCOUNT", "KEY": "AZURE_STORAGE_KEY"}
GCS_KEY = "credentials.json"
GCS_LOGIN = "SERVICE_ACCOUNT_CREDENTIALS"
# Options that depend on the type of the store, not on the user.
FIXED = ("PROVIDER", "BUCKET_POLICY_ONLY", "NO_CHECK_BUCKET", "NO_CHECK_CONTAINER")
LOGIN = (*S3_KEYS, *AZURE_KEYS, GCS_LOGIN)

CONNECTION = "spec.source.connection"
CONNECTION_ORIGIN = {
    "SOURCE_HOST": f"{CONNECTION}.host",
    "SOURCE_PORT": f"{CONNECTION}.port",
    "SOURCE_DATABASE": f"{CONNECTION}.database",
    "SOURCE_USERNAME": f"{CONNECTION}.secretRef",
    "SOURCE_PASSWORD": f"{CONNECTION}.secretRef",
    "SOURCE_AUTHENTICATION_DATABASE": f"{CONNECTION}.authenticationDatabase",
    "RETENTION_SECONDS": "spec.retention",
}
STORE_ORIGIN = {
    "SOURCE_TYPE": "spec.source.type",
    "DESTINATION_PATH": "spec.destination.bucket",
    "RCLONE_CONFIG_DESTINATION_TYPE": "spec.destination.type",
    "RCLONE_CONFIG_DESTINATION_ENDPOINT": "spec.destination.endpoint",
    "RCLONE_CONFIG_DESTINATION_REGION": "spec.destination.region",
    "RCLONE_CONFIG_DESTINATION_ENV_AUTH": "spec.destination.secretRef",
    **dict.fromkeys(
        (f"RCLONE_CONFIG_DESTINATION_{each}" for each in FIXED), "spec.destination.type"
    ),
    **dict.fromkeys(
        (f"RCLONE_CONFIG_DESTINATION_{each}" for each in LOGIN), "spec.destination.secretRef"
    ),
}


def missing(backup: Backup) -> Iterator[str]:
    """Yield the required fields that are unset and have no default."""
    source, destination = backup.spec.source, backup.spec.destination
    if source.type is None:
        yield "spec.source.type"
    if not source.connection.host:
        yield f"{CONNECTION}.host"
    if source.connection.secret_ref is None or not source.connection.secret_ref.name:
        yield f"{CONNECTION}.secretRef.name"
    if not destination.bucket:
        yield "spec.destination.bucket"
    if destination.secret_ref is None and destination.type == "azure":
        yield "spec.destination.secretRef"  # it also has the name of the storage account
    if destination.secret_ref is not None and not destination.secret_ref.name:
        yield "spec.destination.secretRef.name"


def secrets(backup: Backup) -> dict[str, str]:
    """Return the Secrets that the pods need, each with the field that names it."""
    named = {
        "spec.destination.secretRef": backup.spec.destination.secret_ref,
        f"{CONNECTION}.secretRef": backup.spec.source.connection.secret_ref,
    }
    return {
        reference.name: field
        for field, reference in named.items()
        if reference is not None and reference.name
    }


def environment(backup: Backup) -> list[JsonObject]:
    """Return the container's environment for a complete Backup (`missing` yields nothing)."""
    return [
        *store(backup),
        *connection(backup.spec.source),
        value("RETENTION_SECONDS", str(seconds(backup.spec.retention))),
    ]


def store(backup: Backup) -> Iterator[JsonObject]:
    """Yield the variables of the store: all that reading a complete Backup's dumps needs."""
    yield value("SOURCE_TYPE", backup.spec.source.type or "")
    yield from destination(backup.spec.destination)
    path = folder(backup.spec.destination, backup.namespace, backup.name)
    yield value("DESTINATION_PATH", path)


def connection(source: BackupSource) -> Iterator[JsonObject]:
    """Yield the variables of the connection to the database."""
    connection, login = source.connection, source.connection.secret_ref
    if source.type is None or login is None:
        raise ValueError("the source is incomplete")
    yield value("SOURCE_HOST", connection.host or "")
    yield value("SOURCE_PORT", str(connection.port or PORTS[source.type]))
    if connection.database:
        yield value("SOURCE_DATABASE", connection.database)
    if source.type == "mongodb":
        yield value("SOURCE_AUTHENTICATION_DATABASE", connection.authentication_database or "admin")
    if connection.username:
        yield value("SOURCE_USERNAME", connection.username)
    else:
        yield secret("SOURCE_USERNAME", login.name, login.username_key)
    yield secret("SOURCE_PASSWORD", login.name, login.password_key)


def destination(destination: BackupDestination) -> Iterator[JsonObject]:
    """Yield the variables that configure the object store as rclone's remote `destination`."""
    credentials, given = destination.secret_ref, {"ENDPOINT": destination.endpoint}
    match destination.type:
        case "s3":
            yield from remote(
                {"TYPE": "s3", "PROVIDER": "Other" if destination.endpoint else "AWS"}
            )
            yield from remote(
                {"REGION": destination.region or "us-east-1", "NO_CHECK_BUCKET": "true"}
            )
            yield from login(credentials, S3_KEYS)
        case "gcs":
            yield from remote(
                {
                    "TYPE": "google cloud storage",
                    "BUCKET_POLICY_ONLY": "true",
                    "NO_CHECK_BUCKET": "true",
                }
            )
            yield from login(credentials, {GCS_LOGIN: (credentials and credentials.key) or GCS_KEY})
        case "azure":
            yield from remote({"TYPE": "azureblob", "NO_CHECK_CONTAINER": "true"})
            yield from login(credentials, AZURE_KEYS)
    yield from remote({key: text for key, text in given.items() if text})


def remote(options: Mapping[str, str]) -> Iterator[JsonObject]:
    """Yield the options of the remote."""
    for key, text in options.items():
        yield value(f"RCLONE_CONFIG_DESTINATION_{key}", text)


def login(credentials: SecretReference | None, keys: Mapping[str, str]) -> Iterator[JsonObject]:
    """Yield the credentials of the remote: a Secret's keys; by default the pod's own identity."""
    if credentials is None:
        yield from remote({"ENV_AUTH": "true"})
        return
    for option, key in keys.items():
        yield secret(f"RCLONE_CONFIG_DESTINATION_{option}", credentials.name, key)


def folder(destination: BackupDestination, namespace: str, name: str) -> str:
    """Return the path in the store; it is unique to one Backup object."""
    parts = (destination.bucket or "", *destination.prefix.split("/"), namespace, name)
    return "/".join(part for part in parts if part)


def seconds(retention: str) -> int:
    """Return the retention as the image reads it."""
    return int(retention[:-1]) * UNITS[retention[-1]]


def value(name: str, text: str) -> JsonObject:
    """Return a variable with a plain value."""
    return {"name": name, "value": text}


def secret(name: str, secret: str, key: str) -> JsonObject:
    """Return a variable whose value comes from a Secret."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}
