"""Services use only approved external IPs.

Why: with `externalIPs`, any user who can create a Service can redirect traffic for that address,
from every node, to their own pods.

Allowed: no `externalIPs`, or only addresses within `allowed`.
Denied:  `externalIPs: [203.0.113.7]`.
Fix: remove them; use a LoadBalancer or an Ingress.
See: CVE-2020-8554.
"""

from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Annotated

from pydantic import AfterValidator, Field

from webhook.engine import Params, Policy, Request, Violations

Network = Annotated[str, AfterValidator(lambda text: ip_network(text) and text)]


class ExternalIPs(Params):
    """Which addresses a Service may use."""

    allowed: list[Network] = Field(
        [],
        description=(
            "addresses and networks that Services may use: 203.0.113.7, 203.0.113.0/24, "
            "2001:db8::/64"
        ),
    )

    @cached_property
    def networks(self) -> list[IPv4Network | IPv6Network]:
        """The networks, parsed."""
        return [*map(ip_network, self.allowed)]


def validate(request: Request, params: ExternalIPs) -> Violations:
    """Yield one violation for each address that is not allowed."""
    allowed = ", ".join(params.allowed)
    rule = f"a Service may use only {allowed}" if allowed else "a Service must not use external IPs"
    for index, text in enumerate(request.strings("spec.externalIPs")):
        if not _is_in(params.networks, text):
            yield request.violation(f"spec.externalIPs[{index}]", text, rule, "remove it")


def _is_in(networks: list[IPv4Network | IPv6Network], text: str) -> bool:
    try:
        return any(ip_address(text) in network for network in networks)
    except ValueError:  # not an address
        return False


POLICY = Policy(
    "external-ips",
    ExternalIPs,
    validate=validate,
    kinds=("Service",),
    category="network",
    severity="high",
)
