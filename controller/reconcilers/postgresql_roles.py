"""Users and databases of a PostgreSQL: a Secret for each password, and a Job that creates them.

The Job's name has a hash of its input, the Secrets included: a change creates another Job, which
applies all users and databases again.
"""

import hashlib
import json
from collections.abc import Sequence

from config.api.postgresql import PostgreSQL
from config.postgresql_names import SUPERUSER, USER, FieldFault, faults
from controller.reconcilers.postgresql_pods import (
    COMPONENT,
    client,
    credentials,
    image_source,
    metadata,
    mount,
    origin,
    pod,
    volumes,
)
from controller.reconcilers.resources import JOB, SECRET
from controller.runtime.plan import (
    Apply,
    CreateOnly,
    Delete,
    Observed,
    Problem,
    Random,
    Reference,
    Write,
)
from kube.resource import JsonObject

TRIES = 10
JOB_ORIGIN = {
    **origin("spec.template"),
    "spec.template.spec.containers[name=roles].env[name=DATABASES]": "spec.databases",
    "spec.template.spec.volumes[name=users]": "spec.users",
}


def wrong(database: PostgreSQL) -> list[FieldFault]:
    """Return the faults of users and databases."""
    databases = [(each.name, each.owner) for each in database.spec.databases]
    return list(faults([user.name for user in database.spec.users], databases))


def secrets(database: PostgreSQL) -> list[CreateOnly]:
    """Return the Secrets, which are only created.

    One is for the superuser and the standbys, and one for each user.
    """
    keys = ("password", "replication-password")
    own = {"username": SUPERUSER, "replication-username": "replicator"}
    return [
        CreateOnly(
            _secret(database, credentials(database), own),
            {f"data.{key}": Random(32) for key in keys},
            origin=origin(),
        ),
        *(_user_secret(database, name, field) for name, field in _users(database).items()),
    ]


def _user_secret(database: PostgreSQL, name: str, field: str) -> CreateOnly:
    """Return the Secret of one user; `field` is where the user is named."""
    named = dict.fromkeys(("metadata.name", "stringData.username"), field)
    secret = _secret(database, secret_of(database, name), {"username": name})
    return CreateOnly(secret, {"data.password": Random(32)}, origin=origin() | named)


def secret_of(database: PostgreSQL, user: str) -> str:
    """Return the name of the Secret with a user's password."""
    return f"{database.name}-user-{user.replace('_', '-')}"


def _secret(database: PostgreSQL, name: str, values: dict[str, str]) -> JsonObject:
    about = metadata(database, name, "credentials")
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": about,
        "type": "Opaque",
        "stringData": values,
    }


def _users(database: PostgreSQL) -> dict[str, str]:
    """Return the names of the users, each with the field that names it."""
    fields: dict[str, str] = {}
    for at, user in enumerate(database.spec.users):
        if USER.fullmatch(user.name):
            fields.setdefault(user.name, f"spec.users[{at}].name")
    return fields


def job(database: PostgreSQL, observed: Observed, version: str) -> JsonObject | None:
    """Return the Job that creates users and databases.

    Return None if there are none, or if some are invalid.
    """
    if not _has_any(database) or wrong(database):
        return None
    spec = {
        "backoffLimit": TRIES,
        "template": {
            "metadata": {"labels": metadata(database, "", "roles")["labels"]},
            "spec": _pod(database, observed, version),
        },
    }
    stored = [
        observed.child(SECRET, write.object["metadata"]["name"]) for write in secrets(database)
    ]
    versions = [
        object and (object["metadata"]["uid"], object["metadata"]["resourceVersion"])
        for object in stored
    ]
    digest = hashlib.sha256(json.dumps([spec, versions], sort_keys=True).encode()).hexdigest()[:8]
    about = metadata(database, f"{database.name}-roles-{digest}", "roles")
    return {"apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": about, "spec": spec}


def _has_any(database: PostgreSQL) -> bool:
    return bool(database.spec.users or database.spec.databases)


def _pod(database: PostgreSQL, observed: Observed, version: str) -> JsonObject:
    runs = client(database, observed, version, "roles")
    lines = "\n".join(f"{each.name} {each.owner}" for each in database.spec.databases)
    passwords = [
        {
            "secret": {
                "name": secret_of(database, name),
                "items": [{"key": "password", "path": name}],
            }
        }
        for name in _users(database)
    ]
    container = {
        **runs,
        "env": [*runs["env"], {"name": "DATABASES", "value": lines}],
        "volumeMounts": [*runs["volumeMounts"], mount("users", "/users")],
    }
    users = {"name": "users", "projected": {"sources": passwords, "defaultMode": 0o440}}
    # With restartPolicy OnFailure, a failed Job deletes its pod, and with it the log.
    return {**pod([container], [*volumes(database), users]), "restartPolicy": "Never"}


def _delete_superseded(
    database: PostgreSQL, observed: Observed, desired: JsonObject | None
) -> list[Delete]:
    """Return the deletions of Jobs that a newer one replaced."""
    if desired is None and _has_any(database):
        return []
    jobs = [
        job
        for job in observed.find(JOB, "instance", database.name)
        if job["metadata"]["labels"][COMPONENT] == "roles"
    ]
    names = {each["metadata"]["name"]: each["metadata"] for each in jobs}
    names.pop(desired["metadata"]["name"] if desired else "", None)
    return [
        Delete(Reference(JOB, name, about["uid"], about["namespace"]))
        for name, about in names.items()
        if observed.child(JOB, name) is not None
    ]


def is_done(database: PostgreSQL, observed: Observed, desired: JsonObject | None) -> bool:
    """Return whether the Job has finished; it may have been deleted by its time to live."""
    return (
        desired is None
        or _condition(observed, desired, "Complete") is not None
        or _is_expired(database, observed, desired)
    )


def writes(database: PostgreSQL, observed: Observed, desired: JsonObject | None) -> list[Write]:
    """Return the creation of the Job, and the deletions of those that it replaces.

    A Job that finished and that its time to live deletes is not created again.
    """
    deletes = _delete_superseded(database, observed, desired)
    if desired is None or _is_expired(database, observed, desired):
        return [*deletes]
    image = {"spec.template.spec.containers[name=roles].image": image_source(database)}
    return [Apply(desired, JOB_ORIGIN | image), *deletes]


def expiring(database: PostgreSQL, observed: Observed, desired: JsonObject | None) -> str | None:
    """Return the name of the finished Job, for the status, if its time to live deletes it."""
    if desired is None or not _is_expired(database, observed, desired):
        return None
    return str(desired["metadata"]["name"])


def _is_expired(database: PostgreSQL, observed: Observed, desired: JsonObject) -> bool:
    """Return whether the finished Job is deleted by its time to live, which an admission rule set.

    A Job without one stays. Deleting it by hand runs it again.
    """
    stored = observed.child(JOB, desired["metadata"]["name"])
    if stored is None:
        return bool(database.status.roles_job == desired["metadata"]["name"])
    has_end = stored.get("spec", {}).get("ttlSecondsAfterFinished") is not None
    return has_end and _condition(observed, desired, "Complete") is not None


def failure(observed: Observed, desired: JsonObject | None) -> Problem | None:
    """Return why the Job failed."""
    failed = None if desired is None else _condition(observed, desired, "Failed")
    if desired is None or failed is None:
        return None
    name = desired["metadata"]["name"]
    return Problem(
        f"{failed.get('message', '')}: see the log of job/{name}, and delete it to try again",
        "JobFailed",
    )


def _condition(observed: Observed, desired: JsonObject, type: str) -> JsonObject | None:
    stored = observed.child(JOB, desired["metadata"]["name"]) or {}
    conditions: Sequence[JsonObject] = stored.get("status", {}).get("conditions") or ()
    return next(
        (each for each in conditions if each["type"] == type and each["status"] == "True"), None
    )
