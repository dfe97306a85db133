"""The plan of a Backup: tables of (spec, observed) -> plan."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.api.backup import Backup
from controller.reconcilers.backup import BACKUP, by_secret
from controller.reconcilers.resources import CRON_JOB, JOB, POD, SECRET
from controller.runtime.plan import Apply, Observed, Plan, Problem
from gatewright.testing import ApiServer, reconcile
from kube.resource import JsonObject

ROOT = Path(__file__).parents[3]
PAGE, SAMPLE = ROOT / "docs/kinds/backup.md", ROOT / "config/samples/nightly-backup.yaml"
NOW = datetime(2026, 11, 21, 17, 0, 30, tzinfo=UTC)
CONNECTION = {"host": "shop-db", "database": "shop", "secretRef": {"name": "login"}}
SPEC = {
    "source": {"type": "postgresql", "connection": CONNECTION},
    "destination": {
        "type": "s3",
        "bucket": "backups",
        "prefix": "/a/b/",
        "secretRef": {"name": "store"},
    },
}
METADATA = {
    "name": "nightly",
    "namespace": "shop",
    "uid": "1",
    "labels": {"platform": "store", "app": "x"},
}


def backup(status: JsonObject | None = None, **spec: Any) -> Backup:
    """A complete Backup."""
    return Backup.model_validate({"metadata": METADATA, "spec": {**SPEC, **spec}, "status": status})


def source(type: str, **connection: Any) -> JsonObject:
    """A source with changed fields of its connection; None removes a field."""
    return {"type": type, "connection": {**CONNECTION, **connection}}


def destination(**more: Any) -> JsonObject:
    """A destination with something else."""
    return {**SPEC["destination"], **more}


def cronjob() -> JsonObject:
    """Its CronJob."""
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly-cronjob", "uid": "cron"},
    }


def owned(name: str, uid: str, owner: str) -> JsonObject:
    """Metadata of an object with a controlling owner."""
    owners = [{"uid": owner, "controller": True}]
    return {
        "name": name,
        "uid": uid,
        "ownerReferences": owners,
        "creationTimestamp": f"2026-11-{uid[-2:]}T02:00:00Z",
    }


def job(day: str, *conditions: str, owner: str = "cron", command: str = "/backup.sh") -> JsonObject:
    """A Job of that day, with the conditions that are true."""
    ended = f"2026-11-{day}T02:10:00Z"
    container = {"name": "backup", "command": [command]}
    return {
        "metadata": owned(f"nightly-{day}", f"job-{day}", owner),
        "spec": {"template": {"spec": {"containers": [container]}}},
        "status": {
            **({"completionTime": ended} if "Complete" in conditions else {}),
            "conditions": [
                {
                    "type": condition,
                    "status": "True",
                    "lastTransitionTime": ended,
                    "message": f"it is {condition}",
                }
                for condition in conditions
            ],
        },
    }


def pod(day: str, code: int, message: str | None, *, state: str = "state") -> JsonObject:
    """The pod of a day's Job, whose container terminated with this result."""
    terminated = {
        "exitCode": code,
        "reason": "Error",
        **({} if message is None else {"message": message}),
    }
    status = {"name": "backup", state: {"terminated": terminated}}
    return {
        "metadata": owned(f"nightly-{day}-x", f"pod-{day}", f"job-{day}"),
        "status": {"containerStatuses": [status]},
    }


def made(day: str) -> JsonObject:
    """The pod of a day's successful backup; its size in bytes is the number of the day."""
    return pod(day, 0, f'{{"backup":"202611{day}T020000Z-x","bytes":{int(day)}}}')


def observed(
    *,
    jobs: Sequence[JsonObject] = (),
    pods: Sequence[JsonObject] = (),
    secrets: Sequence[str] = ("login", "store"),
) -> Observed:
    """The observed objects besides the CronJob."""
    there: dict[Any, Sequence[JsonObject]] = {
        (SECRET, "secret", name): [{"metadata": {"name": name}}] for name in secrets
    }
    return Observed(
        children=[cronjob()],
        found={**there, (JOB, "backup", "nightly"): jobs, (POD, "backup", "nightly"): pods},
    )


def planned(given: Observed | None = None, status: JsonObject | None = None, **spec: Any) -> Plan:
    """Its plan."""
    return BACKUP.plan(backup(status, **spec), given or Observed(), NOW)


def applied(plan: Plan) -> JsonObject:
    """The CronJob that a plan applies."""
    write = plan.steps[-2].writes[0]
    assert isinstance(write, Apply)
    return write.object


def environment(**spec: Any) -> dict[str, str]:
    """The variables of the container; values from a Secret as `$secret/key`."""
    (container,) = applied(planned(**spec))["spec"]["jobTemplate"]["spec"]["template"]["spec"][
        "containers"
    ]
    found = {}
    for variable in container["env"]:
        secret = variable.get("valueFrom", {}).get("secretKeyRef", {})
        found[variable["name"]] = (
            variable["value"] if "value" in variable else f"${secret['name']}/{secret['key']}"
        )
    return found


def backed_up(plan: Plan) -> tuple[str, str, str]:
    """Its condition BackedUp."""
    (condition,) = plan.status.to_api()["conditions"]
    return condition["status"], condition["reason"], condition["message"]


def test_the_cronjob_makes_one_backup_at_a_time_without_rights() -> None:
    """The whole CronJob, except its environment."""
    cronjob = applied(
        planned(
            schedule="@daily", suspend=True, activeDeadlineSeconds=60, serviceAccountName="saver"
        )
    )
    labels = {"gatewright.io/backup": "nightly", "platform": "store"}
    template = cronjob["spec"]["jobTemplate"]["spec"]["template"]
    (container,) = template["spec"].pop("containers")
    del container["env"]
    assert cronjob == {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly-cronjob", "namespace": "shop", "labels": labels},
        "spec": {
            "schedule": "@daily",
            "timeZone": "Etc/UTC",
            "suspend": True,
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": 3600,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 3,
            "jobTemplate": {
                "metadata": {"labels": labels},
                "spec": {"backoffLimit": 2, "activeDeadlineSeconds": 60, "template": template},
            },
        },
    }
    security = template["spec"].pop("securityContext")
    assert template == {
        "metadata": {"labels": labels},
        "spec": {
            "restartPolicy": "OnFailure",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "serviceAccountName": "saver",
            "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "64Mi"}}],
        },
    }
    assert (security["runAsNonRoot"], security["runAsUser"]) == (True, 1000)
    assert container == {
        "name": "backup",
        "image": "gatewright-backup-postgresql:1.1.0",
        "command": ["/backup.sh"],
        "resources": {
            "requests": {"cpu": "100m", "memory": "256Mi"},
            "limits": {"cpu": "1", "memory": "1Gi"},
        },
        "securityContext": {
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "scratch", "mountPath": "/tmp"}],
    }


def test_the_image_follows_the_source_and_the_registry() -> None:
    """There is one image per type, from the registry of the setting."""
    plan = BACKUP.plan(
        backup(source=source("mysql")), Observed(settings={"registry": "registry.company.com"}), NOW
    )
    pod = applied(plan)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == "registry.company.com/gatewright-backup-mysql:1.1.0"


def test_the_environment_has_every_setting_and_references_to_credentials() -> None:
    """The environment of a PostgreSQL backup to AWS S3."""
    assert environment(retention="2w") == {
        "SOURCE_TYPE": "postgresql",
        "SOURCE_HOST": "shop-db",
        "SOURCE_PORT": "5432",
        "SOURCE_DATABASE": "shop",
        "SOURCE_USERNAME": "$login/username",
        "SOURCE_PASSWORD": "$login/password",
        "RCLONE_CONFIG_DESTINATION_TYPE": "s3",
        "RCLONE_CONFIG_DESTINATION_PROVIDER": "AWS",
        "RCLONE_CONFIG_DESTINATION_REGION": "us-east-1",
        "RCLONE_CONFIG_DESTINATION_NO_CHECK_BUCKET": "true",
        "RCLONE_CONFIG_DESTINATION_ACCESS_KEY_ID": "$store/AWS_ACCESS_KEY_ID",
        "RCLONE_CONFIG_DESTINATION_SECRET_ACCESS_KEY": "$store/AWS_SECRET_ACCESS_KEY",
        "DESTINATION_PATH": "backups/a/b/shop/nightly",
        "RETENTION_SECONDS": "1209600",
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"source": source("mysql")}, {"SOURCE_TYPE": "mysql", "SOURCE_PORT": "3306"}),
        ({"source": source("mysql", port="3307")}, {"SOURCE_PORT": "3307"}),
        (
            {"source": source("mongodb")},
            {"SOURCE_PORT": "27017", "SOURCE_AUTHENTICATION_DATABASE": "admin"},
        ),
        (
            {"source": source("mongodb", authenticationDatabase="shop")},
            {"SOURCE_AUTHENTICATION_DATABASE": "shop"},
        ),
        (
            {"source": source("mysql", username="me")},
            {"SOURCE_USERNAME": "me", "SOURCE_PASSWORD": "$login/password"},
        ),
        (
            {
                "source": source(
                    "mysql", secretRef={"name": "other", "usernameKey": "u", "passwordKey": "p"}
                )
            },
            {"SOURCE_USERNAME": "$other/u", "SOURCE_PASSWORD": "$other/p"},
        ),
        (
            {"destination": destination(endpoint="http://minio:9000", region="eu-1")},
            {
                "RCLONE_CONFIG_DESTINATION_PROVIDER": "Other",
                "RCLONE_CONFIG_DESTINATION_ENDPOINT": "http://minio:9000",
                "RCLONE_CONFIG_DESTINATION_REGION": "eu-1",
            },
        ),
        (
            {"destination": destination(secretRef=None)},
            {"RCLONE_CONFIG_DESTINATION_ENV_AUTH": "true"},
        ),
        (
            {"destination": destination(type="gcs")},
            {"RCLONE_CONFIG_DESTINATION_SERVICE_ACCOUNT_CREDENTIALS": "$store/credentials.json"},
        ),
        (
            {"destination": destination(type="gcs", secretRef={"name": "g", "key": "key.json"})},
            {
                "RCLONE_CONFIG_DESTINATION_TYPE": "google cloud storage",
                "RCLONE_CONFIG_DESTINATION_SERVICE_ACCOUNT_CREDENTIALS": "$g/key.json",
            },
        ),
        (
            {"destination": destination(type="azure")},
            {
                "RCLONE_CONFIG_DESTINATION_TYPE": "azureblob",
                "RCLONE_CONFIG_DESTINATION_ACCOUNT": "$store/AZURE_STORAGE_ACCOUNT",
                "RCLONE_CONFIG_DESTINATION_KEY": "$store/AZURE_STORAGE_KEY",
            },
        ),
        ({"destination": destination(prefix="")}, {"DESTINATION_PATH": "backups/shop/nightly"}),
        ({"retention": "12h"}, {"RETENTION_SECONDS": "43200"}),
    ],
)
def test_the_environment_follows_the_spec(spec: JsonObject, expected: dict[str, str]) -> None:
    """Each field of the spec changes its variable."""
    found = environment(**spec)
    assert {name: found.get(name) for name in expected} == expected


def test_a_whole_server_is_named_by_no_database() -> None:
    """Without a database, the variable is absent."""
    assert "SOURCE_DATABASE" not in environment(source=source("mysql", database=None))


def test_every_field_is_traced_to_the_users_own() -> None:
    """Fields of the CronJob that come from the spec have an origin, which exists in the spec."""
    plan = planned(serviceAccountName="saver")
    (write,) = [write for step in plan.steps for write in step.writes]
    container = "spec.jobTemplate.spec.template.spec.containers[name=backup]"
    assert isinstance(write, Apply)
    assert write.origin["spec.schedule"] == "spec.schedule"
    assert write.origin[f"{container}.image"] == "spec.source.type"
    assert write.origin[f"{container}.env[name=SOURCE_HOST]"] == "spec.source.connection.host"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"source": {}},
            "spec.source.type, spec.source.connection.host, spec.source.connection.secretRef.name",
        ),
        ({"source": source("mysql", host="")}, "spec.source.connection.host"),
        ({"source": source("mysql", secretRef={})}, "spec.source.connection.secretRef.name"),
        ({"destination": {"type": "s3"}}, "spec.destination.bucket"),
        ({"destination": {"type": "azure", "bucket": "b"}}, "spec.destination.secretRef"),
        ({"destination": destination(secretRef={"key": "x"})}, "spec.destination.secretRef.name"),
    ],
)
def test_what_is_missing_is_named(spec: JsonObject, problem: str) -> None:
    """All missing fields are named together; an existing CronJob stays."""
    plan = planned(observed(), **spec)
    assert plan.problem == Problem(f"{problem}: must be set", "Incomplete")
    assert plan.steps == ()


def test_an_invalid_schedule_is_reported() -> None:
    """The controller reports an invalid schedule if no webhook has denied it."""
    assert planned(schedule="0 25 * * *").problem == Problem(
        'spec.schedule: "0 25 * * *" is not a cron schedule: wrong hour', "Invalid"
    )


def test_the_cronjob_waits_for_its_secrets() -> None:
    """A Secret that is not there yet is waited for by name."""
    plan = planned(observed(secrets=["store"]))
    assert [(step.name, step.ready) for step in plan.steps] == [
        ("Secret store", True),
        ("Secret login", False),
        ("cronjob", True),
        ("drill", True),
    ]
    secrets = ["Secret store", "Secret login"]
    assert [step.depends_on for step in plan.steps[-2:]] == [secrets, secrets]


def test_the_next_time_is_known_and_waited_for() -> None:
    """Once there is a CronJob that is not suspended; then it is looked at again."""
    plan = planned(observed())
    assert plan.status.to_api()["nextTime"] == "2026-11-22T02:00:00Z"
    assert plan.requeue_after == timedelta(hours=8, minutes=59, seconds=30)
    for other in (planned(), planned(observed(), suspend=True)):
        assert ("nextTime" in other.status.to_api(), other.requeue_after) == (False, None)


def test_the_last_good_backup_is_known() -> None:
    """The status has its time, name and size; Jobs of restores and of other owners do not count."""
    jobs = [
        job("20", "Complete"),
        job("19", "Complete"),
        job("22", "Complete", command="/restore.sh"),
        job("23", "Complete", owner="somebody"),
    ]
    plan = planned(observed(jobs=jobs, pods=[made("19"), made("20"), made("22"), made("23")]))
    status = plan.status.to_api()
    assert status["lastSuccessfulTime"] == "2026-11-20T02:10:00Z"
    assert (status["lastBackup"], status["lastSize"]) == ("20261120T020000Z-x", 20)
    assert backed_up(plan) == (
        "True",
        "Succeeded",
        "Job nightly-20: backup 20261120T020000Z-x, 20 bytes",
    )


def test_the_status_keeps_earlier_results() -> None:
    """The status stays after Jobs and pods are deleted."""
    before = planned(observed(jobs=[job("20", "Complete")], pods=[made("20")])).status.to_api()
    for jobs in ([], [job("19", "Complete")], [job("20", "Complete")]):
        after = planned(observed(jobs=jobs), before).status.to_api()
        assert {key: after[key] for key in before if key != "conditions"} == {
            key: before[key] for key in before if key != "conditions"
        }
    assert (
        planned(observed(jobs=[job("20", "Complete")]), before).status.to_api()["conditions"]
        == before["conditions"]
    )
    assert planned(observed(), before).status.to_api()["conditions"] == before["conditions"]


def test_a_success_without_a_word_has_no_size() -> None:
    """If the pod is gone, or has another message, the time is still set."""
    before = planned(observed(jobs=[job("19", "Complete")], pods=[made("19")])).status.to_api()
    for message in (None, "", "done", "[1]", '{"backup":"x"}', '{"backup":1,"bytes":"2"}'):
        plan = planned(observed(jobs=[job("20", "Complete")], pods=[pod("20", 0, message)]), before)
        status = plan.status.to_api()
        assert status["lastSuccessfulTime"] == "2026-11-20T02:10:00Z"
        assert ("lastBackup" in status, "lastSize" in status) == (False, False)
        assert backed_up(plan) == ("True", "Succeeded", "Job nightly-20: succeeded")


def test_a_failure_is_reported_during_and_after_retries() -> None:
    """The condition has the script's last message, even after its pod is deleted.

    The last good backup stays in the status.
    """
    good = planned(observed(jobs=[job("19", "Complete")], pods=[made("19")])).status.to_api()
    attempts = [
        pod("20", 1, "dumping\nfailed while dumping shop.dump: no such table\n", state="lastState")
    ]
    failing = planned(observed(jobs=[job("19", "Complete"), job("20")], pods=attempts), good)
    said = "Job nightly-20: failed while dumping shop.dump: no such table"
    assert backed_up(failing) == ("False", "Failing", said)
    ending = planned(
        observed(jobs=[job("19", "Complete"), job("20", "FailureTarget")]), failing.status.to_api()
    )
    assert backed_up(ending) == ("False", "Failing", said)
    failed = planned(observed(jobs=[job("20", "FailureTarget", "Failed")]), ending.status.to_api())
    assert backed_up(failed) == ("False", "Failed", said)
    assert failed.status.to_api()["lastSize"] == 19
    unheard = planned(observed(jobs=[job("20", "Failed")]), good)
    assert backed_up(unheard) == ("False", "Failed", "Job nightly-20: it is Failed")
    silent = planned(observed(jobs=[job("20")], pods=[pod("20", 137, None)]))
    assert backed_up(silent) == ("False", "Failing", "Job nightly-20: Error, exit code 137")


def test_the_reason_why_a_pod_does_not_start_is_reported() -> None:
    """The condition reports an image that cannot be pulled or a missing key of a Secret, also during retries."""

    def waiting(reason: str) -> JsonObject:
        status = {
            "name": "backup",
            "state": {"waiting": {"reason": reason, "message": "no key password"}},
        }
        return {
            "metadata": owned("x", "pod-20", "job-20"),
            "status": {"containerStatuses": [status]},
        }

    stuck = planned(observed(jobs=[job("20")], pods=[waiting("CreateContainerConfigError")]))
    said = ("False", "Failing", "Job nightly-20: CreateContainerConfigError: no key password")
    assert backed_up(stuck) == said
    again = planned(
        observed(jobs=[job("20")], pods=[waiting("ContainerCreating")]), stuck.status.to_api()
    )
    assert backed_up(again) == said


def test_a_first_attempt_changes_nothing() -> None:
    """While it runs, the status has the previous backup, or reports that there is none."""
    assert backed_up(planned(observed(jobs=[job("20")]))) == (
        "False",
        "NoneYet",
        "no backup was made yet",
    )
    before = planned(observed(jobs=[job("19", "Complete")], pods=[made("19")])).status.to_api()
    assert backed_up(planned(observed(jobs=[job("20")]), before))[:2] == ("True", "Succeeded")


def test_a_secret_enqueues_its_backups() -> None:
    """A Secret enqueues the Backups that name it, even invalid ones."""
    assert list(by_secret({"spec": SPEC})) == ["login", "store"]
    assert list(by_secret({"spec": {"source": {"connection": {"secretRef": "login"}}}})) == [
        "login"
    ]
    assert (
        list(by_secret({"spec": {"source": {"connection": {"secretRef": 1}}, "destination": None}}))
        == []
    )
    assert list(by_secret({})) == []


async def test_one_reconcile_makes_the_cronjob_once_its_secrets_are_there(
    server: ApiServer,
) -> None:
    """First only a status with the missing Secret is written; then the CronJob; then nothing."""
    server.create(
        BACKUP.resource, {"metadata": {"name": "nightly", "namespace": "default"}, "spec": SPEC}
    )
    await reconcile(BACKUP, server, "nightly")
    stored = server.get(BACKUP.resource, "nightly", "default")
    ready = stored["status"]["conditions"][-1]
    assert (ready["type"], ready["status"], ready["message"]) == (
        "Ready",
        "False",
        "waiting for Secret store, Secret login, cronjob",
    )
    for name in ("login", "store"):
        server.create(SECRET, {"metadata": {"name": name, "namespace": "default"}})
    mark = len(server.writes)
    await reconcile(BACKUP, server, "nightly")
    assert server.writes[mark:] == [
        "apply cronjobs default/nightly-cronjob",
        "apply backups/status default/nightly",
    ]
    await reconcile(BACKUP, server, "nightly")
    assert len(server.writes) == mark + 2
    assert (server.get(CRON_JOB, "nightly-cronjob", "default"))["spec"][
        "concurrencyPolicy"
    ] == "Forbid"


def test_the_page_restores_with_the_environment_of_the_backup() -> None:
    """The Job on the page has the environment of the page's Backup, except variables that only a backup needs."""
    (example, job) = map(
        yaml.safe_load, re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    )
    shown = {each["name"]: each for each in job["spec"]["template"]["spec"]["containers"][0]["env"]}
    example["metadata"]["namespace"] = "default"
    plan = BACKUP.plan(Backup.model_validate(example), Observed(), NOW)
    template = applied(plan)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    planned = {each["name"]: each for each in template["containers"][0]["env"]}
    only_here = {
        "SOURCE_DATABASE",
        "RETENTION_SECONDS",
        "RCLONE_CONFIG_DESTINATION_NO_CHECK_BUCKET",
    }
    assert shown.keys() == planned.keys() - only_here
    elsewhere = {"SOURCE_HOST", "SOURCE_USERNAME", "SOURCE_PASSWORD"}
    assert [name for name in shown.keys() - elsewhere if shown[name] != planned[name]] == []
    assert (
        job["spec"]["template"]["spec"]["containers"][0]["image"]
        == template["containers"][0]["image"]
    )


def test_the_sample_is_what_the_page_shows() -> None:
    """One example, in two places."""
    example = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)[0])
    assert example == list(yaml.safe_load_all(SAMPLE.read_text()))[-1]
