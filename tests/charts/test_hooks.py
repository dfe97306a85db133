"""The chart's hooks for `helm test` and `helm uninstall`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gatewright.cli import main
from tests.charts.rendered import CHART, NAMESPACE
from tests.controlplane.plane import ControlPlane
from tests.gatewright.started import Gatewright, once

CRD = "crd/voteconfigs.voting.schoolofdevops.com"
CONFIGURATIONS = (
    "validatingwebhookconfiguration/gatewright",
    "mutatingwebhookconfiguration/gatewright",
)
LEFT = ("secret/gatewright-ca", "secret/gatewright-webhook-tls", "lease/gatewright-controller-lock")
TO_NOWHERE = {
    "strategy": "Webhook",
    "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {
            "service": {"name": "gatewright-webhook", "namespace": NAMESPACE, "path": "/convert"}
        },
    },
}


@pytest.mark.controlplane
def test_the_uninstall_hook_removes_everything_that_calls_the_webhook(
    render, empty_plane: ControlPlane
) -> None:
    """It has its account's rights only, and deletes configurations, conversion, Secrets and Lease; it runs twice."""
    empty_plane.create_namespace(NAMESPACE)
    empty_plane.kubectl("apply", "--server-side", "-f", str(CHART.parents[1] / "config/crd/bases"))
    everything, plain = render(hooks=True), render()
    hooks = [everything[key] for key in everything.keys() - plain.keys()]
    (job,) = (each for each in hooks if each["kind"] == "Job")
    rights = [each for each in hooks if each["kind"] not in ("Job", "Pod")]
    assert {each["metadata"]["annotations"]["helm.sh/hook"] for each in (job, *rights)} == {
        "pre-delete,post-delete"
    }
    configurations = [plain[key] for key in plain if key[0].endswith("WebhookConfiguration")]
    empty_plane.kubectl(
        "apply",
        "-f-",
        input={"apiVersion": "v1", "kind": "List", "items": [*rights, *configurations]},
    )
    for secret in LEFT[:2]:
        empty_plane.kubectl(
            "create", "secret", "generic", secret.partition("/")[2], "-n", NAMESPACE
        )
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": LEFT[2].partition("/")[2]},
    }
    empty_plane.kubectl("apply", "-n", NAMESPACE, "-f-", input=lease)
    empty_plane.kubectl(
        "patch", CRD, "--type=merge", "-p", json.dumps({"spec": {"conversion": TO_NOWHERE}})
    )

    kubeconfig = empty_plane.service_account_kubeconfig(
        NAMESPACE, job["spec"]["template"]["spec"]["serviceAccountName"]
    )
    (container,) = job["spec"]["template"]["spec"]["containers"]
    for said in (
        len(CONFIGURATIONS) + 1 + len(LEFT),
        1,
    ):  # the conversion is restored each time, as far as there is a CRD
        ended = once(*container["args"], "--kubeconfig", str(kubeconfig))
        assert (ended.returncode, ended.stderr.count("done")) == (0, said), ended.stderr
    for left in (*CONFIGURATIONS, *LEFT):
        assert "NotFound" in empty_plane.kubectl("get", left, "-n", NAMESPACE, check=False).stderr
    assert (
        empty_plane.kubectl("get", CRD, "-o=jsonpath={.spec.conversion}").stdout
        == '{"strategy":"None"}'
    )


@pytest.mark.controlplane
def test_missing_rights_of_the_hook_are_an_error(
    empty_plane: ControlPlane,
) -> None:
    """An account without rights changes nothing, and the Job fails with a line for each step."""
    empty_plane.create_namespace(NAMESPACE)
    empty_plane.kubectl("create", "serviceaccount", "nobody", "-n", NAMESPACE)
    ended = once(
        "unregister",
        "--kubeconfig",
        str(empty_plane.service_account_kubeconfig(NAMESPACE, "nobody")),
    )
    assert (ended.returncode, ended.stderr.count("403 Forbidden")) == (1, 6), ended.stderr


@pytest.mark.controlplane
def test_without_the_hook_nothing_runs_at_uninstall(render) -> None:
    """Only the test pod remains."""
    hooks = (
        render("uninstallHook.enabled=false", hooks=True).keys()
        - render("uninstallHook.enabled=false").keys()
    )
    assert hooks == {("Pod", "gatewright-test")}


@pytest.mark.controlplane
def test_the_test_pod_calls_the_installed_services(render) -> None:
    """These are the webhook and, if anyone may read them, the controller's metrics."""
    webhook = f"https://gatewright-webhook.{NAMESPACE}.svc/validate"
    metrics = f"http://gatewright-controller-manager-metrics.{NAMESPACE}.svc:8080/metrics"

    def urls(*sets: str, files: tuple[Path, ...] = ()) -> list[str]:
        (container,) = render(*sets, files=files, hooks=True)["Pod", "gatewright-test"]["spec"][
            "containers"
        ]
        assert container["command"][:2] == ["python", "-c"]
        assert container["command"][2].strip() == (CHART / "static/answers.py").read_text().strip()
        return container["command"][3:]

    assert urls() == [webhook, metrics]
    assert urls("webhook.enabled=false") == [metrics]
    assert urls(files=(CHART / "ci/hardened-values.yaml",)) == [webhook]


@pytest.mark.long
def test_the_test_pod_detects_a_missing_webhook(tmp_path: Path) -> None:
    """A webhook that answers passes, also if its endpoint is there late; a missing one fails."""
    with pytest.raises(SystemExit) as ended:
        main(["certs", str(tmp_path)])
    assert ended.value.code == 0
    pair = ("--tls-cert", str(tmp_path / "tls.crt"), "--tls-key", str(tmp_path / "tls.key"))
    webhook = Gatewright(
        None,
        tmp_path,
        "webhook",
        "--no-cluster",
        *pair,
    )
    script = [
        sys.executable,
        str(CHART / "static/answers.py"),
        f"{webhook.url}/validate",
        webhook.metrics_url,
    ]
    called = subprocess.Popen(script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        webhook.start()
        printed, errors = called.communicate(timeout=60)
        assert (called.returncode, printed.splitlines()) == (
            0,
            [f"{url}: 200" for url in script[2:]],
        ), errors
    finally:
        webhook.close()
    missing = subprocess.run(script, capture_output=True, text=True, timeout=60)
    assert missing.returncode == 1
    assert missing.stderr.startswith(f"{script[2]}: ")
