"""Containers have liveness and readiness probes.

Why: without a readiness probe, requests reach a container that cannot answer yet; without a
liveness probe, one that hangs is never restarted.

Judged: the containers of pods with `restartPolicy: Always`, without init and ephemeral ones. With
`served`, a target port (a number) that no container declares may be any container's.

Allowed: a container with `livenessProbe` and `readinessProbe`.
         With `served`, one that no Service of the namespace sends requests to needs none.
Denied:  a container that lacks one of them; with `distinct`, both being the same probe: then a
         container is restarted where it should only stop receiving requests.
Fix: add the probe.
See: https://kubernetes.io/docs/concepts/configuration/liveness-readiness-startup-probes/
"""

from typing import Literal

from pydantic import Field

from webhook.engine import Fields, Params, Policy, Request, Violations
from webhook.engine.look_ups import read_each

SERVICES = "services"  # look-up: the Service objects of the namespace
Handler = Literal["httpGet", "tcpSocket", "exec", "grpc"]


class Probes(Params):
    """Which probes a container must have."""

    required: list[Literal["liveness", "readiness", "startup"]] = Field(
        ["liveness", "readiness"], min_length=1, description="probes that a container must have"
    )
    enough: Literal["all", "one"] = Field(
        "all", description="whether a container must have all of them, or one is enough"
    )
    handlers: list[Handler] = Field(
        ["httpGet", "tcpSocket", "exec", "grpc"],
        min_length=1,
        description="probe types that are accepted",
    )
    served: bool = Field(False, description="whether only containers behind a Service are judged")
    distinct: bool = Field(
        False, description="whether the liveness and readiness probes must differ"
    )


def validate(request: Request, params: Probes) -> Violations:
    """Yield a violation for each probe that a container lacks."""
    pod = request.pod()
    if pod is None or pod.string("restartPolicy") in ("Never", "OnFailure"):
        return
    served = _served_ports(request) if params.served else None
    for container in request.containers():
        if container.list == "containers" and (served is None or served & _ports(container)):
            yield from _judge(container, params)


def _judge(container: Fields, params: Probes) -> Violations:
    probes = {name: container.mapping(f"{name}Probe") for name in params.required}
    missing = [
        name
        for name, probe in probes.items()
        if all(probe.get(each) is None for each in params.handlers)
    ]
    if params.enough == "all":
        *others, last = params.handlers
        ways = f"{', '.join(others)} or {last}" if others else last
        for name in missing:
            found = "another way of probing" if probes[name] else "missing"
            rule = f"a container must have a {name} probe by {ways}"
            yield container.violation(f"{name}Probe", found, rule, "add it", found=found)
    elif len(missing) == len(params.required):
        names = " or ".join(f"{name}Probe" for name in missing)
        yield container.violation(
            "", None, f"a container must have a {names}", "add one", found="no probe"
        )
    readiness = container.mapping("readinessProbe")
    if params.distinct and readiness and readiness == container.mapping("livenessProbe"):
        found, fix = "the same as readinessProbe", "probe less, or more patiently"
        yield container.violation(
            "livenessProbe", readiness, "the two must differ", fix, found=found
        )


def _ports(container: Fields) -> set[int | str | None]:
    """Return the ports of a container, by number and by name."""
    return {
        port_id
        for port in container.each("ports")
        for port_id in (port.integer("containerPort"), port.string("name"))
    }


def _served_ports(request: Request) -> set[int | str] | None:
    """Return the ports of this pod, by number or name, that Services send requests to.

    Return None if no container declares one of the numbers: then it may be any container's.
    """
    metadata = request.pod_metadata()
    labels = metadata.texts("labels") if metadata is not None else {}
    services = read_each(request.lookup(SERVICES), _service)
    served = {
        port
        for selector, ports in services
        if selector and selector.items() <= labels.items()
        for port in ports
    }
    declared = {port for container in request.containers() for port in _ports(container)}
    return None if any(isinstance(port, int) for port in served - declared) else served


def _service(service: Fields) -> tuple[dict[str, str], list[int | str]]:
    """Return the selector of a Service, and the pod ports that it sends requests to."""
    ports = [
        port.integer_or_string("targetPort") or port.integer("port")
        for port in service.each("spec.ports")
    ]
    return service.texts("spec.selector"), [port for port in ports if port]


POLICY = Policy(
    "probes",
    Probes,
    validate=validate,
    category="reliability",
    needs=lambda params: (SERVICES,) if params.served else (),
)
