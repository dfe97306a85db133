"""Builds the request that a case describes.

A typo, or a request that the API server would never send, is an error.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from config.faults import FaultsError, did_you_mean, refuse
from config.field_paths import value_at
from config.schemas import root_type, unknown_fields
from kube.resource import JsonObject, group_version_kind
from webhook.engine import BoundPolicy, Policy
from webhook.engine.kinds import KINDS, Kind, plural
from webhook.harness.bases import at, has_smallest, merge, pod_path, smallest
from webhook.harness.case_file import Case, ExpectedAnswer
from webhook.harness.looked_up import CaseFaults
from webhook.harness.reviews import Admission, reviewed_namespace
from webhook.harness.rule_fields import unread
from webhook.policy_sets.rules import RulePolicy

# Fields that an update cannot change.
IDENTITY = ("apiVersion", "kind", "metadata.name", "metadata.namespace")
RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage", "storage"})


@dataclass(frozen=True, slots=True)
class Variant:
    """A subresource of a case: the kind of its object, the operation, and the parent kind."""

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
    """Return the namespace of a case: the one it names, or else the one its object names.

    Raises FaultsError if these differ.
    """
    metadata = case.object.get("metadata")
    own = metadata.get("namespace") if isinstance(metadata, dict) else None
    if own is not None and case.namespace not in (None, own):
        refuse(
            "object.metadata.namespace", f'differs from `namespace`, which is "{case.namespace}"'
        )
    return case.namespace or (own if isinstance(own, str) else None) or "default"


def request_of(case: Case, each: str, policies: Iterable[BoundPolicy]) -> Admission:
    """Return the request of a case for one kind or subresource.

    Raises FaultsError with paths below the case.
    """
    variant = VARIANTS.get(each)
    kind = each if variant is None else variant.kind
    named, rules = (None, []) if variant is not None else _named_in_full(case, kind, policies)
    if case.pod is not None and pod_path(kind) is None:
        refuse("pod", f"a {kind} has no pod spec")
    operation = _operation(case, each, variant)
    namespace = namespace_in(case)
    if named is None:
        base = smallest(kind, namespace=namespace)
    else:
        base = _bare(case.object, named, namespace)
    object, old = _build_object(case, "object", base, rules), None
    if operation == "UPDATE":
        old = _build_object(case, "old_object", _before(base, object), rules)
        changed = [path for path in IDENTITY if value_at(object, path) != value_at(old, path)]
        if changed:
            text = "an update does not change it; leave it out"
            raise FaultsError((f"old_object.{path}", text) for path in changed)
    return Admission(
        object=None if operation == "DELETE" else object,
        old_object=object if operation == "DELETE" else old,
        operation=operation,
        namespace=reviewed_namespace(object, namespace),
        subresource="" if variant is None else each,
        parent_kind=None if variant is None else variant.parent,
        parent_name="case",
        username=case.username,
        groups=tuple(case.groups),
        resource="" if named is None else named.plural,
    )


def _named_in_full(
    case: Case, kind: str, policies: Iterable[BoundPolicy]
) -> tuple[Kind | None, list[Policy]]:
    """Return a kind that only policies name (`cert-manager.io/v1/Certificate`), and the policies.

    None and no policies for a known kind. A known name with the apiVersion of another group is the
    kind of that group.
    """
    group, version, _ = group_version_kind(case.object)
    if kind in has_smallest() and ("apiVersion" not in case.object or (group, kind) in KINDS):
        return None, []
    targets = [(target.kind, bound.policy) for bound in policies for target in bound.policy.targets]
    named = [
        (named, policy) for target, policy in targets if (named := _kind_named(target, group, kind))
    ]
    if matching := [each for each in named if each[0].group == group]:
        return matching[0][0], [policy for _, policy in matching]
    if kind in has_smallest():
        expected, here = smallest(kind)["apiVersion"], f"{group}/{version}".lstrip("/")
        refuse("object.apiVersion", f'no policy names a {kind} of "{here}"; expected {expected}')
    if named and "apiVersion" not in case.object:
        expected = named[0][0].resource.api_version
        refuse("object.apiVersion", f"missing; a policy names {expected} {kind}")
    where, choices = "each" if case.each else "object.kind", [*has_smallest(), *VARIANTS]
    refuse(where, f'unknown kind "{kind}"{did_you_mean(kind, choices)}')
    return None


def _kind_named(kind: Kind, group: str, name: str) -> Kind | None:
    """Return a kind if it has this name, or if its name is unknown.

    The name of a resource that only a policy names is unknown.
    """
    if kind.kind != kind.plural:
        return kind if kind.kind == name else None
    is_it = kind.group == group and kind.plural == plural(name)
    return replace(kind, kind=name) if is_it else None


def _operation(case: Case, each: str, variant: Variant | None) -> str:
    """Return the operation.

    Raises FaultsError if it is not supported, or if the case has an old object that it would not
    use.
    """
    is_update = case.old_object is not None or case.old_pod is not None
    whole = case.operation or ("UPDATE" if is_update else "CREATE")
    operation = whole if variant is None else variant.operation
    if case.operation not in (None, operation):
        refuse("operation", f"{each} does not support {case.operation}, only {operation}")
    for field in ("old_object", "old_pod"):
        if operation != "UPDATE" and getattr(case, field) is not None:
            refuse(field, f"a {operation} has only one object: use `object`")
    return operation


def _bare(object: JsonObject, kind: Kind, namespace: str) -> JsonObject:
    """Return the smallest object of a kind that only policies name."""
    metadata = {"name": "case", "namespace": namespace} if kind.namespaced else {"name": "case"}
    return {"apiVersion": object["apiVersion"], "kind": kind.kind, "metadata": metadata}


def _before(base: JsonObject, object: JsonObject) -> JsonObject:
    """Return the smallest object before an update, with the same version and name."""
    named = {"name": object["metadata"]["name"]} if "name" in object.get("metadata", {}) else {}
    before: JsonObject = merge(base, {"apiVersion": object["apiVersion"], "metadata": named})
    return before


def _build_object(case: Case, field: str, base: JsonObject, rules: list[Policy]) -> JsonObject:
    """Return the `object` or `old_object` of a case: `base` with its fields.

    Raises FaultsError for each wrong field.

    `rules` are the policies that name the kind, if only these do.
    """
    pod_field, path = field.replace("object", "pod"), pod_path(base["kind"])
    pod, own = getattr(case, pod_field), getattr(case, field) or {}
    object: JsonObject = merge(base, own)
    if pod is not None and path is not None:
        below, above = at(path, pod), object
        object = merge(merge(base, below), own)
        if object != merge(above, below):
            refuse(pod_field, f"`{field}` sets the same field to another value")
    if not isinstance(object.get("metadata", {}), dict):
        refuse(f"{field}.metadata", "must be an object")
    in_pod = f"{path}."
    is_denied = isinstance(case.expect, ExpectedAnswer) and bool(
        case.expect.denied or case.expect.malformed
    )
    faults = [
        (f"{pod_field}.{path.removeprefix(in_pod)}", text)
        if pod is not None and path.startswith(in_pod)
        else (f"{field}.{path}", text)
        for path, text in _field_faults(object, base, rules, is_denied=is_denied)
    ]
    if faults:
        raise FaultsError(faults)
    return object


def _field_faults(
    object: JsonObject, base: JsonObject, rules: list[Policy], *, is_denied: bool
) -> CaseFaults:
    """Yield the fields that the kind does not have: a case with a typo tests nothing.

    An unknown version is assumed to have the fields of the known version. In a case that expects a
    denial, wrong types and unknown resources are allowed: the denial shows that a rule reads the
    field.
    """
    if not rules and root_type(str(object["apiVersion"]), str(object["kind"])) is None:
        object = {**object, "apiVersion": base["apiVersion"]}
    yield from unknown_fields(object, types=not is_denied)
    if is_denied:
        return
    yield from _unknown_resources(object, "")
    in_cel = [
        policy for policy in rules if isinstance(policy, RulePolicy) and policy.mutate is None
    ]
    if rules and len(in_cel) == len(rules):
        yield from unread(object, in_cel)


def _unknown_resources(value: Any, path: str) -> CaseFaults:
    """Yield limits and requests of unknown resources, among names without a domain."""
    for key, below in value.items() if isinstance(value, dict) else ():
        at_key = f"{path}.{key}" if path else str(key)
        if key in ("limits", "requests") and isinstance(below, dict):
            for name in below:
                if name not in RESOURCES and "/" not in name and not name.startswith("hugepages-"):
                    yield f"{at_key}.{name}", f"unknown resource{did_you_mean(name, RESOURCES)}"
        elif isinstance(below, list):
            for index, item in enumerate(below):
                yield from _unknown_resources(item, f"{at_key}[{index}]")
        else:
            yield from _unknown_resources(below, at_key)
