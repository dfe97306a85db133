"""What containers are given and may use, as it will stand once the cluster has filled in what they leave out."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from config.quantities import Quantity, parse_quantity, written
from webhook.engine.fields import Fields, entry
from webhook.engine.look_ups import read_each
from webhook.engine.policy import Params
from webhook.engine.request import Request
from webhook.engine.violation import Excess, Violation

LIMIT_RANGES = "limit_ranges"  # what is looked up: the LimitRange objects of the namespace
SHARED = ("cpu", "memory")  # what a pod can have as a whole, and more of in use than was requested
ZERO = Fraction(0)
FIXES = {1: "set it", 2: "set both"}  # by the number of what is missing

Part = Literal["limits", "requests"]
Amounts = dict[str, Quantity]
Values = dict[str, Fraction]


def _amount(value: str | int | float) -> str | int | float:
    if parse_quantity(str(value)).value < 0:
        raise ValueError("must not be negative")
    return value


Amount = Annotated[str | int | float, AfterValidator(_amount)]  # a quantity as a parameter: text or number


def amount(value: str | int | float) -> Quantity:
    """Return a parameter that is an Amount as a quantity."""
    return parse_quantity(str(value))


NOTHING: tuple[Amounts, Amounts] = ({}, {})


class Resources:
    """The resources of one container, or of a pod as a whole, which stand at `owner`, read when somebody asks.

    `below` are the limits and requests that count where the owner says nothing.
    """

    __slots__ = ("_below", "_limits", "_requests", "owner")

    def __init__(self, owner: Fields, below: tuple[Amounts, Amounts] = NOTHING) -> None:
        """Remember where they stand."""
        self.owner = owner
        self._below = below
        self._limits: Amounts | None = None
        self._requests: Amounts | None = None

    @property
    def limits(self) -> Amounts:
        """The limits."""
        if self._limits is None:
            own, below = self.owner.quantities("resources.limits"), self._below[0]
            self._limits = below | own if below else own
        return self._limits

    @property
    def requests(self) -> Amounts:
        """The requests; one that is left out is the limit."""
        if self._requests is None:
            self._requests = self._all_requests()
        return self._requests

    def _all_requests(self) -> Amounts:
        own = self.owner.quantities("resources.limits") | self.owner.quantities("resources.requests")
        return self._below[1] | own

    def of(self, part: Part) -> Amounts:
        """Return the limits or the requests."""
        return self.limits if part == "limits" else self.requests

    def violation(
        self,
        part: Part,
        resource: str,
        value: Any,
        rule: str,
        fix: str,
        *,
        found: str | None = None,
        excess: Excess | None = None,
    ) -> Violation:
        """Return a violation about one of them."""
        return self.owner.violation(entry(f"resources.{part}", resource), value, rule, fix, found=found, excess=excess)


class PodResources(Resources):
    """The resources of a pod as a whole, which its containers share."""

    def _all_requests(self) -> Amounts:
        """Return the requests; one left out beside limits is what the containers request together, else the limit."""
        own = self.owner.quantities("resources.requests")
        return self.limits | _together(self.owner) | own if self.limits else own


def _together(pod: Fields) -> Amounts:
    """Return the cpu and the memory that the containers of a pod request, when it needs most of each.

    That is all of its containers and sidecars at once, or one init container and the sidecars started before it.
    """
    running: Values = {}
    most: Values = {}
    for container in pod.each("initContainers"):
        needed = _joined(sum, running, _requested(container))
        most = _joined(max, most, needed)
        if container.string("restartPolicy") == "Always":
            running = needed
    for container in pod.each("containers"):
        running = _joined(sum, running, _requested(container))
    return {name: written(value) for name, value in _joined(max, most, running).items()}


def _requested(container: Fields) -> Values:
    requests = Resources(container).requests
    return {name: requests[name].value for name in SHARED if name in requests}


def _joined(join: Callable[[tuple[Fraction, Fraction]], Any], one: Values, other: Values) -> Values:
    return {name: join((one.get(name, ZERO), other.get(name, ZERO))) for name in one | other}


def of_containers(request: Request, *, limit_ranges: bool = False, run_once: bool = True) -> list[Resources]:
    """Return the resources of every container that may have any; ephemeral ones may not.

    A request that is left out is the limit, as in every pod; with `limit_ranges`, LimitRanges fill in what is left out
    still. The order is that of the API server and of its LimitRanger.
    """
    below = _defaults(request.lookup(LIMIT_RANGES)) if limit_ranges else NOTHING
    return [Resources(each, below) for each in request.containers(ephemeral=False, run_once=run_once)]


def of_pod(request: Request) -> Resources | None:
    """Return the resources that the pod has as a whole, for its containers to share; None where there is no pod."""
    pod = request.pod()
    return None if pod is None else PodResources(pod)


def of_all(request: Request, *, limit_ranges: bool = False) -> Iterator[Resources]:
    """Yield the resources of every container, and those of the pod as a whole."""
    yield from of_containers(request, limit_ranges=limit_ranges)
    whole = of_pod(request)
    if whole is not None:
        yield whole


class Completed(Params):
    """Parameters of a policy that can take account of LimitRanges."""

    limit_ranges: bool = Field(False, description="whether defaults from LimitRanges count as set")


def needs(params: Completed) -> tuple[str, ...]:
    """Name what must be looked up by these parameters."""
    return (LIMIT_RANGES,) if params.limit_ranges else ()


class Required(Completed):
    """Which resources every container must name."""

    required: list[Literal["cpu", "memory", "ephemeral-storage"]] = Field(
        ["cpu", "memory"], description="resources that must be named"
    )
    init_containers: bool = Field(
        True, description="whether init containers without restartPolicy Always are judged too; sidecars always are"
    )
    tier: str = Field("production", description="what the message calls these workloads")


def missing(request: Request, part: Part, params: Required) -> Iterator[Violation]:
    """Yield a violation for each container that lacks required resources, which its pod as a whole lacks too."""
    field, rule = f"resources.{part}", f"resource {part} required in {params.tier}"
    whole = of_pod(request)
    shared = whole.of(part) if whole is not None else {}
    for each in of_containers(request, limit_ranges=params.limit_ranges, run_once=params.init_containers):
        own = each.of(part)
        lacking = [name for name in params.required if not (_has(name, own) or _has(name, shared))]
        if lacking:
            found, fix = _worded(tuple(lacking), tuple(name for name in lacking if name in own))
            yield each.owner.violation(field, None, rule, fix, found=found, excess=frozenset(lacking))


@lru_cache(maxsize=256)
def _worded(lacking: tuple[str, ...], zero: tuple[str, ...]) -> tuple[str, str]:
    """Return how a message says what is lacking, of which some are 0, and the fix."""
    absent = " and ".join(name for name in lacking if name not in zero)
    zeros = " and ".join(zero)
    found = ", ".join([*[f"{absent} missing"] * bool(absent), *[f"{zeros} 0, which is none"] * bool(zeros)])
    return found, FIXES.get(len(lacking), "set all of them")


def _has(resource: str, amounts: Amounts) -> bool:
    """Return whether there is an amount; of cpu and memory 0 is none: a kubelet sets no limit then."""
    found = amounts.get(resource)
    return found is not None and (bool(found.value) or resource not in SHARED)


def _defaults(limit_ranges: list[dict[str, Any]]) -> tuple[Amounts, Amounts]:
    """Return the limits and the requests that a container gets; of two LimitRanges, the first one counts."""
    limits: Amounts = {}
    requests: Amounts = {}
    for defaults, asked in read_each(limit_ranges, _defaults_of):
        limits = defaults | limits
        requests = asked | requests
    return limits, requests


def _defaults_of(limit_range: Fields) -> tuple[Amounts, Amounts]:
    """Return the limits and the requests that one LimitRange fills in."""
    limits: Amounts = {}
    requests: Amounts = {}
    for item in limit_range.each("spec.limits"):
        if item.string("type") == "Container":
            default = item.quantities("max") | item.quantities("default")
            limits = default | limits
            requests = item.quantities("min") | default | item.quantities("defaultRequest") | requests
    return limits, requests
