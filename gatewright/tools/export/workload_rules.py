"""Rules in CEL about metadata, resources and other fields of workloads."""

from typing import Any

from gatewright.tools.cel_text import any_glob, glob, literal, negate, some
from gatewright.tools.export.pod_rules import ANY_OBJECT, CelRule, of_containers, of_pod, unless
from webhook.engine.globs import MAX_MATCHED
from webhook.engine.kinds import POD_KINDS, RBAC
from webhook.policies._records import DEFAULT_ROLE, OF_API_SERVER, OF_EVERY_NAMESPACE, RESERVED
from webhook.policies.memory_units import BYTES, SMALLEST
from webhook.policies.probe_timeouts import PROBES, SHORTEST
from webhook.policies.probe_timeouts import RULE as SHORTER

SHARED = ("cpu", "memory")
ON_FAILURE = "variables.pod.?restartPolicy.orValue('') in ['Never', 'OnFailure']"
MIRROR = (
    "'kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({}) && "
    "'system:nodes' in request.userInfo.groups"
)


def of_every_namespace() -> str:
    """Return the test that Kubernetes itself creates an object of this name in the namespace."""
    named = "object.kind + '/' + object.metadata.?name.orValue('')"
    names = literal([f"{kind}/{name}" for kind, name in sorted(OF_EVERY_NAMESPACE)])
    of_api_server = f"{named} == {literal('/'.join(OF_API_SERVER))}"
    in_default = "object.metadata.?namespace.orValue('') == 'default'"
    return f"{named} in {names} || {of_api_server} && {in_default}"


def made_by_kubernetes() -> str:
    """Return the test that Kubernetes itself creates this object."""
    reserved = literal(f"^(?:{RESERVED.pattern})$")
    label, value = map(literal, DEFAULT_ROLE)
    is_role = f"object.apiVersion.startsWith({literal(f'{RBAC}/')})"
    return (
        f"object.kind == 'Namespace' && object.metadata.?name.orValue('').matches({reserved}) || "
        f"{is_role} && object.metadata.?labels[?{label}].orValue('') == {value} || "
        f"{of_every_namespace()}"
    )


def _metadata(field: str, params: Any, patterns: dict[str, str]) -> list[CelRule]:
    holder, spared, of = "object.metadata", made_by_kubernetes(), ""
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
    required = []
    for test, message in rules.items():
        bad = f"{containers}.filter(container, {negate(test)})"
        names = f"{bad}.map(container, container.name).join(', ')"
        expression = f"{ON_FAILURE} || {containers}.all(container, {test})"
        named = f"'containers ' + {names} + {literal(f': {message}')}"
        required.append(CelRule(expression, message, named))
    return required


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


def default_namespace(_: Any) -> list[CelRule]:
    """Return the rule of default-namespace."""
    test = f"object.metadata.?namespace.orValue('') != 'default' || {of_every_namespace()}"
    return [CelRule(test, "metadata.namespace: no objects are allowed in this namespace")]


def autoscaler_bounds(params: Any) -> list[CelRule]:
    """Return the rules of autoscaler-bounds about HorizontalPodAutoscalers."""
    lowest, least = "object.spec.?minReplicas.orValue(1)", params.minimum
    test = f"{lowest} >= {least}" + (f" || {lowest} == 0" if params.allow_zero else "")
    apart = f"object.spec.?maxReplicas.orValue(0) - {lowest} >= {params.spread}"
    message = f"the bounds of autoscalers must be at least {params.spread} apart"
    return [
        CelRule(test, f"spec.minReplicas: autoscalers must keep at least {least} replicas"),
        CelRule(apart, f"spec.maxReplicas: {message}"),
    ]


def memory_units(_: Any) -> list[CelRule]:
    """Return the rules of memory-units."""
    rule = f"amounts below {SMALLEST} probably have the wrong unit"
    is_memory = some(f"name.startsWith({literal(name)})" for name in BYTES)
    rules = []
    for part in ("limits", "requests"):
        amounts = f"holder.?resources.?{part}.orValue({{}})"
        test = f"!({is_memory}) || {_is_plausible(f'{amounts}[name]')}"
        every = f"{amounts}.all(name, {test})"
        holders = f"([variables.pod] + variables.running).all(holder, {every})"
        rules.append(CelRule(holders, f"resources.{part}: {rule}"))
    plausible = f"optMap(amount, {_is_plausible('amount')}).orValue(true)"
    of_volume = f"volume.?emptyDir.?sizeLimit.{plausible}"
    volumes = f"variables.pod.?volumes.orValue([]).all(volume, {of_volume})"
    return [*rules, CelRule(volumes, f"volumes.emptyDir.sizeLimit: {rule}")]


def _is_plausible(amount: str) -> str:
    """Return the test that an amount is 0, or not implausibly small."""
    number, smallest = f"quantity(string({amount}))", literal(str(SMALLEST))
    is_set = f"{number}.isGreaterThan(quantity('0'))"
    return f"(!{is_set} || !{number}.isLessThan(quantity({smallest})))"


def probe_timeouts(_: Any) -> list[CelRule]:
    """Return the rules of probe-timeouts."""
    rules = []
    for name in PROBES:
        timeout, period = (
            f"container.?{name}.?{field}.orValue({default})"
            for field, default in (("timeoutSeconds", 1), ("periodSeconds", 10))
        )
        test = f"{timeout} <= {SHORTEST} || {timeout} < {period}"
        rules.append(of_containers(test, f"{name}.timeoutSeconds: {SHORTER}", ephemeral=False))
    return rules


def disruption_budgets(params: Any) -> list[CelRule]:
    """Return the rules of disruption-budgets; none if the workloads are looked up."""
    if params.workloads:
        return []
    fields = {"minAvailable": "^0*[1-9][0-9]{2,}%$", "maxUnavailable": "^0+%?$"}
    message = "a budget must allow an eviction"
    is_set = " || ".join(f"dyn(object.spec).?{field}.hasValue()" for field in fields)
    rules = [CelRule(is_set, f"spec: {message}")]
    for field, none in fields.items():
        test = f"optMap(pods, string(pods).matches({literal(none)})).orValue(false)"
        rules.append(CelRule(f"!dyn(object.spec).?{field}.{test}", f"spec.{field}: {message}"))
    return unless("object.kind != 'PodDisruptionBudget'", rules)
