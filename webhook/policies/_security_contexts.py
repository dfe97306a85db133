"""Security contexts of an object, and pods that are exempt from rules about them."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, Literal

from pydantic import Field

from webhook.engine.fields import Fields
from webhook.engine.globs import Globs
from webhook.engine.policy import Params
from webhook.engine.request import Request
from webhook.engine.violation import UNSET, Violation
from webhook.policies._ranges import Range, any_holds
from webhook.policies._records import having

NOT_ROOT = Range(minimum=1, maximum=2**31 - 1)  # user or group ids
ProfileType = Literal["RuntimeDefault", "Localhost", "Unconfined"]


def contexts(request: Request) -> list[Fields]:
    """Return the records that set a `securityContext`: the pod's spec, then containers."""
    pod = request.pod()
    return having(
        request.containers() if pod is None else (pod, *request.containers()), "securityContext"
    )


def is_windows(pod: Fields | None) -> bool:
    """Return whether the pod runs on Windows, for which most of a security context is invalid."""
    return pod is not None and pod.string("os.name") == "windows"


def in_user_namespace(pod: Fields | None) -> bool:
    """Return whether the pod's root is unprivileged on the node (`hostUsers: false`)."""
    return pod is not None and pod.boolean("hostUsers") is False


def unless(
    exempt: Callable[[Fields | None], bool], validate: Callable[[Request, Any], Iterator[Violation]]
) -> Callable[[Request, Any], Iterator[Violation]]:
    """Return `validate` for all pods that are not `exempt`."""

    @wraps(validate)
    def judge(request: Request, params: Any) -> Iterator[Violation]:
        return iter(()) if exempt(request.pod()) else validate(request, params)

    return judge


def inheriting_containers(
    request: Request, holder: Fields, field: str, value: object
) -> frozenset[str] | None:
    """Return the excess of a pod's `value`: the containers that inherit it.

    Return None if `holder` is not a pod. With this excess, an update cannot let more containers
    inherit a tolerated value of the pod.
    """
    if holder is not request.pod():
        return None
    return frozenset(
        f"{container.path()} {value}"
        for container in request.containers()
        if not container.is_set(field)
    )


def missing(
    request: Request, path: str, rule: str, fix: str = "set it", fix_value: Any = UNSET
) -> Iterator[Violation]:
    """Yield a violation for each container with `path` set neither on it nor on its pod."""
    pod = request.pod()
    if pod is not None and pod.is_set(path):
        return
    found = "unset" if pod is None else "unset here and on the pod"
    fix = fix if pod is None else f"{fix}, best on the pod"
    for container in request.containers():
        if not container.is_set(path):
            yield container.violation(path, None, rule, fix, found=found, fix_value=fix_value)


class Ids(Params):
    """Which user or group ids containers may run with."""

    allowed: list[Range] = Field(
        [NOT_ROOT], min_length=1, description="ranges of ids that may be set"
    )
    required: bool = Field(False, description="whether an id must be set")

    def judge(self, request: Request, path: str, rule: str) -> Iterator[Violation]:
        """Yield a violation for each id that is not allowed, and for each that is missing."""
        for context in contexts(request):
            id = context.integer(path)
            if id is not None and not any_holds(self.allowed, id):
                excess = inheriting_containers(request, context, path, id)
                yield context.violation(path, id, rule, "set an id that is allowed", excess=excess)
        if self.required and not is_windows(request.pod()):
            yield from missing(request, path, rule)


class Profiles(Params):
    """Which profiles of one kind (seccomp, AppArmor) containers may run with."""

    allowed: list[ProfileType] = Field(
        ["RuntimeDefault", "Localhost"], description="types of profiles that may be set"
    )
    localhost_profiles: Globs | None = Field(
        None,
        description="patterns (`*`, `?`) of the profiles that Localhost may name; "
        "any, where not given",
    )

    def judge(self, request: Request, field: str) -> Iterator[Violation]:
        """Yield a violation for each profile in `securityContext.<field>` that may not be set."""
        holder = f"securityContext.{field}"
        path, profile_path = f"{holder}.type", f"{holder}.localhostProfile"
        for context in contexts(request):
            type = context.string(path)
            if type is not None:
                profile = context.string(profile_path) or ""
                for violation in self.faults(context, path, type, type, profile_path, profile):
                    violation.excess = inheriting_containers(
                        request, context, holder, (type, profile)
                    )
                    yield violation

    def faults(
        self, holder: Fields, path: str, found: str, type: str, profile_path: str, profile: str
    ) -> Iterator[Violation]:
        """Yield a violation where a profile's `type`, or its name in Localhost, is not allowed."""
        if type not in self.allowed:
            rule = f"must be {' or '.join(self.allowed) or 'left out'}"
            fix = "remove it, or set one that is allowed" if self.allowed else "remove it"
            yield holder.violation(path, found, rule, fix)
            return
        names = self.localhost_profiles if type == "Localhost" else None
        if names is not None and not names.match(profile):
            must, no = "profiles of the node must be", "no profile of the node may be named"
            rule = f"{must} {', '.join(names)}" if names else no
            yield holder.violation(profile_path, profile, rule, "name another")
