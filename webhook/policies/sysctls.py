"""Pods set only safe sysctls: namespaced ones that do not affect other pods.

Why: some kernel parameters apply to the whole node, and some namespaced ones can starve or crash
other pods.

Allowed: `sysctls: [{name: net.ipv4.tcp_syncookies, value: "1"}]`, and others listed in `allowed`.
Denied:  `sysctls: [{name: kernel.msgmax, value: "65536"}]`; those listed in `denied`, with either
separator, or both.
Fix: remove it, or ask for an exception.
See: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
"""

from pydantic import Field

from webhook.engine import Params, Policy, Request, Violations
from webhook.engine.globs import Globs
from webhook.engine.violation import shown

SAFE_1_0 = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
]
SAFE_1_27 = [*SAFE_1_0, "net.ipv4.ip_local_reserved_ports"]
SAFE_1_29 = [
    *SAFE_1_27,
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
]
SAFE_1_32 = [*SAFE_1_29, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"]
SAFE_1_37 = [
    *SAFE_1_32,
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_notsent_lowat",
]
SWAPPED = str.maketrans("./", "/.")


class Sysctls(Params):
    """Which sysctls pods may set."""

    allowed: Globs = Field(
        Globs(SAFE_1_37), description="sysctls that may be set; `*` matches any part of a name"
    )
    denied: Globs = Field(
        Globs(), description="sysctls that may not be set even where they are allowed, likewise"
    )


def validate(request: Request, params: Sysctls) -> Violations:
    """Yield a violation for each sysctl that may not be set."""
    pod = request.pod()
    if pod is None:
        return
    for sysctl in pod.each("securityContext.sysctls"):
        name = sysctl.string("name") or ""
        if not params.allowed.match(name):
            rule = "it is not among the sysctls that pods may set"
        elif any(map(params.denied.match, _spell_dotted(name))):
            rule = f"pods must not set {', '.join(params.denied)}"
        else:
            continue
        yield sysctl.violation("name", sysctl.value, rule, "remove it", found=shown(name))


def _spell_dotted(name: str) -> tuple[str, str]:
    """Return the names with dots that a name may stand for: `kernel/msgmax`, `net/eno2.100/mtu`.

    The first separator decides for sysctl(8); container runtimes also read every dot as a slash.
    """
    separators = [character for character in name if character in "./"]
    swapped = name.translate(SWAPPED) if separators[:1] == ["/"] else name
    return swapped, name.replace("/", ".")


POLICY = Policy("sysctls", Sysctls, validate=validate, category="pod-security")
