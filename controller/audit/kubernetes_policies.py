"""Kubernetes' own admission policies as they stand in a cluster: read with their bindings and parameters."""

from collections.abc import Iterable
from dataclasses import replace

from config.api.admission import GROUP
from config.documents import Document
from controller.audit.listing import Lister, Object
from kube.errors import Forbidden, NotFound
from kube.resource import Resource
from webhook.engine import BoundPolicy, Engine
from webhook.engine.kinds import KINDS, Kind
from webhook.engine.policy_set import document_of
from webhook.engine.rules import Native, find_native

VALIDATING = (
    Resource(GROUP, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False),
    Resource(GROUP, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False),
)
MUTATING = tuple(
    Resource(
        GROUP, version, each.plural.replace("validating", "mutating"), f"Mutating{each.kind[10:]}", namespaced=False
    )
    for version in ("v1", "v1beta1", "v1alpha1")
    for each in VALIDATING
)
LOST = "spec.policyName"  # the fault of a binding without its policy, which Kubernetes ignores


async def kubernetes_policies(lister: Lister, *, mutating: bool = False) -> list[Native]:
    """Return the policies that are bound in a cluster, and the faults of those that cannot be evaluated here.

    ApiError where the API server refuses the policies; where it refuses the parameters of one, that is its fault.
    """
    found: dict[str, Object] = {}
    for resource in (*VALIDATING, *(MUTATING if mutating else ())):
        try:
            found |= {_title(each): each async for each in lister.objects(resource) if _title(each) not in found}
        except NotFound:
            continue  # not in this version of Kubernetes
    if not found:
        return []
    served: dict[tuple[str, str], Resource] = {}
    for each in await lister.client.resources():
        served.setdefault((each.group, each.kind), each)  # the preferred version comes first
    documents = [Document.of_object(document_of(each), title) for title, each in found.items()]
    refused: dict[tuple[str, str], str] = {}
    for api_version, kind in dict.fromkeys(filter(None, map(_param_kind, documents))):
        of_params = served.get((api_version.rpartition("/")[0], kind))
        try:
            documents += [Document.of_object(each) async for each in lister.objects(of_params)] if of_params else []
        except Forbidden as error:
            refused[api_version, kind] = f"{kind} cannot be listed: {error}"
    natives, _ = find_native(documents, _kinds(served.values()))
    bound = [each for each in natives if not any(path == LOST for path, _ in each.faults)]
    return [_without_params(each, refused.get(_param_kind(each.document) or ("", ""))) for each in bound]


def joined(engine: Engine, policies: Iterable[BoundPolicy]) -> Engine:
    """Return the engine with more policies; one whose name is taken already is called `kubernetes:NAME`."""
    taken = {each.title for each in engine.policies}
    more = [replace(each, name=f"kubernetes:{each.name}") if each.name in taken else each for each in policies]
    return engine.with_policies((*engine.policies, *more)) if more else engine


def _title(object: Object) -> str:
    return f"{object['kind']} {object['metadata']['name']}"


def _param_kind(document: Document) -> tuple[str, str] | None:
    wanted = (document.value.get("spec") or {}).get("paramKind")
    return (wanted["apiVersion"], wanted["kind"]) if wanted else None


def _without_params(native: Native, problem: str | None) -> Native:
    return native if problem is None else Native(native.document, (), (("spec.paramKind", problem),))


def _kinds(resources: Iterable[Resource]) -> list[Kind]:
    """Return what policies judge as kinds, where the table of kinds does not have them."""
    return [
        Kind(each.group, each.kind, each.plural, (each.version,), namespaced=each.namespaced)
        for each in resources
        if (each.group, each.kind) not in KINDS
    ]
