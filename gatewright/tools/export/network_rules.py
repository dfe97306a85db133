"""Rules in CEL about Ingresses and Services."""

from typing import Any

from gatewright.tools.cel_text import any_glob, literal
from gatewright.tools.export.pod_rules import CelRule, within
from webhook.policies._ranges import format_ranges
from webhook.policies.ingress_tls import ANNOTATION

RULES, TLS = "object.spec.?rules.orValue([])", "object.spec.?tls.orValue([])"
HOST = "rule.?host.orValue('')"
# As in certificates, a wildcard covers one label.
WILDCARD = f"'*.' + ({HOST}.contains('.') ? {HOST}.substring({HOST}.indexOf('.') + 1) : '')"
NO_DEFAULT = "!has(object.spec.defaultBackend)"


def ingress_hosts(params: Any) -> list[CelRule]:
    """Return the rules of ingress-hosts."""
    rules = []
    if not params.empty:
        unnamed = "an Ingress must name its hosts"
        rules += [
            CelRule(f"{RULES}.size() > 0", f"spec.rules: {unnamed}"),
            CelRule(NO_DEFAULT, f"spec.defaultBackend: {unnamed}"),
            _of_hosts(f"{HOST} != ''", "a rule must name its host"),
        ]
    if not params.wildcards:
        rules.append(_of_hosts(f"!{HOST}.contains('*')", "wildcards are not allowed"))
    if params.domains:
        test = f"{HOST} == '' || {any_glob(HOST, params.domains)}"
        rules.append(_of_hosts(test, f"must be of {', '.join(params.domains)}"))
    return rules


def ingress_tls(params: Any) -> list[CelRule]:
    """Return the rules of ingress-tls."""
    rules = []
    if params.tls:
        covered = f"{TLS}.size() == 0 || {TLS}.exists(entry, entry.?hosts.orValue([]).size() == 0)"
        host, wildcard = (
            f"{TLS}.exists(entry, {name} in entry.?hosts.orValue([]))" for name in (HOST, WILDCARD)
        )
        message = "must be covered by spec.tls"
        rules += [
            CelRule(f"{TLS}.size() > 0", "spec.tls: an Ingress must use TLS"),
            CelRule(f"{covered} || {NO_DEFAULT}", f"spec.defaultBackend: each host {message}"),
            CelRule(
                f"{covered} || {RULES}.all(rule, {host} || {wildcard})",
                f"spec.rules.host: the host {message}",
            ),
        ]
    if params.https:
        test = f"object.metadata.?annotations[?{literal(ANNOTATION)}].orValue('') == 'false'"
        path = f"metadata.annotations[{ANNOTATION}]"
        rules.append(CelRule(test, f"{path}: plain HTTP must not be served"))
    return rules


def _of_hosts(test: str, message: str) -> CelRule:
    return CelRule(f"{RULES}.all(rule, {test})", f"spec.rules.host: {message}")


def external_ips(params: Any) -> list[CelRule]:
    """Return the rule of external-ips."""
    ips = "object.spec.?externalIPs.orValue([])"
    if not params.allowed:
        return [CelRule(f"{ips}.size() == 0", "spec.externalIPs: must not be set")]
    inside = " || ".join(
        f"cidr({literal(network)}).containsIP(ip)" for network in map(str, params.networks)
    )
    message = f"spec.externalIPs: a Service may use only {', '.join(params.allowed)}"
    return [CelRule(f"{ips}.all(ip, isIP(ip) && ({inside}))", message)]


def node_ports(params: Any) -> list[CelRule]:
    """Return the rules of node-ports: the API server has allocated unset ports."""
    is_balancer = "object.spec.?type.orValue('') == 'LoadBalancer'"
    allocates = "object.spec.?allocateLoadBalancerNodePorts.orValue(true)"
    picks = f"object.spec.?type.orValue('') == 'NodePort' || {is_balancer} && {allocates}"
    is_local = "object.spec.?externalTrafficPolicy.orValue('') == 'Local'"
    port = _port("port.?nodePort.orValue(0)", picks, params)
    health = "object.spec.?healthCheckNodePort.orValue(0)"
    message = f"allowed node ports: {format_ranges(params.ranges)}"
    return [
        CelRule(
            f"object.spec.?ports.orValue([]).all(port, {port})", f"spec.ports.nodePort: {message}"
        ),
        CelRule(
            _port(health, f"{is_balancer} && {is_local}", params),
            f"spec.healthCheckNodePort: {message}",
        ),
    ]


def _port(number: str, picks: str, params: Any) -> str:
    """Return the test that a port is in a range, or is unset where none is allocated."""
    return f"{number} == 0 && !({picks}) || {within(number, params.ranges)}"
