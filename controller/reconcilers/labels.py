"""Labels that children inherit from their parent: users' labels, not tools'.

By Kubernetes' convention labels without a prefix are private to users, and tools use a prefix:
Helm, Argo CD and others recognize their objects by these labels, and prune them. Selectors never
contain inherited labels, since these may change.
"""

from collections.abc import Iterable

from config.api.meta import CustomResource

# Labels that describe the application are inherited, no matter which writer set them.
HANDED_ON = frozenset({"app.kubernetes.io/name", "app.kubernetes.io/part-of"})
# Labels that Kubernetes' controllers set on the pods of workloads: the API server refuses a Job
# whose template has another `job-name` or `controller-uid`.
SET_BY_KUBERNETES = frozenset(
    {
        "job-name",
        "controller-uid",
        "pod-template-hash",
        "pod-template-generation",
        "controller-revision-hash",
    }
)
# Labels that describe the object itself, or that selectors use.
KEPT = frozenset({"app", "managed-by", "version"}) | SET_BY_KUBERNETES
LABELS = "metadata.labels"


def inherited(parent: CustomResource) -> dict[str, str]:
    """Return the labels that all children of `parent` inherit, pods and their claims included."""
    labels = parent.metadata.labels
    return {
        key: labels[key]
        for key in labels
        if key in HANDED_ON or ("/" not in key and key not in KEPT)
    }


def metadata_origin(*templates: str, own: Iterable[str] = ()) -> dict[str, str]:
    """Return the origins of a child's name and labels, and of its pods' labels (`templates`).

    The child's `own` labels have no origin.
    """
    places = [LABELS, *(f"{template}.{LABELS}" for template in templates)]
    handed_on = {each: f"{LABELS}[{each}]" for each in ("*", *HANDED_ON)}
    labels = handed_on | dict.fromkeys((*KEPT, *own), "")
    return {"metadata.name": "metadata.name"} | {
        f"{place}[{key}]": source for place in places for key, source in labels.items()
    }
