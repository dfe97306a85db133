"""The request that a case describes. What the API server would never send, or a typo, is an error."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from config.faults import FaultsError, did_you_mean
from config.schemas import root_type, unknown_fields
from webhook.engine import BoundPolicy
from webhook.engine.kinds import KINDS, Kind
from webhook.harness.bases import at, has_smallest, kinds_by_name, merge, namespace_of, pod_path, smallest
from webhook.harness.case_file import Case, Expectation
from webhook.harness.reviews import Admission, group_version_kind
from webhook.harness.rule_reads import unread
from webhook.policy_sets.rules import RulePolicy

Faults = Iterator[tuple[str, str]]  # path below the case, and what is wrong there


@dataclass(frozen=True, slots=True)
class Variant:
    """A subresource that a case can use: the kind of its object, its operation, and its parent kind."""

    kind: str
    operation: Literal["UPDATE", "CONNECT"] = "UPDATE"
    parent: tuple[str, str] | None = None  # group and kind, if they differ from the object's


VARIANTS = {
    "scale": Variant("Scale", parent=("apps", "Deployment")),
    "ephemeralcontainers": Variant("Pod"),
    "resize": Variant("Pod"),
    "exec": Variant("PodExecOptions", "CONNECT", ("", "Pod")),
    "attach": Variant("PodAttachOptions", "CONNECT", ("", "Pod")),
}


def namespace_in(case: Case) -> str:
    """Return the namespace of a case: as it says, or as its object does. Raises FaultsError if these differ."""
    metadata = case.object.get("metadata")
    own = metadata.get("namespace") if isinstance(metadata, dict) else None
    if own is not None and case.namespace not in (None, own):
        raise FaultsError([("object.metadata.namespace", f'differs from `namespace`, which is "{case.namespace}"')])
    return case.namespace or (own if isinstance(own, str) else None) or "default"


def request_of(case: Case, each: str, policies: Iterable[BoundPolicy]) -> Admission:
    """Return the request of a case for one kind or subresource. Raises FaultsError with paths below the case."""
    variant = VARIANTS.get(each)
    kind = each if variant is None else variant.kind
    judging = list(policies)
    custom = None if variant is not None else _custom(case, kind, judging)
    if case.pod is not None and pod_path(kind) is None:
        raise FaultsError([("pod", f"a {kind} has no pod spec")])
    operation = _operation(case, each, variant)
    namespace = namespace_in(case)
    if custom is None:
        base = smallest(kind, namespace=namespace)
    else:
        named = {"name": "case", "namespace": namespace} if custom.namespaced else {"name": "case"}
        base = {"apiVersion": case.object["apiVersion"], "kind": kind, "metadata": named}
    object = _laid_over(base, kind, case.pod, case.object, "object")
    faults = list(_field_faults(case, object, "object", base, custom, judging))
    old = None
    if operation == "UPDATE" and not faults:
        old = _laid_over(_before(base, object), kind, case.old_pod, case.old_object or {}, "old_object")
        faults += _field_faults(case, old, "old_object", base, custom, judging)
        faults += _identity_faults(object, old)
    if faults:
        raise FaultsError(faults)
    return Admission(
        object=None if operation == "DELETE" else object,
        old_object=object if operation == "DELETE" else old,
        operation=operation,
        namespace=namespace_of(object, namespace),
        subresource="" if variant is None else each,
        parent_kind=None if variant is None else variant.parent,
        parent_name="case",
        username=case.username,
        groups=tuple(case.groups),
        resource="" if custom is None else custom.plural,
    )


def _custom(case: Case, kind: str, policies: Iterable[BoundPolicy]) -> Kind | None:
    """Return the kind that a policy names in full (`certificates.cert-manager.io/v1/Certificate`); None for others."""
    known = kinds_by_name().get(kind)
    group, version, _ = group_version_kind(case.object)
    if known is not None and ("apiVersion" not in case.object or (group, kind) in KINDS):
        return None
    if kind in has_smallest() and "apiVersion" not in case.object:
        return None
    for each in (target.kind for bound in policies for target in bound.policy.targets):
        if (each.group, each.kind) == (group, kind):
            return each
        if each.kind == kind and "apiVersion" not in case.object:
            raise FaultsError(
                [("object.apiVersion", f"missing; a policy names {each.group}/{each.versions[-1]} {kind}")]
            )
    if known is not None:
        here, expected = f"{group}/{version}".lstrip("/"), smallest(kind)["apiVersion"]
        raise FaultsError([("object.apiVersion", f'no policy names a {kind} of "{here}"; expected {expected}')])
    where, choices = "each" if case.each else "object.kind", [*has_smallest(), *VARIANTS]
    raise FaultsError([(where, f'unknown kind "{kind}"{did_you_mean(kind, choices)}')])


def _operation(case: Case, each: str, variant: Variant | None) -> str:
    """Return the operation. Raises FaultsError if it is impossible, or would leave an old object unused."""
    is_update = case.old_object is not None or case.old_pod is not None
    whole = case.operation or ("UPDATE" if is_update else "CREATE")
    operation = whole if variant is None else variant.operation
    if case.operation not in (None, operation):
        raise FaultsError([("operation", f"{each} does not support {case.operation}, only {operation}")])
    for field in ("old_object", "old_pod"):
        if operation != "UPDATE" and getattr(case, field) is not None:
            raise FaultsError([(field, f"a {operation} has only one object: use `object`")])
    return operation


def _laid_over(
    base: dict[str, Any], kind: str, pod: dict[str, Any] | None, object: dict[str, Any], field: str
) -> dict[str, Any]:
    whole: dict[str, Any] = merge(base, object)
    if pod is None:
        return whole
    in_place = at(str(pod_path(kind)), pod)
    laid: dict[str, Any] = merge(merge(base, in_place), object)
    if laid != merge(whole, in_place):
        raise FaultsError([(field.replace("object", "pod"), f"`{field}` sets the same field to another value")])
    return laid


def _before(base: dict[str, Any], object: dict[str, Any]) -> dict[str, Any]:
    """Return the smallest object as it was before an update to `object`, which changes neither version nor name."""
    metadata = object.get("metadata")
    named = {"name": metadata["name"]} if isinstance(metadata, dict) and "name" in metadata else {}
    before: dict[str, Any] = merge(base, {"apiVersion": object["apiVersion"], "metadata": named})
    return before


def _identity_faults(object: dict[str, Any], old: dict[str, Any]) -> Faults:
    for field in ("apiVersion", "kind"):
        if object[field] != old[field]:
            yield f"old_object.{field}", "an update does not change it; leave it out"
    for field in ("name", "namespace"):
        if object.get("metadata", {}).get(field) != old.get("metadata", {}).get(field):
            yield f"old_object.metadata.{field}", "an update does not change it; leave it out"


def _field_faults(
    case: Case,
    object: dict[str, Any],
    field: str,
    base: dict[str, Any],
    custom: Kind | None,
    policies: Iterable[BoundPolicy],
) -> Faults:
    """Yield the fields that the kind does not have, and what should be a list or an object: a typo tests nothing.

    A denial may be about a wrong type. A version without a schema has the fields of the known version.
    """
    if not isinstance(object.get("metadata", {}), dict):
        yield f"{field}.metadata", "must be an object"
        return
    is_denied = isinstance(case.expect, Expectation) and bool(case.expect.denied or case.expect.malformed)
    known = object
    if custom is None and root_type(str(object["apiVersion"]), str(object["kind"])) is None:
        known = {**object, "apiVersion": base["apiVersion"] if base["apiVersion"] != object["apiVersion"] else ""}
    pod_field = field.replace("object", "pod")
    pod = pod_path(str(base["kind"])) if getattr(case, pod_field) is not None else None
    for path, text in unknown_fields(known, types=not is_denied):
        yield f"{pod_field}{path.removeprefix(pod)}" if pod and path.startswith(f"{pod}.") else f"{field}.{path}", text
    if custom is not None and root_type(str(object["apiVersion"]), str(object["kind"])) is None:
        judging = [each.policy for each in policies if any(target.kind == custom for target in each.policy.targets)]
        rules = [policy for policy in judging if isinstance(policy, RulePolicy) and policy.mutate is None]
        if len(rules) == len(judging):
            yield from ((f"{field}.{path}", text) for path, text in unread(object, rules))
