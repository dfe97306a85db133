import subprocess
from pathlib import Path

import click
import pytest
import yaml
from click.core import ParameterSource

from config.settings import load_settings
from gatewright.cli import gatewright
from tests.charts.rendered import CHART, MODES

pytestmark = pytest.mark.controlplane  # helm is built as the control plane is

# The published table of values, with its defaults.
DEPLOYMENTS = ("gatewright-controller-manager", "gatewright-webhook")
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


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.stem if mode else "defaults")
def test_every_mode_lints(helm: Path, mode: Path | None):
    """`helm lint --strict` reports nothing in any mode."""
    command = [helm, "lint", "--strict", CHART] + ([f"--values={mode}"] if mode else [])
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.stem if mode else "defaults")
def test_the_commands_accept_their_arguments(render, mode: Path | None):
    """The command line accepts the pods' arguments."""
    for (kind, name), object in render(files=(mode,) if mode else ()).items():
        if kind == "Deployment":
            verb, *arguments = object["spec"]["template"]["spec"]["containers"][0]["args"]
            command = gatewright.get_command(click.Context(gatewright), verb)
            context = command.make_context(name, arguments, help_option_names=["-h", "--help"])
            source = context.get_parameter_source
            given = {
                key: context.params[key]
                for key in context.params
                if source(key) is ParameterSource.COMMANDLINE
            }
            load_settings(given, environment={})


def test_every_setting_can_be_set(render, tmp_path: Path):
    """A setting without a chart key is an environment variable of one or both processes."""
    values = {
        "env": {"GATEWRIGHT_POD_KINDS": "a/v1/B=spec"},
        "controller": {"env": {"GATEWRIGHT_WORKERS": "10"}},
    }
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    found = {
        name: {
            variable["name"]: variable["value"]
            for variable in object["spec"]["template"]["spec"]["containers"][0]["env"]
        }
        for (kind, name), object in render(files=(tmp_path / "values.yaml",)).items()
        if kind == "Deployment"
    }
    both = {"GATEWRIGHT_POD_KINDS": "a/v1/B=spec"}
    assert found == {
        "gatewright-controller-manager": {**both, "GATEWRIGHT_WORKERS": "10"},
        "gatewright-webhook": both,
    }
    assert load_settings({}, environment=found["gatewright-controller-manager"]).workers == 10


def test_the_published_values_are_the_defaults(render, tmp_path: Path):
    """A values file with the published keys and their defaults renders the same as no values file.

    The anti-affinity is an exception: without a value, it is set per component.
    """
    (tmp_path / "values.yaml").write_text(PUBLISHED)
    objects, default = render(files=(tmp_path / "values.yaml",)), render()
    for name in DEPLOYMENTS:
        ((by_name,), (_, by_component)) = (kept_apart(each, name) for each in (objects, default))
        assert by_name == {
            "key": "app.kubernetes.io/name",
            "operator": "In",
            "values": ["gatewright"],
        }
        component = name.removeprefix("gatewright-")
        assert by_component == {
            "key": "app.kubernetes.io/component",
            "operator": "In",
            "values": [component],
        }
        del objects.pod(name)["affinity"], default.pod(name)["affinity"]
    assert objects == default


def kept_apart(objects, name):
    """Return the label expressions of a Deployment's pod anti-affinity."""
    (term,) = objects.pod(name)["affinity"]["podAntiAffinity"][
        "preferredDuringSchedulingIgnoredDuringExecution"
    ]
    assert (term["weight"], term["podAffinityTerm"]["topologyKey"]) == (
        100,
        "kubernetes.io/hostname",
    )
    return term["podAffinityTerm"]["labelSelector"]["matchExpressions"]


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
        "image.digest=latest",
        "kinds=WebApp",
        "policies.failurePolicy=ignore",
        "crds.enabled=false",
        "networkPolicy.apiServerPorts={https}",
        "kinds={WebAp}",
        "controller.kinds={WebApp}",
        "webhook.logLevel=verbose",
        "serviceAccount.name=shared",
        "webhook.timeoutSeconds.validating=31",
        "podDisruptionBudget.minAvailabel=1",
    ],
)
def test_a_typo_fails(template, typo):
    """An unknown key or an impossible value stops the installation and is named."""
    result = template(typo)
    assert result.returncode != 0
    assert typo.split("=")[0].split(".")[0] in result.stderr


def test_values_of_an_earlier_chart_are_named(template):
    """`helm upgrade --reuse-values` has no defaults for options that are new; the error says what to use."""
    result = template("dnsPolicy=null")
    assert result.returncode != 0
    assert (
        "the values have no dnsPolicy: they are of another version of the chart; "
        "use helm upgrade --reset-then-reuse-values"
    ) in result.stderr


def test_a_parent_chart_may_have_a_condition(template):
    """`gatewright.enabled` and `global` of a parent chart are no typos."""
    assert template("enabled=true", "global.imageRegistry=registry.example.com").returncode == 0


def test_without_leader_election_one_controller_is_allowed(template):
    """Two controllers without a Lease would both write: rendering fails with an error that names the value to set."""
    result = template("leaderElection.enabled=false")
    assert result.returncode != 0
    assert "set controller.replicaCount to 1" in result.stderr


@pytest.mark.parametrize("replicas", ["replicaCount=1", "controller.replicaCount=1"])
def test_without_leader_election_there_is_no_lease(render, replicas):
    """No Lease is used or permitted, and a new controller starts only after the old one has ended."""
    objects = render("leaderElection.enabled=false", replicas)
    name = "gatewright-controller-manager"
    assert "--no-leader-elect" in objects.arguments(name)
    assert not objects.rules("Role", name, "leases")
    assert objects["Deployment", name]["spec"]["strategy"] == {"type": "Recreate"}


def test_the_lease_of_the_controller_can_be_configured(render):
    """Name and times reach the controller, and the name its rights."""
    objects = render("leaderElection.id=lock", "leaderElection.leaseDuration=30s")
    assert {
        "--lease-name=lock",
        "--lease-duration=30s",
        "--renew-deadline=10s",
        "--retry-period=2s",
    } <= set(objects.arguments("gatewright-controller-manager"))
    assert [
        rule.get("resourceNames")
        for rule in objects.rules("Role", "gatewright-controller-manager", "leases")
    ] == [
        None,
        ["lock"],
    ]


def test_full_name_override_renames_everything(render):
    """One value renames all objects of the installation."""
    objects = render("fullnameOverride=webapp-operator")
    assert ("Deployment", "webapp-operator-controller-manager") in objects
    assert ("ValidatingWebhookConfiguration", "webapp-operator") in objects
    assert not [name for _, name in objects if name.startswith("gatewright")]
    assert "--lease-name=webapp-operator-controller-lock" in objects.arguments(
        "webapp-operator-controller-manager"
    )


def test_the_webhook_judges_children_as_the_controller_makes_them(render):
    """It gets the controller's account and the registry of the images that the controller chooses."""
    objects = render("fullnameOverride=webapp-operator", "registry=registry.example.com/ours")
    account = objects.pod("webapp-operator-controller-manager")["serviceAccountName"]
    for name in ("webapp-operator-controller-manager", "webapp-operator-webhook"):
        shared = {f"--controller-account={account}", "--registry=registry.example.com/ours"}
        assert shared <= set(objects.arguments(name))


def test_another_release_is_another_name(render):
    """Two releases do not meet; the label by which people find the logs stays."""
    deployment = render(release="blue")["Deployment", "blue-gatewright-webhook"]
    assert deployment["metadata"]["labels"]["app.kubernetes.io/name"] == "gatewright"
    assert deployment["metadata"]["labels"]["app.kubernetes.io/instance"] == "blue"


def test_name_override_reaches_the_affinity(render):
    """Replicas keep apart by the name that their labels have."""
    (by_name, _) = kept_apart(render("nameOverride=operator"), "gatewright-operator-webhook")
    assert by_name["values"] == ["operator"]


def test_a_setting_for_one_deployment_leaves_the_other_alone(render):
    """Under `controller` or `webhook`, image and resources change key by key, other settings as a whole."""
    objects = render(files=(CHART / "ci/names-values.yaml",))
    controller, webhook = (
        objects.pod(f"webapp-operator-{name}") for name in ("controller-manager", "webhook")
    )
    assert controller["containers"][0]["resources"]["limits"] == {"cpu": "500m", "memory": "1Gi"}
    assert webhook["containers"][0]["resources"]["limits"] == {"memory": "512Mi"}
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
    assert not [
        name
        for kind, name in objects
        if "webhook" in name or "Webhook" in kind or kind == "ConfigMap"
    ]
    assert not objects.rules("Role", "gatewright-controller-manager", "secrets")
    assert "volumes" not in objects.pod("gatewright-controller-manager")


@pytest.mark.parametrize("key", ["certManager.enabled", "webhook.certManager.enabled"])
def test_cert_manager_takes_over(render, key):
    """Either key makes cert-manager issue the pair and inject the CA, and takes the Secrets from the controller."""
    objects = render(f"{key}=true")
    certificate = objects["Certificate", "gatewright-webhook"]["spec"]
    assert certificate["secretName"] == "gatewright-webhook-tls"
    assert "gatewright-webhook.gatewright-system.svc" in certificate["dnsNames"]
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        annotations = objects[kind, "gatewright"]["metadata"]["annotations"]
        assert annotations == {
            "cert-manager.io/inject-ca-from": "gatewright-system/gatewright-webhook"
        }
    assert not objects.rules("Role", "gatewright-controller-manager", "secrets")


def policy(name):
    """Return a values file with one own policy object."""
    about = {
        "apiVersion": "gatewright.io/v1alpha1",
        "kind": "ClusterAdmissionPolicy",
        "metadata": {"name": "mine"},
    }
    return {"objects": [{**about, "spec": {"policy": name}}]}


def test_an_unknown_policy_fails(template, tmp_path: Path):
    """The schema lists the built-in policies; policies of own modules or packages may have any name."""
    file = tmp_path / "values.yaml"
    for more in ({}, {"modules": {"image_tag.py": ""}}, {"extraNames": ["image-tag"]}):
        file.write_text(yaml.safe_dump({"policies": {**policy("image-tag"), **more}}))
        result = template(files=(file,))
        assert ("at '/policies/objects/0/spec/policy': value must be one of" in result.stderr) == (
            not more
        )
        assert (result.returncode == 0) == bool(more)


def test_an_unknown_kind_of_policy_object_fails(template, tmp_path: Path):
    """A policy set has three kinds."""
    values = policy("image-tags")
    values["objects"][0]["kind"] = "ClusterPolicy"
    (tmp_path / "values.yaml").write_text(yaml.safe_dump({"policies": values}))
    assert (
        "at '/policies/objects/0/kind': value must be one of"
        in template(files=(tmp_path / "values.yaml",)).stderr
    )


@pytest.mark.parametrize("lines", [len((CHART / "values.yaml").read_text().splitlines())])
def test_the_values_can_be_read_at_once(lines):
    """One file, at most 300 lines."""
    assert lines <= 300
