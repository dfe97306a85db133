import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.api.policy import ClusterAdmissionPolicy

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/gatewright"
MODES = sorted(CHART.glob("ci/*-values.yaml"))
NAMESPACE = "gatewright-system"
PER_PROCESS = ("ClusterRole", "ClusterRoleBinding", "Deployment", "PodDisruptionBudget", "ServiceAccount")

# The published table of values, with its defaults.
PUBLISHED = """
replicaCount: 2
image: {repository: gatewright, tag: "", pullPolicy: IfNotPresent}
resources:
  limits: {cpu: 500m, memory: 512Mi}
  requests: {cpu: 100m, memory: 128Mi}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          labelSelector:
            matchExpressions: [{key: app.kubernetes.io/name, operator: In, values: [gatewright]}]
          topologyKey: kubernetes.io/hostname
leaderElection: {enabled: true, leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 2s}
webhook: {enabled: true, port: 9443, certManager: {enabled: false}}
certManager: {enabled: false}
policies: {preset: none, action: Deny, registries: []}
registry: ""
"""

Object = dict[str, Any]
Template = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def template(helm: Path) -> Template:
    """`helm template` with values files and `--set` expressions."""

    def run(*sets: str, files: tuple[Path, ...] = (), release: str = "gatewright") -> subprocess.CompletedProcess[str]:
        command = [helm, "template", release, CHART, "--namespace", NAMESPACE]
        command += [f"--values={file}" for file in files] + [f"--set={each}" for each in sets]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    return run


@pytest.fixture
def render(template: Template) -> Callable[..., dict[tuple[str, str], Object]]:
    """What `helm template` prints, by kind and name."""

    def run(*sets: str, **options: Any) -> dict[tuple[str, str], Object]:
        result = template(*sets, **options)
        assert result.returncode == 0, result.stderr
        objects = [each for each in yaml.safe_load_all(result.stdout) if each]
        return {(each["kind"], each["metadata"]["name"]): each for each in objects}

    return run


def pod(objects: dict[tuple[str, str], Object], name: str) -> Object:
    """The pod's spec in a Deployment."""
    return objects["Deployment", name]["spec"]["template"]["spec"]


def arguments(objects: dict[tuple[str, str], Object], name: str) -> list[str]:
    """The arguments of a Deployment's only container."""
    (container,) = pod(objects, name)["containers"]
    return container["args"]


def rules(role: Object, resource: str) -> list[Object]:
    """The rules of a role that are about a resource."""
    return [rule for rule in role["rules"] if resource in rule["resources"]]


@pytest.mark.parametrize("mode", [None, *MODES], ids=lambda mode: mode.stem if mode else "defaults")
def test_every_mode_lints(helm: Path, mode: Path | None):
    """`helm lint --strict` has nothing to say, whatever the mode."""
    command = [helm, "lint", "--strict", CHART] + ([f"--values={mode}"] if mode else [])
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout


def test_the_published_values_are_the_defaults(render, tmp_path: Path):
    """A values file with just the published keys and their defaults renders what no values file renders."""
    (tmp_path / "values.yaml").write_text(PUBLISHED)
    assert render(files=(tmp_path / "values.yaml",)) == render()


def test_names_are_the_published_ones(render):
    """Deployments, Services, accounts, roles and configurations have the names that documents and scripts rely on."""
    controller, webhook = "gatewright-controller-manager", "gatewright-webhook"
    assert set(render()) == {
        ("ClusterRole", "gatewright-admin"),
        ("ClusterRole", "gatewright-edit"),
        ("ClusterRole", "gatewright-view"),
        ("ConfigMap", "gatewright-policies"),
        ("CustomResourceDefinition", "webapps.example.com"),
        ("MutatingWebhookConfiguration", "gatewright"),
        ("Role", controller),
        ("RoleBinding", controller),
        ("Service", f"{controller}-metrics"),
        ("Service", webhook),
        ("Service", f"{webhook}-metrics"),
        ("ValidatingWebhookConfiguration", "gatewright"),
        *((kind, name) for kind in PER_PROCESS for name in (controller, webhook)),
    }


@pytest.mark.parametrize(
    "files", [(), (CHART / "ci/monitoring-values.yaml",), (CHART / "ci/cert-manager-values.yaml",)]
)
def test_everything_is_labelled(render, files):
    """Every object says what it belongs to, so that one label finds all of it."""
    for object in render(files=files).values():
        labels = object["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "gatewright"
        assert {"app.kubernetes.io/instance", "app.kubernetes.io/component", "app.kubernetes.io/version"} <= set(labels)


@pytest.mark.parametrize("name", ["gatewright-controller-manager", "gatewright-webhook"])
def test_pods_are_restricted(render, name):
    """Our own pods ask for nothing that Pod Security `restricted` would refuse, and have a read-only root."""
    spec = pod(render(), name)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == 1000
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
    }
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "health"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "health"}
    assert {"name": "health", "containerPort": 8081} in container["ports"]
    assert {"name": "metrics", "containerPort": 8080} in container["ports"]


def test_the_webhook_outlives_the_connections_of_the_api_server(render):
    """Connections kept for 90 seconds end before the pod is killed, and no pod goes before its successor is ready."""
    deployment = render()["Deployment", "gatewright-webhook"]
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] >= 100
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


def test_the_webhook_mounts_its_own_pair_and_nothing_else(render):
    """The Secret may come later than the pod; the CA's key is mounted nowhere."""
    volumes = pod(render(), "gatewright-webhook")["volumes"]
    secrets = [volume["secret"] for volume in volumes if "secret" in volume]
    assert [(secret["secretName"], secret["optional"]) for secret in secrets] == [("gatewright-webhook-tls", True)]
    assert not any("secret" in volume for volume in pod(render(), "gatewright-controller-manager")["volumes"])


def test_configurations_are_rendered_empty(render):
    """Nothing is sent to a webhook that does not answer yet: the controller fills the configurations."""
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        assert "webhooks" not in render()[kind, "gatewright"]


def test_definitions_survive_an_uninstall(render):
    """The custom resources of users do not go with the chart."""
    metadata = render()["CustomResourceDefinition", "webapps.example.com"]["metadata"]
    assert metadata["annotations"] == {"helm.sh/resource-policy": "keep"}


@pytest.mark.parametrize(
    "typo",
    [
        "replicaCounts=3",
        "image.tags=v1",
        "resources.limit.cpu=1",
        "policies.prefix=production",
        "policies.preset=staging",
        "policies.action=deny",
        "leaderElection.enable=false",
        "leaderElection.leaseDuration=15",
        "controller.replicas=1",
        "webhook.prt=9443",
        "webhook.port=8080",
        "webhook.certManager.enable=true",
        "certmanager.enabled=true",
        "serviceMonitor.enabled=yes",
    ],
)
def test_a_typo_fails(template, typo):
    """An unknown key or an impossible value stops the installation and is named."""
    result = template(typo)
    assert result.returncode != 0
    assert typo.split("=")[0].split(".")[0] in result.stderr


def test_without_leader_election_one_controller_is_allowed(template):
    """Two controllers without a Lease would both write: the render fails and says what to set."""
    result = template("leaderElection.enabled=false")
    assert result.returncode != 0
    assert "set controller.replicaCount to 1" in result.stderr


@pytest.mark.parametrize("replicas", ["replicaCount=1", "controller.replicaCount=1"])
def test_without_leader_election_there_is_no_lease(render, replicas):
    """No Lease is used or permitted, and a new controller starts only after the old one has ended."""
    objects = render("leaderElection.enabled=false", replicas)
    name = "gatewright-controller-manager"
    assert "--no-leader-elect" in arguments(objects, name)
    assert not rules(objects["Role", name], "leases")
    assert objects["Deployment", name]["spec"]["strategy"] == {"type": "Recreate"}


def test_the_lease_is_the_controllers_to_configure(render):
    """Name and times reach the controller, and the name its rights."""
    objects = render("leaderElection.id=lock", "leaderElection.leaseDuration=30s")
    assert {"--lease-name=lock", "--lease-duration=30s", "--renew-deadline=10s", "--retry-period=2s"} <= set(
        arguments(objects, "gatewright-controller-manager")
    )
    assert [
        rule.get("resourceNames") for rule in rules(objects["Role", "gatewright-controller-manager"], "leases")
    ] == [
        None,
        ["lock"],
    ]


def test_full_name_override_renames_everything(render):
    """One value puts the whole installation under another name."""
    objects = render("fullnameOverride=webapp-operator")
    assert ("Deployment", "webapp-operator-controller-manager") in objects
    assert ("ValidatingWebhookConfiguration", "webapp-operator") in objects
    assert not [name for _, name in objects if name.startswith("gatewright")]
    assert "--lease-name=webapp-operator-controller-lock" in arguments(objects, "webapp-operator-controller-manager")


def test_another_release_is_another_name(render):
    """Two releases do not meet; the label by which people find the logs stays."""
    deployment = render(release="blue")["Deployment", "blue-gatewright-webhook"]
    assert deployment["metadata"]["labels"]["app.kubernetes.io/name"] == "gatewright"
    assert deployment["metadata"]["labels"]["app.kubernetes.io/instance"] == "blue"


def test_name_override_reaches_the_affinity(render):
    """Replicas keep apart by the name that their labels carry."""
    affinity = pod(render("nameOverride=operator"), "gatewright-operator-webhook")["affinity"]["podAntiAffinity"]
    (term,) = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["weight"] == 100
    assert term["podAffinityTerm"]["labelSelector"]["matchExpressions"] == [
        {"key": "app.kubernetes.io/name", "operator": "In", "values": ["operator"]}
    ]


def test_a_setting_for_one_deployment_leaves_the_other_alone(render):
    """Under `controller` or `webhook`, image and resources change key by key, other settings as a whole."""
    objects = render(files=(CHART / "ci/names-values.yaml",))
    controller, webhook = (pod(objects, f"webapp-operator-{name}") for name in ("controller-manager", "webhook"))
    assert controller["containers"][0]["resources"]["limits"] == {"cpu": "500m", "memory": "1Gi"}
    assert webhook["containers"][0]["resources"]["limits"] == {"cpu": "500m", "memory": "512Mi"}
    assert "affinity" in controller
    assert "affinity" not in webhook
    assert objects["Deployment", "webapp-operator-controller-manager"]["spec"]["replicas"] == 2
    assert objects["Deployment", "webapp-operator-webhook"]["spec"]["replicas"] == 3
    assert {each["containers"][0]["image"] for each in (controller, webhook)} == {
        "registry.example.com/gatewright:v1.0.0"
    }


def test_without_the_webhook_only_the_controller_is_left(render):
    """A controller alone has no rights on webhook configurations or Secrets."""
    objects = render("webhook.enabled=false")
    assert not [name for kind, name in objects if "webhook" in name or "Webhook" in kind or kind == "ConfigMap"]
    assert not rules(objects["Role", "gatewright-controller-manager"], "secrets")
    assert "volumes" not in pod(objects, "gatewright-controller-manager")


@pytest.mark.parametrize("key", ["certManager.enabled", "webhook.certManager.enabled"])
def test_cert_manager_takes_over(render, key):
    """Either key makes cert-manager issue the pair and inject the CA, and takes the Secrets from the controller."""
    objects = render(f"{key}=true")
    certificate = objects["Certificate", "gatewright-webhook"]["spec"]
    assert certificate["secretName"] == "gatewright-webhook-tls"
    assert "gatewright-webhook.gatewright-system.svc" in certificate["dnsNames"]
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        annotations = objects[kind, "gatewright"]["metadata"]["annotations"]
        assert annotations == {"cert-manager.io/inject-ca-from": "gatewright-system/gatewright-webhook"}
    assert not rules(objects["Role", "gatewright-controller-manager"], "secrets")


@pytest.mark.parametrize("action", ["Deny", "Warn", "Audit"])
def test_the_preset_carries_the_shipped_policies(render, action):
    """The ConfigMap holds the policies of config/policies, with action and registries from the values."""
    sets = (
        "policies.preset=production",
        f"policies.action={action}",
        "policies.registries={a.example.com,b.example.com/x}",
    )
    mounted = yaml.safe_load_all(render(*sets)["ConfigMap", "gatewright-policies"]["data"]["preset.yaml"])
    expected = []
    for policy in yaml.safe_load_all((ROOT / "config/policies/production.yaml").read_text()):
        policy["spec"]["validationActions"] = [action]
        if policy["spec"]["policy"] == "image-registries":
            policy["spec"]["params"]["registries"] = ["a.example.com", "b.example.com/x"]
        ClusterAdmissionPolicy.model_validate(policy)
        expected.append(policy)
    assert list(mounted) == expected


def test_the_preset_without_registries_keeps_its_own(render):
    """With an empty list the registries are those of the shipped file."""
    mounted = render("policies.preset=production")["ConfigMap", "gatewright-policies"]["data"]["preset.yaml"]
    assert "registry.company.com" in mounted


def test_no_preset_is_no_policy(render):
    """By default nothing is denied: the mounted file is there, for the webhook to watch, and empty."""
    mounted = render()["ConfigMap", "gatewright-policies"]["data"]
    assert [list(yaml.safe_load_all(text)) for text in mounted.values()] == [[]]


def test_monitoring(render):
    """The two alerts have their published names, group and conditions, and the monitor keeps our labels."""
    objects = render(files=(CHART / "ci/monitoring-values.yaml",))
    (endpoint,) = objects["ServiceMonitor", "gatewright"]["spec"]["endpoints"]
    assert (endpoint["port"], endpoint["honorLabels"]) == ("metrics", True)
    (group,) = objects["PrometheusRule", "gatewright"]["spec"]["groups"]
    assert group["name"] == "webapp-operator"
    down, errors = group["rules"]
    job = 'up{job="gatewright-controller-manager-metrics"}'
    assert (down["alert"], down["expr"], down["for"]) == ("WebAppOperatorDown", f"{job} == 0 or absent({job})", "5m")
    assert (errors["alert"], errors["expr"], errors["for"]) == (
        "WebAppReconcileErrors",
        "rate(webapp_errors_total[5m]) > 0.1",
        "2m",
    )
    assert [rule["labels"]["severity"] for rule in group["rules"]] == ["critical", "warning"]
    assert all(rule["annotations"].keys() == {"summary", "description"} for rule in group["rules"])


def test_the_job_of_the_alert_is_a_value(render):
    """Where the metrics are scraped under another job, the alert says so."""
    objects = render("prometheusRule.enabled=true", "prometheusRule.job=webapp-operator")
    (down, _) = objects["PrometheusRule", "gatewright"]["spec"]["groups"][0]["rules"]
    assert down["expr"] == 'up{job="webapp-operator"} == 0 or absent(up{job="webapp-operator"})'
