"""Production settings: labels, digests, user ids, least privilege, closed networks."""

import pytest

from controller.reconcilers import own_kinds
from tests.charts.rendered import CHART
from tests.config import chart_rights

pytestmark = pytest.mark.controlplane  # helm is built as the control plane is

DEPLOYMENTS = ("gatewright-controller-manager", "gatewright-webhook")
PAIRS = ("gatewright-ca", "gatewright-webhook")


def test_cert_managers_authority_keeps_its_key(render):
    """A renewed CA certificate then still verifies pods that serve the old pair."""
    objects = render("certManager.enabled=true")
    rotation = {
        name: objects["Certificate", name]["spec"]["privateKey"]["rotationPolicy"] for name in PAIRS
    }
    assert rotation == {"gatewright-ca": "Never", "gatewright-webhook": "Always"}


def test_an_image_by_digest(render):
    """The digest takes precedence over the tag."""
    digest = "sha256:" + 64 * "0"
    objects = render(f"image.digest={digest}", "image.tag=v1", "webhook.image.tag=v2")
    images = [objects.pod(name)["containers"][0]["image"] for name in DEPLOYMENTS]
    assert images == [f"gatewright:v1@{digest}", f"gatewright:v2@{digest}"]


def test_common_labels_are_on_everything(render):
    """Objects and pods have the labels; selectors are unchanged."""
    objects = render("commonLabels.team=platform", "networkPolicy.enabled=true")
    assert {each["metadata"]["labels"]["team"] for each in objects.values()} == {"platform"}
    for name in DEPLOYMENTS:
        spec = objects["Deployment", name]["spec"]
        assert spec["template"]["metadata"]["labels"]["team"] == "platform"
        assert spec["selector"] == render()["Deployment", name]["spec"]["selector"]


def test_specific_labels_override_common_ones(render):
    """Each label appears once: the pod's or the monitor's, else the common one; selectors are unchanged."""
    common = "commonLabels.team=platform,commonLabels.app\\.kubernetes\\.io/name=other"
    objects = render(
        common,
        "podLabels.team=gate",
        "serviceMonitor.enabled=true",
        "serviceMonitor.labels.team=metrics",
    )
    labels = objects["Deployment", DEPLOYMENTS[0]]["spec"]["template"]["metadata"]["labels"]
    assert (labels["team"], labels["app.kubernetes.io/name"]) == ("gate", "gatewright")
    assert objects["ServiceMonitor", "gatewright"]["metadata"]["labels"]["team"] == "metrics"
    assert objects["Service", DEPLOYMENTS[1]]["metadata"]["labels"]["team"] == "platform"


def test_the_cluster_may_choose_the_ids(render):
    """OpenShift assigns ids to namespaces, and rejects pods with others."""
    objects = render(
        *(f"podSecurityContext.{key}=null" for key in ("runAsUser", "runAsGroup", "fsGroup"))
    )
    for name in DEPLOYMENTS:
        assert objects.pod(name)["securityContext"] == {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }


def test_crds_may_belong_to_another_release(render):
    """A second release in a cluster installs none."""
    assert render().keys() - render("crds.install=false").keys() == {
        key for key in render() if key[0] == "CustomResourceDefinition"
    }


@pytest.mark.parametrize(
    ("chosen", "extra", "argument", "kinds"),
    [
        ("WebApp,widget", "", "WebApp,widget", ["WebApp", "Widget"]),
        ("none", "", "none", []),
        ("WebApp", "Gadget", "WebApp,Gadget", ["WebApp"]),
        ("none", "Gadget", "Gadget", []),
    ],
)
def test_the_controller_has_the_rights_of_its_kinds(render, chosen, extra, argument, kinds):
    """Unselected kinds give no rights; a package brings those of its own kinds."""
    objects = render(f"kinds={{{chosen}}}", *([f"extraKinds={{{extra}}}"] if extra else []))
    rules = chart_rights.controller([kind for kind in own_kinds() if kind.resource.kind in kinds])
    expected = {
        (rule["apiGroups"][0], rule["resources"][0], verb)
        for rule in rules
        for verb in rule["verbs"]
    } | {("coordination.k8s.io", "leases", "list")}  # of other installations
    # Registering the webhook needs rights in these groups, whatever the kinds.
    registering = {"admissionregistration.k8s.io", "apiextensions.k8s.io"}
    granted = objects.rights(DEPLOYMENTS[0])
    assert expected <= granted
    assert {each for each in granted - expected if each[0] not in registering} == set()
    assert all(f"--kinds={argument}" in objects.arguments(name) for name in DEPLOYMENTS)


def test_all_kinds_are_the_sum_of_each(render):
    """The default equals naming every kind."""
    every = ",".join(kind.resource.kind for kind in own_kinds())
    assert render(f"kinds={{{every}}}").rights(DEPLOYMENTS[0]) == render().rights(DEPLOYMENTS[0])


def test_namespaces_can_be_excluded_from_the_webhook(render):
    """The controller gets them as an argument, since it registers the webhook."""
    given = "--excluded-namespaces=calico-system,cert-manager"
    assert given in render("webhook.excludedNamespaces={calico-system,cert-manager}").arguments(
        DEPLOYMENTS[0]
    )


def test_network_policies(render):
    """Anyone may call the webhook, only named peers may scrape, and both reach the API server and DNS."""
    objects = render(files=(CHART / "ci/hardened-values.yaml",))
    controller, webhook = (objects["NetworkPolicy", name]["spec"] for name in DEPLOYMENTS)
    for name, spec in zip(DEPLOYMENTS, (controller, webhook), strict=True):
        pods = objects["Deployment", name]["spec"]["template"]["metadata"]["labels"]
        assert spec["podSelector"]["matchLabels"].items() <= pods.items()
        assert spec["policyTypes"] == ["Ingress", "Egress"]
    monitoring = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}
    }
    scraped = {"ports": [{"port": "metrics"}], "from": [monitoring]}
    assert (controller["ingress"], webhook["ingress"]) == (
        [scraped],
        [scraped, {"ports": [{"port": "https"}]}],
    )
    out = [
        {"ports": [{"port": 443}, {"port": 6443}]},
        {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53}]},
    ]
    answers = {"ports": [{"port": "https"}], "to": [{"podSelector": webhook["podSelector"]}]}
    assert (controller["egress"], webhook["egress"]) == ([*out, answers], out)


def test_the_webhook_can_use_the_host_network(render):
    """Host network is for control planes that cannot reach pods; the controller gets no calls, and is unchanged."""
    controller, webhook = (render("webhook.hostNetwork=true").pod(name) for name in DEPLOYMENTS)
    assert (webhook["hostNetwork"], webhook["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert not controller.keys() & {"hostNetwork", "dnsPolicy"}
    assert "hostNetwork" not in render().pod(DEPLOYMENTS[1])
