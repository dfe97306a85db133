from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from config.api.backup import Backup, BackupStatus
from config.crds import definition


def read(**spec) -> Backup:
    """The Backup with this spec, as the API server sends it."""
    return Backup.model_validate(
        {"apiVersion": "backup.example.com/v1", "kind": "Backup", "metadata": {}, "spec": spec}
    )


def test_nothing_is_required():
    """Absent fields have the documented defaults, or are reported as missing later."""
    assert Backup.model_validate({"metadata": {}}).spec.to_api() == {
        "source": {"connection": {}},
        "destination": {"type": "s3", "prefix": ""},
        "schedule": "0 2 * * *",
        "retention": "30d",
        "suspend": False,
        "activeDeadlineSeconds": 21600,
        "resources": {
            "requests": {"cpu": "100m", "memory": "256Mi"},
            "limits": {"cpu": "1", "memory": "1Gi"},
        },
    }


@pytest.mark.parametrize(
    "reference", ["db", {"name": "db"}, {"name": "db", "usernameKey": "user", "other": 1}]
)
def test_a_login_is_a_reference_or_a_mere_name(reference):
    """The connection is open: both ways to name a Secret are understood."""
    login = read(source={"connection": {"secretRef": reference}}).spec.source.connection.secret_ref
    assert (login.name, login.password_key) == ("db", "password")


@pytest.mark.parametrize("reference", [5, ["db"], True])
def test_the_error_for_an_invalid_login_describes_a_valid_one(reference):
    """The message names the API's field and type, not those of pydantic."""
    with pytest.raises(
        ValidationError,
        match="must be the name of a Secret, or an object with name, usernameKey and",
    ):
        read(source={"connection": {"secretRef": reference}})


def test_a_connection_may_have_more_than_we_know():
    """Unknown keys are no fault, and the API server keeps them."""
    connection = {"host": "db", "port": "5432", "tablespace": {"fast": True}}
    assert (
        read(source={"type": "mysql", "connection": connection}).spec.source.connection.port
        == "5432"
    )
    (version,) = definition(Backup)["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    open = spec["source"]["properties"]["connection"]
    assert open["x-kubernetes-preserve-unknown-fields"] is True
    assert open["properties"]["port"] == {
        "description": "Port; 5432, 3306 or 27017 by default, as the type says.",
        "x-kubernetes-int-or-string": True,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": {"type": "oracle"}},
        {"destination": {"type": "ftp"}},
        {"retention": "30"},
        {"retention": "0d"},
        {"retention": "1y"},
        {"activeDeadlineSeconds": 59},
        {"schedule": ""},
    ],
)
def test_what_cannot_be_is_refused(wrong):
    """The bounds of the schema."""
    with pytest.raises(ValidationError):
        read(**wrong)


def test_the_status_is_written_as_the_api_server_does():
    """Times have whole seconds in UTC; unknown fields are omitted."""
    status = BackupStatus(
        last_successful_time=datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), last_size=7
    )
    assert status.to_api() == {"lastSuccessfulTime": "2026-01-02T03:04:05Z", "lastSize": 7}
