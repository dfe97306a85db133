"""Limits and requests of containers and pods, with the cluster's defaults."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer, PlainValidator

from config.field_paths import entry
from config.quantities import Quantity, format_quantity
from webhook.engine.containers import Amounts, Container
from webhook.engine.fields import Fields, quantity_of
from webhook.engine.look_ups import read_each
from webhook.engine.policy import Params
from webhook.engine.request import Request
from webhook.engine.violation import Excess, Violation

LIMIT_RANGES = "limit_ranges"  # look-up: the LimitRange objects of the namespace
SHARED = ("cpu", "memory")  # resources that a pod can have as a whole
FIXES = {1: "set it", 2: "set both"}  # by the number of missing resources


def _amount(value: object) -> Quantity:
    amount = quantity_of(value)
    if amount.millis < 0:
        raise ValueError("must not be negative")
    return amount


Amount = Annotated[  # a quantity as a parameter: text or number
    Quantity,
    PlainValidator(_amount, json_schema_input_type=str | int | float),
    PlainSerializer(str),
]


class Resources(Fields):
    """A record at the path of `owner`, with its effective limits and requests."""

    __slots__ = ("limits", "requests")

    def __init__(self, owner: Fields, limits: Amounts, requests: Amounts) -> None:
        """Store the amounts; an unset request equals the limit."""
        super().__init__(owner.value, owner)
        self.limits = limits
        self.requests = requests


def violation(
    holder: Fields, part: str, resource: str, found: str, rule: str, fix: str, excess: Excess
) -> Violation:
    """Return a violation about one limit or request."""
    path = entry(f"resources.{part}", resource)
    return holder.violation(path, found, rule, fix, found=found, excess=excess)


def of_containers(
    request: Request, *, limit_ranges: bool = False
) -> Sequence[Container | Resources]:
    """Return every container that may have resources; ephemeral ones may not.

    With `limit_ranges`, LimitRanges fill in unset amounts. Defaults are applied in the order of the
    API server and its LimitRanger.
    """
    containers = request.containers(ephemeral=False)
    if not limit_ranges:
        return containers
    limits, requests = _defaults(request.lookup(LIMIT_RANGES))
    return [Resources(each, limits | each.limits, requests | each.requests) for each in containers]


def of_pod(request: Request) -> Resources | None:
    """Return the resources of a pod as a whole, which its containers share.

    Return None if the pod sets none.

    An unset request beside limits is the sum of the containers' requests, else the limit.
    """
    pod = request.pod()
    if pod is None or pod.value.get("resources") is None:
        return None
    limits, requests = pod.quantities("resources.limits"), pod.quantities("resources.requests")
    if limits:
        requests = limits | _together(request) | requests
    return Resources(pod, limits, requests)


def _together(request: Request) -> Amounts:
    """Return the cpu and memory that a pod's containers request, at their peak.

    The peak is all of its containers and sidecars, or one init container and the sidecars started
    before it.
    """
    containers = sorted(
        request.containers(ephemeral=False), key=lambda each: each.list == "containers"
    )
    peaks: dict[str, int] = {}
    for name in SHARED:
        running = 0
        for container in containers:
            if name in container.requests:
                needed = running + container.requests[name].millis
                peaks[name] = max(peaks.get(name, 0), needed)
                running = running if container.runs_once else needed
    return {name: format_quantity(peak) for name, peak in peaks.items()}


def of_all(request: Request, *, limit_ranges: bool = False) -> Sequence[Container | Resources]:
    """Return every container that may have resources, and the pod itself if it sets resources."""
    containers, whole = of_containers(request, limit_ranges=limit_ranges), of_pod(request)
    return containers if whole is None else (*containers, whole)


class Completed(Params):
    """Parameters of a policy that can apply LimitRanges."""

    limit_ranges: bool = Field(
        False, description="whether defaults from the namespace's LimitRanges count as set"
    )


def needs(params: Completed) -> tuple[str, ...]:
    """Return the look-ups that these parameters need."""
    return (LIMIT_RANGES,) if params.limit_ranges else ()


class Required(Completed):
    """Which resources every container must name."""

    required: list[Literal["cpu", "memory", "ephemeral-storage"]] = Field(
        ["cpu", "memory"], min_length=1, description="resources that must be named"
    )
    tier: str = Field("production", description="what the message calls these workloads")


def missing(request: Request, part: str, params: Required) -> Iterator[Violation]:
    """Yield a violation for each container without required resources, if its pod lacks them."""
    whole, rule = of_pod(request), f"resource {part} required in {params.tier}"
    required = params.required if whole is None else _lacking(params.required, getattr(whole, part))
    for container in of_containers(request, limit_ranges=params.limit_ranges):
        own = getattr(container, part)
        if lacking := _lacking(required, own):
            absent = " and ".join(name for name in lacking if name not in own)
            zeros = " and ".join(name for name in lacking if name in own)
            parts = (
                absent and f"{absent} missing",
                zeros and f"{zeros} 0, which counts as missing",
            )
            found, excess = ", ".join(filter(None, parts)), frozenset(lacking)
            fix = FIXES.get(len(lacking), "set all of them")
            yield container.violation(
                f"resources.{part}", None, rule, fix, found=found, excess=excess
            )


def _lacking(names: Iterable[str], amounts: Amounts) -> list[str]:
    """Return the names without an amount; 0 cpu or memory counts as none: the kubelet sets none."""
    return [
        name
        for name in names
        if name not in amounts or (name in SHARED and not amounts[name].millis)
    ]


def _defaults(limit_ranges: list[dict[str, Any]]) -> tuple[Amounts, Amounts]:
    """Return the default limits and requests of a container: the first item that sets one wins."""
    limits: Amounts = {}
    requests: Amounts = {}
    for items in read_each(limit_ranges, _items):
        for default_limits, default_requests in items:
            limits, requests = default_limits | limits, default_requests | requests
    return limits, requests


def _items(limit_range: Fields) -> list[tuple[Amounts, Amounts]]:
    """Return the default limits and requests of each item of a LimitRange."""
    defaults = []
    for item in limit_range.each("spec.limits"):
        if item.string("type") == "Container":
            limits = item.quantities("max") | item.quantities("default")
            requests = item.quantities("min") | limits | item.quantities("defaultRequest")
            defaults.append((limits, requests))
    return defaults
