"""What happens to a cluster under Gatewright admits nothing unjudged, and ends nothing."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from tests.controlplane.api import Api
from tests.e2e import manifests
from tests.e2e.attempts import attempts
from tests.e2e.conftest import CONFIG
from tests.e2e.installation import CONTROLLER, OURS, SERVICES, Installation, install

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

SHORT_LEASE = ("--lease-duration=3s", "--renew-deadline=2s", "--retry-period=500ms")
LONGER_THAN_THE_LEASE = 4.0  # seconds
COMPETITORS = 12
# API Priority and Fairness: one request at a time, and no queue, for Gatewright's accounts.
ONE_SEAT = f"""\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {{name: one-seat}}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 0
    lendablePercent: 0
    borrowingLimitPercent: 0
    limitResponse: {{type: Reject}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {{name: one-seat}}
spec:
  priorityLevelConfiguration: {{name: one-seat}}
  matchingPrecedence: 2
  rules:
    - subjects: [{{kind: Group, group: {{name: "system:serviceaccounts:{OURS}"}}}}]
      resourceRules:
        - {{verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true}}
      nonResourceRules: [{{verbs: ["*"], nonResourceURLs: ["*"]}}]
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation whose leader loses its Lease soon."""
    with install(tmp_path_factory.mktemp("installed"), *SHORT_LEASE) as installation:
        installation.bring_up()
        yield installation


def edit_the_authority(running: Installation) -> None:
    """Write something into the CA's Secret that is no certificate."""
    patch = json.dumps({"data": {"ca.crt": "Z2FyYmFnZQ==", "tls.crt": "Z2FyYmFnZQ=="}})
    running.kubectl("patch", "secret", "gatewright-ca", "-n", OURS, "--type=merge", "-p", patch)


def delete_the_kinds(running: Installation) -> None:
    """Delete the CRDs of policies and of WebApps, and make them again."""
    names = ("clusteradmissionpolicies", "admissionpolicies", "policyexceptions")
    crds = [f"crd/{name}.gatewright.io" for name in names] + ["crd/webapps.example.com"]
    running.kubectl("delete", *crds)
    running.kubectl("apply", "-f", str(CONFIG / "crd/bases"))
    running.kubectl("wait", "--for=condition=Established", *crds)


def restart_the_store(running: Installation) -> None:
    """Kill etcd, and start it again."""
    running.plane.restart("etcd")


def restart_the_api_server(running: Installation) -> None:
    """Kill the API server, which cuts all watches, and start it again."""
    running.plane.restart("kube-apiserver")


def slow_down(running: Installation) -> None:
    """Freeze etcd for longer than the Lease lasts: the API server answers no request."""
    running.plane.stop("etcd")
    time.sleep(LONGER_THAN_THE_LEASE)  # as long as the fault lasts
    running.plane.cont("etcd")


def let_it_stutter(running: Installation) -> None:
    """Let the API server run for a tenth of the time only: each answer takes up to a second."""
    for _ in range(6):
        running.plane.stop("kube-apiserver")
        time.sleep(0.9)  # as long as the fault lasts
        running.plane.cont("kube-apiserver")
        time.sleep(0.1)


def refuse_requests(running: Installation) -> None:
    """Let the API server answer most requests with 429 for longer than the Lease lasts.

    It has one seat for Gatewright's accounts, which requests in one of their names compete for.
    """
    since = running.plane.audit_mark()
    token = running.kubectl("create", "token", "gatewright-controller-manager", "-n", OURS)
    api = Api(running.plane.url, running.plane.ca_file, token)
    running.kubectl("apply", "-f-", input=ONE_SEAT)
    with closing(api), ExitStack() as stack:
        for _ in range(COMPETITORS):
            stack.enter_context(attempts(api))
        time.sleep(LONGER_THAN_THE_LEASE)  # as long as the fault lasts
    running.kubectl("delete", "-f-", input=ONE_SEAT)
    events = running.plane.audit_events(since, user=CONTROLLER, resource="leases")
    assert 429 in {event["responseStatus"]["code"] for event in events}


def is_in_force(running: Installation) -> bool:
    """Return whether the policy has the condition Ready."""
    policy = running.api.get("/apis/gatewright.io/v1alpha1/clusteradmissionpolicies/services")
    conditions = policy.get("status", {}).get("conditions", [])
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def is_reconciled(running: Installation, namespace: str) -> bool:
    """Return whether the WebApp runs."""
    webapp = running.api.get(f"/apis/example.com/v1/namespaces/{namespace}/webapps/shop")
    return bool(webapp.get("status", {}).get("phase") == "Running")


def is_up(running: Installation) -> bool:
    """Return whether both processes are ready; start one that ended, as a kubelet does.

    The controller may lose its short Lease at any time, also some seconds after the fault.
    """
    both = (running.webhook, running.controller)
    for running_process in both:
        if running_process.process.died:
            running_process.launch()
    return all(each.is_ready() for each in both)


def is_denied(running: Installation, namespace: str) -> bool:
    """Return whether a Service that the policy `services` denies is denied there."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "open"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    }
    path = f"/api/v1/namespaces/{namespace}/services?dryRun=All"
    return b"denied the request" in running.api.request("POST", path, service)[1]


@pytest.mark.parametrize(
    "happens",
    [
        edit_the_authority,
        delete_the_kinds,
        restart_the_store,
        restart_the_api_server,
        slow_down,
        let_it_stutter,
        refuse_requests,
    ],
)
def test_bad_luck_admits_nothing(
    running: Installation, happens: Callable[[Installation], None]
) -> None:
    """While it happens, no bad object is admitted; afterwards all goes on as before, with new policies too."""
    namespace = running.create_namespace()
    with attempts(running.api) as found:
        happens(running)
        running.webhook.until("up, as the controller", lambda: is_up(running))
        denials = found[403]
        running.webhook.until("denied", lambda: found[403] > denials)
        policy = SERVICES.replace("production", namespace)
        running.kubectl("apply", "-f-", input=policy)
        running.webhook.until("in force", lambda: is_up(running) and is_in_force(running))
        running.create(namespace, manifests.webapp("shop", image="nginx:1.21"))
        running.webhook.until(
            "running", lambda: is_up(running) and is_reconciled(running, namespace)
        )
        running.webhook.until("denies", lambda: is_denied(running, namespace))
    running.kubectl("delete", "clusteradmissionpolicy/services")
    assert [code for code in found if 200 <= code < 300] == []
