"""`pod-security` gives the same verdict as Kubernetes' library, at every level and version, for random pods."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tests.controlplane.fixtures import available
from tests.controlplane.gobuild import build
from tests.webhook.asking import ask
from webhook.policies import pod_security
from webhook.policies.pod_security import LEVELS, NEWEST, PodSecurity
from webhook.policies.volume_types import VolumeType

MODULE = Path(__file__).parents[1] / "controlplane" / "podsecurity"
ASKED = [(level, f"v1.{minor}") for level in LEVELS for minor in range(NEWEST + 1)]
ASKED += [(level, "latest") for level in LEVELS]
POLICIES = [PodSecurity(level=level, version=version) for level, version in ASKED]

OURS = {  # our check, by the reason that Kubernetes gives
    "allowPrivilegeEscalation != false": "privilege-escalation",
    "forbidden AppArmor profile": "app-armor",
    "forbidden AppArmor profiles": "app-armor",
    "forbidden sysctls": "sysctls",
    "host namespaces": "host-namespaces",
    "hostPath volumes": "host-path-volumes",
    "hostPort": "host-ports",
    "hostProcess": "windows-host-process",
    "non-default capabilities": "capabilities",
    "privileged": "privileged-containers",
    "probe or lifecycle host": "host-probes",
    "procMount": "proc-mount",
    "restricted volume types": "volume-types",
    "runAsNonRoot != true": "run-as-non-root",
    "runAsUser=0": "run-as-user",
    "seLinuxOptions": "selinux-options",
    "seccompProfile": "seccomp-profiles",
    "unrestricted capabilities": "capabilities",
}

Strategy = some.SearchStrategy[Any]


def maybe(**fields: Strategy) -> Strategy:
    """Objects with any of these fields; a field that is there may be null."""
    return some.fixed_dictionaries(
        {}, optional={name: some.none() | values for name, values in fields.items()}
    )


def one(*values: Any) -> Strategy:
    """One of these."""
    return some.sampled_from(values)


PROFILE = some.fixed_dictionaries({"type": one("RuntimeDefault", "Localhost", "Unconfined", "")})
INHERITED = {
    "runAsNonRoot": one(True, True, True, False),
    "runAsUser": one(0, 1, 1000),
    "seccompProfile": PROFILE,
    "appArmorProfile": PROFILE,
    "seLinuxOptions": maybe(
        type=one("", "container_t", "container_engine_t", "spc_t"),
        user=one("", "u"),
        role=one("", "r"),
        level=one("s0"),
    ),
    "windowsOptions": maybe(hostProcess=some.booleans()),
}
CAPABILITIES = one(
    "ALL", "NET_RAW", "NET_BIND_SERVICE", "KILL", "SYS_ADMIN", "SYS_CHROOT", "all", "CAP_KILL"
)
CONTEXT = maybe(
    **INHERITED,
    privileged=some.booleans(),
    allowPrivilegeEscalation=one(False, False, False, True),
    procMount=one("Default", "Unmasked", ""),
    capabilities=maybe(
        add=some.lists(CAPABILITIES, max_size=2),
        drop=one(["ALL"], ["NET_RAW", "ALL"]) | some.lists(CAPABILITIES, max_size=2),
    ),
)
HANDLER = maybe(
    httpGet=some.fixed_dictionaries(
        {"port": one(80)}, optional={"host": one("", "127.0.0.1", "x")}
    ),
    tcpSocket=some.fixed_dictionaries({"port": one(80)}, optional={"host": one("", "y")}),
)


def containers(*names: str) -> Strategy:
    """Lists of a container for some of the names, in their order."""
    optional = {
        "securityContext": some.none() | CONTEXT,
        "ports": some.lists(maybe(containerPort=one(1), hostPort=one(0, 80)), max_size=2),
        "livenessProbe": HANDLER,
        "readinessProbe": HANDLER,
        "startupProbe": HANDLER,
        "lifecycle": maybe(postStart=HANDLER, preStop=HANDLER),
    }
    each = [
        some.fixed_dictionaries({"name": one(name), "image": one("x")}, optional=optional)
        for name in names
    ]
    return some.tuples(*each).map(list)


def with_host_ports(pod: dict[str, Any]) -> dict[str, Any]:
    """Return a pod with the host ports that the API server sets before it asks the library."""
    spec = pod["spec"]
    if spec.get("hostNetwork"):
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            for port in container.get("ports", ()):
                port["hostPort"] = port.get("hostPort") or port.get("containerPort")
    return pod


VOLUMES = one(*get_args(VolumeType)[1:]).map(lambda field: {"name": field.lower(), field: {}})
SYSCTLS = one(
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "kernel.msgmax",
    "net/ipv4/tcp_syncookies",
)
ANNOTATIONS = some.dictionaries(
    one(
        *(f"container.apparmor.security.beta.kubernetes.io/{name}" for name in ("a", "i", "other")),
        *(f"container.seccomp.security.alpha.kubernetes.io/{name}" for name in ("a", "i", "other")),
        "seccomp.security.alpha.kubernetes.io/pod",
    ),
    one(
        "",
        "runtime/default",
        "docker/default",
        "localhost/x",
        "localhost",
        "Localhost",
        "unconfined",
    ),
    max_size=3,
)
PODS = some.fixed_dictionaries(
    {
        "metadata": maybe(annotations=ANNOTATIONS),
        "spec": some.fixed_dictionaries(
            {"containers": containers("a") | containers("a", "b")},
            optional={
                "initContainers": containers("i"),
                "ephemeralContainers": containers("e"),
                "securityContext": some.none()
                | maybe(
                    **INHERITED,
                    sysctls=some.lists(
                        some.fixed_dictionaries({"name": SYSCTLS, "value": one("1")}), max_size=2
                    ),
                ),
                "hostNetwork": one(None, False, True),
                "hostPID": one(None, False, True),
                "hostIPC": one(None, False, True),
                "hostUsers": one(None, False, True),
                "os": some.fixed_dictionaries({"name": one("linux", "windows")}),
                "volumes": some.lists(VOLUMES, max_size=3),
            },
        ),
    }
).map(with_host_ports)

Judge = Callable[[dict[str, Any]], list[list[str]]]


def _program() -> Path:
    return build(MODULE, ".", "podsecurity", takes="a minute")


@pytest.fixture(scope="module")
def library(pytestconfig: pytest.Config) -> Iterator[Judge]:
    """Judges a pod at all levels and versions by the library of Kubernetes, in a separate process."""
    program = available(pytestconfig, _program)
    with subprocess.Popen(
        [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def judge(pod: dict[str, Any]) -> list[list[str]]:
            process.stdin.write(json.dumps({"Pod": pod, "Asked": ASKED}) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield judge


@pytest.mark.controlplane
@given(pod=PODS)
@settings(max_examples=500)
def test_every_check_finds_what_the_library_finds(library: Judge, pod: dict[str, Any]) -> None:
    """At every level and version the same checks fail, for pods of any sort."""
    for asked, policy, reasons in zip(ASKED, POLICIES, library(pod), strict=True):
        violations = pod_security.validate(ask(pod), policy)
        failed = {violation.rule.rpartition(": ")[2].removesuffix(")") for violation in violations}
        assert failed == {OURS[reason] for reason in reasons}, asked
