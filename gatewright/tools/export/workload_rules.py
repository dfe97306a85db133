"""Rules in CEL about metadata, resources and other fields of workloads."""

from typing import Any

from gatewright.tools.cel_text import any_glob, glob, literal, negate
from gatewright.tools.export.pod_rules import ANY_OBJECT, CelRule, of_containers, of_pod
from webhook.engine.globs import MAX_MATCHED
from webhook.engine.kinds import POD_KINDS
from webhook.policies._records import OF_EVERY_NAMESPACE

SHARED = ("cpu", "memory")
ON_FAILURE = "variables.pod.?restartPolicy.orValue('') in ['Never', 'OnFailure']"
MIRROR = (
    "'kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({}) && "
    "'system:nodes' in request.userInfo.groups"
)


def of_every_namespace() -> str:
    """Return the test that Kubernetes itself creates the object in every namespace."""
    names = literal([f"{kind}/{name}" for kind, name in sorted(OF_EVERY_NAMESPACE)])
    return f"object.kind + '/' + object.metadata.?name.orValue('') in {names}"


def _metadata(field: str, params: Any, patterns: dict[str, str]) -> list[CelRule]:
    holder, spared, of = "object.metadata", of_every_namespace(), ""
    if params.where == "pods":
        kinds = literal([kind.kind for kind in POD_KINDS if kind.pod_metadata is not None])
        holder, spared, of = "variables.template.?metadata", f"!(object.kind in {kinds})", "pods' "
    values, rules = f"{holder}.?{field}.orValue({{}})", []
    for key, pattern in patterns.items():
        test = f"{literal(key)} in {values}"
        like = _pattern(f"{values}[{literal(key)}]", pattern)
        if like != "true":
            test += f" && {like}"
        is_any = pattern in ("*", "?*")
        must = "is required" if is_any else f"is required, with a value like {pattern}"
        message = f"{of}metadata.{field}[{key}]: the {field.removesuffix('s')} {must}"
        rules.append(CelRule(f"{spared} || {test}", message))
    return rules


def _pattern(value: str, pattern: str) -> str:
    """Return the test that a value matches a glob or a /regular expression/."""
    if len(pattern) < 2 or not (pattern.startswith("/") and pattern.endswith("/")):
        return glob(value, pattern)
    regex = literal(f"^(?:{pattern[1:-1]})$")
    return f"{value}.size() <= {MAX_MATCHED} && {value}.matches({regex})"


def required_labels(params: Any) -> list[CelRule]:
    """Return the rules of required-labels."""
    return _metadata("labels", params, params.labels)


def required_annotations(params: Any) -> list[CelRule]:
    """Return the rules of required-annotations."""
    return _metadata("annotations", params, params.annotations)


def resource_requests(params: Any) -> list[CelRule]:
    """Return the rules of resource-requests; none with LimitRanges."""
    if params.limit_ranges:
        return []
    rules = []
    for name in params.required:
        test = f"{_is_set(_request('container', name), name)} || {_whole(name)}"
        message = f"resources.requests.{name}: resource requests required in {params.tier}"
        rules.append(of_containers(test, message, ephemeral=False))
    return rules


def _request(holder: str, name: str) -> str:
    """Return a container's request as an optional: a limit counts as one."""
    request, limit = (
        f"{holder}.?resources.?{part}[?{literal(name)}]" for part in ("requests", "limits")
    )
    return f"{request}.or({limit})"


def _whole(name: str) -> str:
    """Return the test that a pod requests a resource for all of its containers."""
    request, limit = (
        f"variables.pod.?resources.?{part}[?{literal(name)}]" for part in ("requests", "limits")
    )
    if name not in SHARED:
        return f"{request}.or({limit}).hasValue()"
    own = _request("other", name)
    # Beside limits of the pod, an unset request is the sum of the containers' requests.
    summed = (
        f"variables.running.exists(other, {own}.hasValue()) ? "
        f"variables.running.exists(other, {_is_set(own, name)}) : {_is_set(limit, name)}"
    )
    has_limits = "variables.pod.?resources.?limits.orValue({}).size() > 0"
    return f"({request}.hasValue() ? {_is_set(request, name)} : {has_limits} && ({summed}))"


def _is_set(value: str, name: str) -> str:
    """Return the test of an optional amount; 0 cpu or memory counts as none."""
    if name not in SHARED:
        return f"{value}.hasValue()"
    is_positive = "quantity(string(amount)).isGreaterThan(quantity('0'))"
    return f"{value}.optMap(amount, {is_positive}).orValue(false)"


def container_counts(params: Any) -> list[CelRule]:
    """Return the rules of container-counts."""
    lists = (("containers", params.containers), ("initContainers", params.init))
    return [
        of_pod(
            f"variables.pod.?{field}.orValue([]).size() <= {maximum}",
            f"{field}: a pod cannot have more than {maximum}",
        )
        for field, maximum in lists
    ]


def probes(params: Any) -> list[CelRule]:
    """Return the rules of probes; none if only containers behind a Service are judged."""
    if params.served or params.distinct:
        return []
    has = {name: _has_probe(name, params.handlers) for name in params.required}
    if params.enough == "one":
        names = " or ".join(f"{name}Probe" for name in has)
        rules = {" || ".join(has.values()): f"a container must have a {names}"}
    else:
        ways = ", ".join(params.handlers)
        rules = {
            test: f"{name}Probe: a container must have a {name} probe by one of {ways}"
            for name, test in has.items()
        }
    containers = "variables.pod.?containers.orValue([])"
    found = []
    for test, message in rules.items():
        bad = f"{containers}.filter(container, {negate(test)})"
        names = f"{bad}.map(container, container.name).join(', ')"
        expression = f"{ON_FAILURE} || {containers}.all(container, {test})"
        named = f"'containers ' + {names} + {literal(f': {message}')}"
        found.append(CelRule(expression, message, named))
    return found


def _has_probe(name: str, handlers: list[str]) -> str:
    return " || ".join(f"container.?{name}Probe.?{each}.hasValue()" for each in handlers)


def naked_pods(_: Any) -> list[CelRule]:
    """Return the rule of naked-pods."""
    owned = "object.metadata.?ownerReferences.orValue([]).exists(owner, "
    test = f"{owned}owner.?controller.orValue(false)) || {MIRROR}"
    message = "metadata.ownerReferences: pods must have a controller that recreates them"
    return [CelRule(test, message)]


def service_accounts(params: Any) -> list[CelRule]:
    """Return the rules of service-accounts."""
    account = "variables.account"
    forbidden = any_glob(account, params.forbidden)
    rules = [of_pod(negate(forbidden), "serviceAccountName: not an account that pods may use")]
    if not params.allowed.match(""):
        names = ", ".join(params.allowed)
        test = any_glob(account, params.allowed)
        rules.append(of_pod(test, f"serviceAccountName: must be one of {names}"))
    return rules


def service_account_tokens(params: Any) -> list[CelRule]:
    """Return the rules of service-account-tokens."""
    is_account = "object.kind == 'ServiceAccount'"
    field = "automountServiceAccountToken"
    of_account = f"{ANY_OBJECT}.?{field}.orValue(false)"
    of_a_pod = f"variables.pod.?{field}.orValue(true)"
    mounted = f"{is_account} ? {of_account} : {of_a_pod}"
    account = f"({is_account} ? object.metadata.?name.orValue('') : variables.account)"
    names = ", ".join(params.allowed)
    message = f"only tokens of {names} may be mounted" if names else "no token may be mounted"
    allowed = [any_glob(account, params.allowed)] if params.allowed else []
    return [CelRule(" || ".join([f"!({mounted})", *allowed]), f"{field}: {message}")]


def flex_volume_drivers(params: Any) -> list[CelRule]:
    """Return the rule of flex-volume-drivers."""
    names = literal(params.allowed)
    test = f"!has(volume.flexVolume) || volume.flexVolume.?driver.orValue('') in {names}"
    every = f"variables.pod.?volumes.orValue([]).all(volume, {test})"
    message = f"flexVolume drivers must be {' or '.join(params.allowed)}"
    return [of_pod(every, f"volumes: {message if params.allowed else 'no flexVolume may be used'}")]


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


def default_namespace(_: Any) -> list[CelRule]:
    """Return the rule of default-namespace."""
    own = "object.kind == 'Service' && object.metadata.?name.orValue('') == 'kubernetes'"
    test = (
        f"object.metadata.?namespace.orValue('') != 'default' || ({own}) || {of_every_namespace()}"
    )
    return [CelRule(test, "metadata.namespace: no objects are allowed in this namespace")]
