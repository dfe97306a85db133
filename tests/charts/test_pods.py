"""Values for pods, accounts, Services and budgets."""

from pathlib import Path

import pytest
import yaml

from tests.charts.rendered import NAMESPACE

pytestmark = pytest.mark.controlplane  # helm is built as the control plane is

CONTROLLER, WEBHOOK = DEPLOYMENTS = ("gatewright-controller-manager", "gatewright-webhook")
EXTRA = {
    "logLevel": "warning",
    "extraArgs": ["--object-metrics"],
    "extraEnv": [
        {"name": "HTTPS_PROXY", "valueFrom": {"secretKeyRef": {"name": "proxy", "key": "url"}}}
    ],
    "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ssl/extra"}],
    "revisionHistoryLimit": 2,
    "livenessProbe": {"failureThreshold": 5},
    "webhook": {"extraArgs": [], "logLevel": "debug", "readinessProbe": {"periodSeconds": 1}},
}


def test_registries_are_read_with_mounted_logins_and_authorities(render):
    """The Secret and the ConfigMap that the user names; the controller's are those of its audit."""
    settings = (
        "registries.credentials=logins",
        "registries.ca=authorities",
        "registries.insecure={registry.local:5000}",
    )
    objects = render(*settings)
    pod = objects.pod(WEBHOOK)
    arguments = pod["containers"][0]["args"]
    config = "--registry-config=/etc/gatewright/registries/.dockerconfigjson"
    first = arguments.index(config)
    assert arguments[first : first + 3] == [
        config,
        "--registry-ca=/etc/gatewright/registry-ca/ca.crt",
        "--insecure-registries=registry.local:5000",
    ]
    volumes = {each["name"]: each for each in pod["volumes"]}
    assert volumes["registries"]["secret"] == {"secretName": "logins"}
    assert volumes["registry-ca"]["configMap"] == {"name": "authorities"}
    assert "logins" not in str(objects.pod(CONTROLLER))
    controller = render(*settings, "audit.enabled=true").pod(CONTROLLER)
    assert set(controller["containers"][0]["args"]) >= set(arguments[first : first + 3])
    volumes = {each["name"]: each for each in controller["volumes"]}
    assert volumes["registries"]["secret"] == {"secretName": "logins"}


def test_extra_arguments_variables_and_volumes(render, tmp_path: Path):
    """They follow the chart's own; a list for one Deployment replaces the common one."""
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(EXTRA))
    objects = render(files=(tmp_path / "values.yaml",))
    for name, level, last in (
        (CONTROLLER, "warning", "--object-metrics"),
        (WEBHOOK, "debug", "--tls-secret=gatewright-webhook-tls"),
    ):
        (container,) = objects.pod(name)["containers"]
        assert f"--log-level={level}" in container["args"]
        assert container["args"][-1] == last
        assert container["env"] == EXTRA["extraEnv"]
        assert EXTRA["extraVolumeMounts"][0] in container["volumeMounts"]
        assert EXTRA["extraVolumes"][0] in objects.pod(name)["volumes"]
        assert container["livenessProbe"]["failureThreshold"] == 5
        assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "health"}
        assert objects["Deployment", name]["spec"]["revisionHistoryLimit"] == 2
    webhook = objects.pod(WEBHOOK)["containers"][0]["readinessProbe"]
    assert (webhook["periodSeconds"], webhook["timeoutSeconds"]) == (1, 4)


def test_a_controller_without_webhook_may_have_volumes(render, tmp_path: Path):
    """It has only those of the values."""
    (tmp_path / "values.yaml").write_text(yaml.safe_dump({**EXTRA, "webhook": {"enabled": False}}))
    assert (
        render(files=(tmp_path / "values.yaml",)).pod(CONTROLLER)["volumes"]
        == EXTRA["extraVolumes"]
    )


def test_the_webhook_has_no_cpu_limit_by_default(render):
    """A throttled webhook delays every request; the controller keeps the published limit."""
    limits = [render().pod(name)["containers"][0]["resources"]["limits"] for name in DEPLOYMENTS]
    assert limits == [{"cpu": "500m", "memory": "512Mi"}, {"memory": "512Mi"}]
    given = render("webhook.resources.limits.cpu=2").pod(WEBHOOK)["containers"][0]["resources"][
        "limits"
    ]
    assert given == {"cpu": 2, "memory": "512Mi"}


def test_accounts_may_have_other_names_and_annotations(render):
    """Roles, pods and the webhook's setting for the controller's account use the name."""
    sets = ("controller.serviceAccount.name=operator", "serviceAccount.annotations.team=platform")
    objects = render(*sets)
    assert objects["ServiceAccount", "operator"]["metadata"]["annotations"] == {"team": "platform"}
    assert objects.pod(CONTROLLER)["serviceAccountName"] == "operator"
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        (subject,) = objects[kind, CONTROLLER]["subjects"]
        assert subject == {"kind": "ServiceAccount", "name": "operator", "namespace": NAMESPACE}
    assert all("--controller-account=operator" in objects.arguments(name) for name in DEPLOYMENTS)
    assert objects.pod(WEBHOOK)["serviceAccountName"] == WEBHOOK


def test_accounts_may_exist_already(render):
    """No account is rendered, and the names are used."""
    objects = render("serviceAccount.create=false", "webhook.serviceAccount.name=gate")
    assert not [name for kind, name in objects if kind == "ServiceAccount"]
    assert objects.pod(WEBHOOK)["serviceAccountName"] == "gate"


def test_the_processes_never_share_an_account(template):
    """The webhook would get the controller's rights."""
    result = template("controller.serviceAccount.name=a", "webhook.serviceAccount.name=a")
    assert result.returncode != 0
    assert (
        "controller.serviceAccount.name and webhook.serviceAccount.name must differ"
        in result.stderr
    )


def test_budgets_may_be_changed_or_disabled(render):
    """The budgets of one Deployment or of both can be set."""
    objects = render(
        "webhook.podDisruptionBudget.maxUnavailable=25%",
        "controller.podDisruptionBudget.enabled=false",
    )
    assert objects["PodDisruptionBudget", WEBHOOK]["spec"]["maxUnavailable"] == "25%"
    assert ("PodDisruptionBudget", CONTROLLER) not in objects


def test_a_false_value_of_one_deployment_overrides_true(render):
    """It applies to one Deployment."""
    objects = render(
        "controller.podSecurityContext.runAsNonRoot=false", "controller.serviceAccount.create=false"
    )
    assert [objects.pod(name)["securityContext"]["runAsNonRoot"] for name in DEPLOYMENTS] == [
        False,
        True,
    ]
    assert [name for kind, name in objects if kind == "ServiceAccount"] == [WEBHOOK]


def test_services_may_have_a_type_and_annotations(render):
    """The webhook's Service and the metrics Services, which Prometheus may find by annotation."""
    objects = render(
        "webhook.service.type=NodePort",
        "webhook.service.annotations.a=b",
        "metricsService.annotations.scrape=yes",
    )
    assert objects["Service", WEBHOOK]["spec"]["type"] == "NodePort"
    assert objects["Service", WEBHOOK]["metadata"]["annotations"] == {"a": "b"}
    for name in DEPLOYMENTS:
        assert objects["Service", f"{name}-metrics"]["metadata"]["annotations"] == {"scrape": "yes"}


def test_the_monitor_may_relabel(render):
    """Targets and samples, with a separate time-out."""
    (endpoint,) = render(
        "serviceMonitor.enabled=true",
        "serviceMonitor.scrapeTimeout=5s",
        "serviceMonitor.relabelings[0].targetLabel=cluster",
        "serviceMonitor.metricRelabelings[0].action=labeldrop",
    )["ServiceMonitor", "gatewright"]["spec"]["endpoints"]
    assert endpoint["scrapeTimeout"] == "5s"
    assert endpoint["relabelings"] == [{"targetLabel": "cluster"}]
    assert endpoint["metricRelabelings"] == [{"action": "labeldrop"}]


def test_webhook_time_outs_reach_the_controller(render):
    """The controller registers the webhook with them."""
    arguments = render("webhook.timeoutSeconds.validating=10").arguments(CONTROLLER)
    assert {"--validating-timeout-seconds=10", "--mutating-timeout-seconds=1"} <= set(arguments)


def test_a_rollout_with_host_network_does_not_hang(render):
    """A node has each port once, so the old pod ends first."""
    deployment = render("webhook.hostNetwork=true")["Deployment", WEBHOOK]
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_common_annotations_are_on_everything(render):
    """Annotations of an object are kept."""
    objects = render(
        "commonAnnotations.owner=platform", "certManager.enabled=true", "dashboard.enabled=true"
    )
    assert {each["metadata"]["annotations"]["owner"] for each in objects.values()} == {"platform"}
    assert (
        len(objects["ValidatingWebhookConfiguration", "gatewright"]["metadata"]["annotations"]) == 2
    )


def test_the_ca_of_clients_is_mounted(render):
    """The webhook reads it from a ConfigMap; by default it asks for no certificate."""
    pod = render("webhook.clientCA=clients")["Deployment", "gatewright-webhook"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert "--client-ca=/etc/gatewright/client-ca/ca.crt" in container["args"]
    assert {"name": "client-ca", "configMap": {"name": "clients"}} in pod["spec"]["volumes"]
    mount = {"name": "client-ca", "mountPath": "/etc/gatewright/client-ca", "readOnly": True}
    assert mount in container["volumeMounts"]
    assert "client-ca" not in str(render()["Deployment", "gatewright-webhook"])
