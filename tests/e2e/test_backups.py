"""Backups with kubectl: they are scheduled once their Secrets exist, and report each run."""

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.audit import WRITES
from tests.e2e.conftest import CONFIG, REGISTRY, Laptop

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

SAMPLE = list(yaml.safe_load_all((CONFIG / "samples/nightly-backup.yaml").read_text()))
PAGE = Path(__file__).parents[2] / "docs/kinds/backup.md"
MESSAGE = "hollow.gatewright.io/termination-message"  # termination messages of simulated pods


def looked_at(laptop: Laptop) -> int:
    """Return how often a Backup was reconciled."""
    lines = ((each.get("message"), each.get("backup.name")) for each in laptop.gatewright.logged())
    return sum(line == ("Reconciliation completed", "nightly-backup") for line in lines)


def run_now(
    laptop: Laptop,
    namespace: str,
    name: str,
    message: str,
    cronjob: str = "nightly-backup-cronjob",
    **container: Any,
) -> None:
    """Create a Job from a CronJob, as users do manually, that ends with this message."""
    options = [f"--from=cronjob/{cronjob}", "--dry-run=client", "-o=json"]
    job = json.loads(laptop.kubectl("create", "job", name, "-n", namespace, *options))
    template = job["spec"]["template"]
    template["metadata"].setdefault("annotations", {})[MESSAGE] = message
    template["spec"]["containers"][0].update(container)
    job["spec"]["backoffLimit"] = 1
    laptop.kubectl("create", "-n", namespace, "-f", "-", input=job)


def test_a_backup_from_its_secrets_to_its_last_run(laptop: Laptop, namespace: str) -> None:
    """It waits for its Secrets, creates its CronJob, and reports a successful and a failed Job."""

    def kubectl(*args: str, **given: Any) -> str:
        return laptop.kubectl("-n", namespace, *args, **given)

    def condition(type: str) -> str:
        template = f"{{range .status.conditions[?(@.type=='{type}')]}}{{.status}} {{.reason}}: {{.message}}{{end}}"
        return kubectl("get", "backup/nightly-backup", f"-o=jsonpath={template}")

    *secrets, backup = SAMPLE
    kubectl("apply", "-f-", input=backup)
    kubectl("wait", "--for=condition=Ready=false", "backup/nightly-backup")
    assert condition("Ready") == (
        "False Progressing: waiting for Secret backup-store, Secret shop-db-login, cronjob"
    )
    for secret in secrets:
        kubectl("apply", "-f-", input=secret)
    kubectl("wait", "--for=condition=Ready", "backup/nightly-backup", "--timeout=90s")
    cronjob = laptop.get("cronjob/nightly-backup-cronjob", namespace)
    pod = cronjob["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == f"{REGISTRY}/gatewright-backup-postgresql:1.1.0"
    assert condition("BackedUp") == "False NoneYet: no backup was made yet"

    run_now(laptop, namespace, "by-hand", '{"backup":"20261121T020000Z-x7k2p","bytes":42}')
    kubectl(
        "wait", "--for=jsonpath={.status.lastSize}=42", "backup/nightly-backup", "--timeout=90s"
    )
    status = laptop.get("backup/nightly-backup", namespace)["status"]
    completed = laptop.get("job/by-hand", namespace)["status"]["completionTime"]
    assert (status["lastSuccessfulTime"], status["lastBackup"]) == (
        completed,
        "20261121T020000Z-x7k2p",
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT02:00:00Z", status["nextTime"])
    assert (
        condition("BackedUp")
        == "True Succeeded: Job by-hand: backup 20261121T020000Z-x7k2p, 42 bytes"
    )
    with urllib.request.urlopen(laptop.gatewright.metrics_url) as answer:
        series = f'gatewright_backup_last_success_timestamp_seconds{{name="nightly-backup",namespace="{namespace}"}} 1.'
        assert series in answer.read().decode()

    said = "failed while dumping shop.dump: no such table"
    run_now(laptop, namespace, "in-vain", f"dumping\n{said}\n", image=f"{REGISTRY}/backup:fails")
    failed = "jsonpath={.status.conditions[?(@.type=='BackedUp')].reason}=Failed"
    kubectl("wait", f"--for={failed}", "backup/nightly-backup", "--timeout=90s")
    assert condition("BackedUp") == f"False Failed: Job in-vain: {said}"
    assert condition("Ready").startswith("True")
    after = laptop.get("backup/nightly-backup", namespace)["status"]
    assert (after["lastSuccessfulTime"], after["lastSize"]) == (completed, 42)

    mark, times = laptop.plane.audit_mark(), looked_at(laptop)
    kubectl("annotate", "backup/nightly-backup", "looked=at")
    laptop.gatewright.until("reconciled", lambda: looked_at(laptop) > times)
    written = laptop.plane.audit_events(mark, verb=WRITES, namespace=namespace)
    mine = [each["requestURI"] for each in written if each["userAgent"].startswith("gatewright")]
    assert [each for each in mine if "/events" not in each] == []


def test_a_drill_from_the_first_backup_to_a_damaged_one(laptop: Laptop, namespace: str) -> None:
    """It waits for the first backup, reports what it restored, and which backup is damaged."""

    def kubectl(*args: str, **given: Any) -> str:
        return laptop.kubectl("-n", namespace, *args, **given)

    def until(reason: str) -> str:
        found = f"jsonpath={{.status.conditions[?(@.type=='Restorable')].reason}}={reason}"
        kubectl("wait", f"--for={found}", "backup/nightly-backup", "--timeout=90s")
        template = "{.status.conditions[?(@.type=='Restorable')].message}"
        return kubectl("get", "backup/nightly-backup", f"-o=jsonpath={template}")

    for object in SAMPLE:
        kubectl("apply", "-f-", input=object)
    kubectl("wait", "--for=condition=Ready", "backup/nightly-backup", "--timeout=90s")
    assert until("NoneYet").startswith("no backup was restored yet: the next backup tells")
    word = '{"backup":"20261121T020000Z-x7k2p","bytes":42,"server":"postgres:16"}'
    run_now(laptop, namespace, "by-hand", word)
    kubectl("wait", "--for=create", "cronjob/nightly-backup-drill", "--timeout=90s")
    drill = laptop.get("cronjob/nightly-backup-drill", namespace)["spec"]["jobTemplate"]["spec"]
    (container,) = drill["template"]["spec"]["containers"]
    assert container["image"] == f"{REGISTRY}/postgres:16"

    restored = (
        '{"verified":"20261121T020000Z-x7k2p","databases":1,"tables":3,"rows":900}',
        "backup 20261121T020000Z-x7k2p was restored: 1 databases, 3 tables, 900 rows",
    )
    run_now(laptop, namespace, "good", restored[0], "nightly-backup-drill")
    assert until("Succeeded") == f"Job good: {restored[1]}"
    columns = kubectl("get", "backup/nightly-backup", "-o=wide").splitlines()[0].split()
    assert ("VERIFIED" in columns, "RESTORABLE" in columns) == (True, True)
    damaged = "failed while restoring 20261122T020000Z-x: verifying shop.dump in the store: no"
    image = f"{REGISTRY}/postgres:fails"
    run_now(laptop, namespace, "bad", damaged, "nightly-backup-drill", image=image)
    assert until("Failed") == f"Job bad: {damaged}"
    status = laptop.get("backup/nightly-backup", namespace)["status"]
    assert status["lastVerifiedBackup"] == "20261121T020000Z-x7k2p"
    assert (
        status["lastVerifiedTime"] == laptop.get("job/good", namespace)["status"]["completionTime"]
    )

    kubectl("patch", "backup/nightly-backup", "--type=merge", "-p", '{"spec":{"drill":null}}')
    kubectl("wait", "--for=delete", "cronjob/nightly-backup-drill", "--timeout=90s")


def test_a_backup_is_restored_by_one_command(laptop: Laptop, namespace: str) -> None:
    """It prints what will be replaced, asks, and reports how its Job ended, which is no backup."""

    def restore(*args: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        where = ["--kubeconfig", str(laptop.plane.kubeconfig), "-n", namespace]
        command = [sys.executable, "-m", "gatewright", "restore", *args, *where]
        return subprocess.run(command, input=answer, capture_output=True, text=True, timeout=60)

    for object in SAMPLE:
        laptop.kubectl("apply", "-n", namespace, "-f-", input=object)
    ready = ["wait", "--for=condition=Ready", "backup/nightly-backup", "--timeout=90s"]
    laptop.kubectl("-n", namespace, *ready)
    unknown = restore("nightly")
    assert unknown.returncode != 0
    assert (
        "there is no Backup nightly, and no PostgreSQL, AppStack or EcommercePlatform nightly with backups"
        in unknown.stderr
    )
    refused = restore("nightly-backup", answer="n\n")
    assert refused.returncode != 0
    assert "Replaces: tables of shop in the postgresql server shop-db" in refused.stdout
    assert laptop.kubectl("get", "jobs", "-n", namespace, "-o=name") == ""
    restored = restore("nightly-backup", "--yes", "--database", "shop", "--as", "copy")
    assert restored.returncode == 0, restored.stdout + restored.stderr
    assert restored.stdout.splitlines()[-1] == "restored"
    name = laptop.kubectl("get", "jobs", "-n", namespace, "-o=name").strip()
    job = laptop.get(name.replace("job.batch", "job"), namespace)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["/restore.sh", "latest", "shop", "copy"]
    status = laptop.get("backup/nightly-backup", namespace)["status"]
    assert "lastSuccessfulTime" not in status


def test_the_examples_of_the_page_are_accepted(laptop: Laptop, namespace: str) -> None:
    """These are its example, and the restore Job."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    kinds = [yaml.safe_load(block)["kind"] for block in blocks]
    assert kinds == ["Backup", "Job"]
    for block in blocks:
        laptop.kubectl("apply", "-n", namespace, "--dry-run=server", "-f-", input=block)
