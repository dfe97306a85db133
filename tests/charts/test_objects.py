import json
import re

import pytest

from config.crds import kinds
from tests.charts.rendered import CHART

pytestmark = pytest.mark.controlplane  # helm is built as the control plane is

PER_PROCESS = (
    "ClusterRole",
    "ClusterRoleBinding",
    "Deployment",
    "PodDisruptionBudget",
    "Role",
    "RoleBinding",
    "ServiceAccount",
)


def test_names_are_the_published_ones(render):
    """Deployments, Services, accounts, roles and configurations have the documented names."""
    controller, webhook = "gatewright-controller-manager", "gatewright-webhook"
    assert set(render()) == {
        ("ClusterRole", "gatewright-admin"),
        ("ClusterRole", "gatewright-edit"),
        ("ClusterRole", "gatewright-enforcement"),
        ("ClusterRoleBinding", "gatewright-enforcement"),
        ("ClusterRole", "gatewright-view"),
        ("ConfigMap", "gatewright-policies"),
        ("MutatingWebhookConfiguration", "gatewright"),
        ("Service", f"{controller}-metrics"),
        ("Service", webhook),
        ("Service", f"{webhook}-metrics"),
        ("ValidatingWebhookConfiguration", "gatewright"),
        *((kind, name) for kind in PER_PROCESS for name in (controller, webhook)),
        *(
            (f"ValidatingAdmissionPolicy{kind}", f"gatewright-postgresql-{resource}")
            for kind in ("", "Binding")
            for resource in ("endpoints", "pods")
        ),
        *(("CustomResourceDefinition", kind.definition.name) for kind in kinds()),
    }


@pytest.mark.parametrize(
    "files", [(), (CHART / "ci/monitoring-values.yaml",), (CHART / "ci/cert-manager-values.yaml",)]
)
def test_everything_is_labelled(render, files):
    """One label selects every object of the release."""
    for object in render(files=files).values():
        labels = object["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "gatewright"
        assert {
            "app.kubernetes.io/instance",
            "app.kubernetes.io/component",
            "app.kubernetes.io/version",
        } <= set(labels)


@pytest.mark.parametrize("name", ["gatewright-controller-manager", "gatewright-webhook"])
def test_pods_are_restricted(render, name):
    """The chart's pods satisfy Pod Security `restricted`, with a read-only root filesystem."""
    spec = render().pod(name)
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


def test_the_webhook_has_time_to_drain(render):
    """It ends within 40 seconds, and no pod ends before its successor is ready."""
    deployment = render()["Deployment", "gatewright-webhook"]
    assert deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 45
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


def test_nothing_waits_for_a_kubelets_sync(render):
    """Both pods watch policies and certificate by name, and mount neither; they may watch nothing else."""
    objects = render("policies.preset=production")
    for name in ("gatewright-webhook", "gatewright-controller-manager"):
        assert "volumes" not in objects.pod(name)
        assert "--policies-config-map=gatewright-policies" in objects.arguments(name)
        assert "--tls-secret=gatewright-webhook-tls" in objects.arguments(name)
    watched = {
        rule["resources"][0]: (rule["resourceNames"], rule["verbs"])
        for rule in objects["Role", "gatewright-webhook"]["rules"]
    }
    assert watched == {
        "configmaps": (["gatewright-policies"], ["list", "watch"]),
        "secrets": (["gatewright-webhook-tls"], ["list", "watch"]),
    }
    for resource in watched:
        assert objects.rules("ClusterRole", "gatewright-webhook", resource) == []


def test_a_drain_evicts_one_pod_at_a_time(render):
    """Unhealthy pods never block a drain."""
    for name in ("gatewright-controller-manager", "gatewright-webhook"):
        budget = render()["PodDisruptionBudget", name]["spec"]
        assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (
            1,
            "AlwaysAllow",
        )


@pytest.mark.parametrize("least", ["0", "50%"])
@pytest.mark.parametrize("most", ["1", "null"])
def test_pods_that_must_stay_available_replace_those_that_may_be_evicted(render, least, most):
    """0 is a number of pods: no value is the empty text."""
    budgets = "podDisruptionBudget.minAvailable", "podDisruptionBudget.maxUnavailable"
    values = [f"{name}={value}" for name, value in zip(budgets, (least, most), strict=True)]
    for given in values, [f"webhook.{values[0]}"]:
        budget = render(*given)["PodDisruptionBudget", "gatewright-webhook"]["spec"]
        assert str(budget["minAvailable"]) == least
        assert "maxUnavailable" not in budget


def test_a_budget_without_numbers_is_refused(template):
    """An empty field would be rendered otherwise."""
    result = template("podDisruptionBudget.maxUnavailable=null")
    assert result.returncode == 1
    text = "podDisruptionBudget: set minAvailable or maxUnavailable, or enabled: false"
    assert text in result.stderr


def test_configurations_are_rendered_empty(render):
    """The controller fills them once the webhook answers."""
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        assert "webhooks" not in render()[kind, "gatewright"]


def test_crds_survive_an_uninstall(render):
    """Users' custom resources are kept."""
    metadata = render()["CustomResourceDefinition", "webapps.example.com"]["metadata"]
    assert metadata["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_monitoring(render):
    """Alerts have their published names, group and conditions, and the monitor keeps the labels."""
    objects = render(files=(CHART / "ci/monitoring-values.yaml",))
    (endpoint,) = objects["ServiceMonitor", "gatewright"]["spec"]["endpoints"]
    assert (endpoint["port"], endpoint["honorLabels"]) == ("metrics", True)
    group, election, backups, _ = objects["PrometheusRule", "gatewright"]["spec"]["groups"]
    assert (group["name"], election["name"], backups["name"]) == (
        "webapp-operator",
        "leader-election",
        "backups",
    )
    (down, errors), (leader,) = group["rules"], election["rules"]
    overdue, unverified = backups["rules"]
    assert (leader["alert"], leader["expr"], leader["for"]) == (
        "NoSingleLeader",
        'sum(leader_election_master_status{job="gatewright-controller-manager-metrics"}) != 1',
        "2m",
    )
    job = 'up{job="gatewright-controller-manager-metrics"}'
    assert (down["alert"], down["expr"], down["for"]) == (
        "WebAppOperatorDown",
        f"{job} == 0 or absent({job})",
        "5m",
    )
    assert (errors["alert"], errors["expr"], errors["for"]) == (
        "WebAppReconcileErrors",
        "rate(webapp_errors_total[5m]) > 0.1",
        "2m",
    )
    assert (overdue["alert"], overdue["expr"], overdue["for"]) == (
        "BackupOverdue",
        "time() > max by (namespace, name) (gatewright_backup_due_timestamp_seconds)",
        "5m",
    )
    assert (unverified["alert"], unverified["expr"], unverified["for"]) == (
        "BackupNotVerified",
        "time() > max by (namespace, name) (gatewright_backup_drill_due_timestamp_seconds)",
        "5m",
    )
    rules = (down, errors, leader, overdue, unverified)
    assert [rule["labels"]["severity"] for rule in rules] == [
        "critical",
        "warning",
        "critical",
        "critical",
        "critical",
    ]


def test_every_alert_has_a_runbook(render):
    """Its heading in docs/running.md matches the anchor; no heading is for a removed alert."""
    groups = render("prometheusRule.enabled=true", "audit.enabled=true")[
        "PrometheusRule", "gatewright"
    ]["spec"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert all(
        rule["annotations"].keys() == {"summary", "description", "runbook_url"} for rule in rules
    )
    assert [rule["annotations"]["runbook_url"] for rule in rules] == [
        f"docs/running.md#{rule['alert'].lower()}" for rule in rules
    ]
    page = (CHART.parents[1] / "docs/running.md").read_text()
    alerts = page.partition("## Alerts\n")[2].partition("\n## ")[0]
    assert re.findall(r"^### (\w+)$", alerts, re.MULTILINE) == [rule["alert"] for rule in rules]


def test_the_runbook_url_is_a_value(render):
    """`prometheusRule.runbook` is the URL of the page."""
    groups = render(
        "prometheusRule.enabled=true", "prometheusRule.runbook=https://example.com/running"
    )
    (down, *_) = groups["PrometheusRule", "gatewright"]["spec"]["groups"][0]["rules"]
    assert down["annotations"]["runbook_url"] == "https://example.com/running#webappoperatordown"


def test_grafana_finds_the_dashboard(render):
    """Its sidecar looks for ConfigMaps with this label."""
    dashboard = render("dashboard.enabled=true")["ConfigMap", "gatewright-dashboard"]
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"


def exported():
    """The labels of each series in the reference of metrics, which is generated from the exported metrics."""
    rows = (CHART.parents[1] / "docs/reference/metrics.md").read_text().splitlines()
    found = {"up": {"job"}}
    for row in rows:
        name, kind, labels = ([*map(str.strip, row.split("|"))] + [""] * 4)[1:4]
        if name.startswith("`"):
            for suffix in ("_bucket", "_count", "_sum") if kind == "histogram" else ("",):
                found[name.strip("`") + suffix] = {
                    *re.findall(r"\w+", labels),
                    "job",
                    *(["le"] if suffix == "_bucket" else []),
                }
    return found


def queries(render):
    """Each query of the dashboard and the alerts, with the text that shows its labels."""
    objects = render("dashboard.enabled=true", "prometheusRule.enabled=true", "audit.enabled=true")
    panels = json.loads(objects["ConfigMap", "gatewright-dashboard"]["data"]["gatewright.json"])[
        "panels"
    ]
    groups = objects["PrometheusRule", "gatewright"]["spec"]["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    return [
        (target["expr"], target["legendFormat"]) for panel in panels for target in panel["targets"]
    ] + [(rule["expr"], rule["annotations"]["description"]) for rule in rules]


def test_queries_use_existing_metrics_and_labels(render):
    """Each panel and alert queries only exported series, by their labels."""
    known = exported()
    asked = set()
    for query, shown in queries(render):
        by = {
            label
            for labels in re.findall(r"\bby \(([^)]*)\)", query)
            for label in re.findall(r"\w+", labels)
        }
        selected = {
            label
            for labels in re.findall(r"{([^}]*)}", query)
            for label in re.findall(r"(\w+)=", labels)
        }
        plain = re.sub(r"\bby \([^)]*\)|{[^}]*}|\[[^]]*\]", "", query)
        series = set(re.findall(r"[a-z]\w*(?![\w(]|\s*\()", plain)) - {"and", "or", "time"}
        assert series <= known.keys(), query
        for one_series in series:
            assert by | selected <= known[one_series], query
        kept = by or set().union(*(known[each] for each in series))
        labels = {
            label
            for found in re.findall(r"{{(\w+)}}|\$labels\.(\w+)", shown)
            for label in found
            if label
        }
        assert labels <= kept, query
        asked |= series
    assert len(asked) == 22


def test_without_leader_election_there_is_no_leader_alert(render):
    """The alert is rendered only with leader election."""
    sets = (
        "prometheusRule.enabled=true",
        "leaderElection.enabled=false",
        "controller.replicaCount=1",
    )
    groups = render(*sets)["PrometheusRule", "gatewright"]["spec"]["groups"]
    assert [group["name"] for group in groups] == ["webapp-operator", "backups", "admission"]


def test_alerts_on_admission(render):
    """They fire before requests are denied by an outage, and when a policy is not in force."""
    objects = render("prometheusRule.enabled=true")
    *_, admission = objects["PrometheusRule", "gatewright"]["spec"]["groups"]
    assert admission["name"] == "admission"
    expires = "gatewright_serving_certificate_expiry_timestamp_seconds"
    assert {rule["alert"]: rule["expr"] for rule in admission["rules"]} == {
        "WebhookDown": 'absent(up{job="gatewright-webhook-metrics"} == 1)',
        "WebhookCertificateExpires": f"min({expires}) - time() < 7 * 86400",
        "PolicySetRefused": "increase(gatewright_policy_reload_errors_total[10m]) > 0",
        "PolicyNotEnforced": "min by (policy) (gatewright_policy_enforced) == 0",
        "EnforcementUnknown": (
            "min by (policy) (gatewright_policy_enforced) < 0 and "
            "max by (policy) (max_over_time(gatewright_policy_enforced[6h])) == 1"
        ),
        "RegistryFails": ("sum by (host) (increase(gatewright_registry_failures_total[10m])) > 10"),
    }


def test_without_a_webhook_there_are_no_admission_alerts(render):
    """The alerts' job is a value, as the controller's is."""
    groups = render("prometheusRule.enabled=true", "webhook.enabled=false")[
        "PrometheusRule", "gatewright"
    ]["spec"]
    assert [group["name"] for group in groups["groups"]] == [
        "webapp-operator",
        "leader-election",
        "backups",
    ]
    *_, admission = render("prometheusRule.enabled=true", "prometheusRule.webhookJob=gate")[
        "PrometheusRule", "gatewright"
    ]["spec"]["groups"]
    assert admission["rules"][0]["expr"] == 'absent(up{job="gate"} == 1)'


def test_the_job_of_the_alert_is_a_value(render):
    """Alerts use the job under which metrics are scraped."""
    objects = render("prometheusRule.enabled=true", "prometheusRule.job=webapp-operator")
    (down, *_) = objects["PrometheusRule", "gatewright"]["spec"]["groups"][0]["rules"]
    assert down["expr"] == 'up{job="webapp-operator"} == 0 or absent(up{job="webapp-operator"})'
