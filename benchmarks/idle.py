"""An idle controller: the cost of its start and its memory, compared with the imports alone.

"alone" means without a webhook to register. "as the chart runs it" means with the certificates and
the registration of a running webhook with the production policies, a Lease and the measurement of
enforcement, which are the chart's defaults.
"""

import json
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cluster import ROOT, Cluster, Running
from benchmarks.measured import megabytes, progress, settled
from tests.controlplane.processes import free_ports
from tests.gatewright.started import registered

HOME = "gatewright-system"
POLICIES = ROOT / "charts/gatewright/files/policies/production.yaml"
READY_WITHIN = 60.0
DEFAULTS = ("--leader-elect", "--measure-enforcement")  # the chart's, of the controller alone
IMPORTS = {
    "alone": "planned_kinds()",
    "as the chart runs it": "planned_kinds(); import gatewright.processes.registration\n"
    "from webhook.policy_sets.catalogue import catalogue\n"
    "from webhook.server.policy_files import policy_set_of\n"
    f"policy_set_of([pathlib.Path({str(POLICIES)!r})], catalogue())",
}
PROGRAM = """\
from gatewright.processes.memory import collect_rarely
collect_rarely()
import pathlib, time, gatewright.commands.controller
from controller.reconcilers import planned_kinds
{imports}
status = pathlib.Path("/proc/self/status").read_text()
print(time.process_time(), int(status.partition("VmRSS:")[2].split()[0]) / 1024)
"""


@dataclass(frozen=True)
class Idle:
    """The cost of a start and the memory afterwards, for a controller and for the imports alone."""

    shape: str
    cpu: float
    resident: float
    cpu_of_imports: float
    resident_of_imports: float


def alone(cluster: Cluster) -> Idle:
    """Start a controller in a cluster without its objects."""
    progress("idle, alone")
    cluster.plane.create_namespace("nothing")
    with cluster.controller("nothing") as controller:
        cpu = settled(controller.pid)
        return _idle("alone", cpu, megabytes(controller.pid))


def registering(cluster: Cluster) -> Idle:
    """Start a controller that registers a webhook, which then runs.

    The registration is removed afterwards.
    """
    progress("idle, as the chart runs it")
    cluster.plane.create_namespace(HOME)
    policies = ("--policies", str(POLICIES))
    with registering_processes(cluster, *policies, of_controller=DEFAULTS) as processes:
        controller = processes["controller"]
        cpu = settled(controller.pid)
        found = _idle("as the chart runs it", cpu, megabytes(controller.pid))
    configurations = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
    cluster.plane.kubectl("delete", configurations, "gatewright")
    return found


@contextmanager
def registering_processes(
    cluster: Cluster, *options: str, of_controller: Sequence[str] = ()
) -> Iterator[dict[str, Running]]:
    """Run a controller that registers a webhook, and the webhook, by name, until the context exits.

    Both get the `options`; those `of_controller` only the controller.
    """
    plane = cluster.plane
    (port,) = free_ports(1)
    common = ("--namespace", HOME)
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        empty = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": "gatewright"},
        }
        plane.kubectl("create", "-f", "-", input=json.dumps(empty))
    url = ("--webhook-configuration", "gatewright", "--webhook-url", f"https://127.0.0.1:{port}")
    with ExitStack() as stack:
        controller = stack.enter_context(
            cluster.running("controller", *common, *options, *of_controller, *url)
        )
        pair = _pair(cluster, cluster.directory)
        listen = ("--listen", f"127.0.0.1:{port}", "--tls-cert", pair[0], "--tls-key", pair[1])
        webhook = stack.enter_context(cluster.running("webhook", *common, *options, *listen))
        deadline = time.monotonic() + READY_WITHIN
        while "validate" not in registered(plane):
            if time.monotonic() > deadline:
                sys.exit(f"no webhook is registered within {READY_WITHIN:.0f} s")
            time.sleep(0.5)
        yield {"webhook": webhook, "controller": controller}


def _pair(cluster: Cluster, directory: Path) -> list[str]:
    """Wait for the serving pair that the controller creates; return the paths of its files."""
    path = f"/api/v1/namespaces/{HOME}/secrets/gatewright-webhook-tls"
    deadline = time.monotonic() + READY_WITHIN
    while (answer := cluster.api.request("GET", path))[0] != 200:
        if time.monotonic() > deadline:
            sys.exit(f"no certificate within {READY_WITHIN:.0f} s")
        time.sleep(0.2)
    files = {name: directory / name for name in ("tls.crt", "tls.key")}
    for name, file in files.items():
        file.write_bytes(b64decode(json.loads(answer[1])["data"][name]))
    return [str(file) for file in files.values()]


def _idle(shape: str, cpu: float, resident: float) -> Idle:
    program = PROGRAM.format(imports=IMPORTS[shape])
    printed = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    imports = [float(each) for each in printed.stdout.split()]
    return Idle(
        shape, round(cpu, 2), round(resident, 1), round(imports[0], 2), round(imports[1], 1)
    )
