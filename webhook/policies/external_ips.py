"""Services use only approved external IPs.

Why: with `externalIPs`, any user who can create a Service can redirect traffic for that address, from every node, to
their own pods.

Allowed: no `externalIPs`, or only addresses within `allowed`.
Denied:  `externalIPs: [203.0.113.7]`.
Fix: remove them; use a LoadBalancer or an Ingress.
See: CVE-2020-8554.
"""

import ipaddress
from functools import cached_property
from typing import Annotated

from pydantic import AfterValidator, Field

from webhook.engine import Params, Policy, Request, Violations

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _network(text: str) -> str:
    ipaddress.ip_network(text)
    return text


class ExternalIPs(Params):
    """Which addresses a Service may use."""

    allowed: list[Annotated[str, AfterValidator(_network)]] = Field(
        [], description="addresses and networks that Services may use: 203.0.113.7, 203.0.113.0/24, 2001:db8::/64"
    )

    @cached_property
    def networks(self) -> tuple[Network, ...]:
        """The networks, parsed."""
        return tuple(map(ipaddress.ip_network, self.allowed))


def validate(request: Request, params: ExternalIPs) -> Violations:
    """Yield one violation for each address that is not allowed."""
    rule = (
        f"a Service may use only {', '.join(params.allowed)}"
        if params.allowed
        else "a Service must not use external IPs"
    )
    for index, text in enumerate(request.strings("spec.externalIPs")):
        if not _allows(params.networks, text):
            yield request.violation(f"spec.externalIPs[{index}]", text, rule, "remove it")


def _allows(networks: tuple[Network, ...], text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return any(address in network for network in networks)


POLICY = Policy("external-ips", ExternalIPs, validate=validate, kinds=("Service",), category="network", severity="high")
