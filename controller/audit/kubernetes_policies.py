"""Kubernetes' own admission policies in a cluster, with their bindings and parameters."""

from config.api.admission import GROUP
from config.documents import Document
from controller.audit.inventory import kinds_of
from controller.audit.listing import Lister
from kube.resource import JsonObject, Resource, group_kind, title_of
from webhook.policy_sets.admission_policies import Native, native_policies
from webhook.policy_sets.bound_objects import document_of

VALIDATING = (
    Resource(
        GROUP, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
    ),
    Resource(
        GROUP,
        "v1",
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        namespaced=False,
    ),
)
MUTATING = tuple(
    Resource(
        GROUP,
        version,
        resource.plural.replace("validating", "mutating"),
        f"Mutating{resource.kind[10:]}",
        namespaced=False,
    )
    for version in ("v1", "v1beta1", "v1alpha1")
    for resource in VALIDATING
)
LOST = "spec.policyName"  # the fault of a binding without its policy, which Kubernetes ignores


async def kubernetes_policies(lister: Lister, *, is_offline: bool = False) -> list[Native]:
    """Return the bound policies of a cluster, and the faults of those that cannot be evaluated.

    For a command (`is_offline`), also the mutating ones.
    """
    policies: dict[str, JsonObject] = {}
    for resource in (*VALIDATING, *(MUTATING if is_offline else ())):
        policies |= {
            title_of(object): object
            async for object in lister.objects(resource)
            if title_of(object) not in policies
        }
    if not policies:
        return []
    served: dict[tuple[str, str], Resource] = {}
    resources = await lister.client.resources()
    for resource in resources:
        served.setdefault(
            (resource.group, resource.kind), resource
        )  # the preferred version comes first
    documents = [Document.of_object(document_of(each), title) for title, each in policies.items()]
    params = {kind: served[kind] for kind in map(_param_kind, documents) if kind in served}
    for resource in params.values():
        documents += [Document.of_object(each) async for each in lister.objects(resource)]
    natives, _ = native_policies(documents, kinds_of(resources), is_offline=is_offline)
    bound = (each for each in natives if not any(path == LOST for path, _ in each.faults))
    return [_without_params(each, lister, params.get(_param_kind(each.document))) for each in bound]


def _param_kind(document: Document) -> tuple[str, str]:
    """Return group and kind of a policy's parameters.

    For a policy without parameters, a kind that does not exist.
    """
    return group_kind((document.value.get("spec") or {}).get("paramKind") or {})


def _without_params(native: Native, lister: Lister, params: Resource | None) -> Native:
    """Return a policy whose parameters could not be listed as one with that fault."""
    if params is None or params not in lister.unread:
        return native
    text = f"{params.kind} cannot be listed: {lister.unread[params]}"
    return Native(native.document, (), (("spec.paramKind", text),))
