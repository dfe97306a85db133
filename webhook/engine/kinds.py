"""The kinds that policies look at: their resources, where their pods stand, and how they scale."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of the API, with what a policy and a webhook registration need to know of it."""

    group: str
    kind: str
    plural: str
    versions: tuple[str, ...] = ("v1",)
    pod_spec: str | None = None  # path of the pod's spec, where the kind carries pods
    container: str | None = None  # path of an object that is itself one container (an image, resources …)
    scales: bool = False  # has spec.replicas and a /scale subresource
    judged_subresources: tuple[str, ...] = ()  # subresources whose object is the whole parent


TEMPLATE = "spec.template.spec"

POD_KINDS = (
    Kind("", "Pod", "pods", pod_spec="spec", judged_subresources=("ephemeralcontainers", "resize")),
    Kind("", "PodTemplate", "podtemplates", pod_spec="template.spec"),
    Kind("", "ReplicationController", "replicationcontrollers", pod_spec=TEMPLATE, scales=True),
    Kind("apps", "DaemonSet", "daemonsets", pod_spec=TEMPLATE),
    Kind("apps", "Deployment", "deployments", pod_spec=TEMPLATE, scales=True),
    Kind("apps", "ReplicaSet", "replicasets", pod_spec=TEMPLATE, scales=True),
    Kind("apps", "StatefulSet", "statefulsets", pod_spec=TEMPLATE, scales=True),
    Kind("batch", "CronJob", "cronjobs", pod_spec=f"spec.jobTemplate.{TEMPLATE}"),
    Kind("batch", "Job", "jobs", pod_spec=TEMPLATE),
    Kind("example.com", "WebApp", "webapps", container="spec", scales=True),
)
AUTOSCALER = Kind("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", versions=("v1", "v2"))

KINDS = {(kind.group, kind.kind): kind for kind in (*POD_KINDS, AUTOSCALER)}

TargetKey = tuple[str, str, str]  # group, resource, subresource: what a review is looked up by


@dataclass(frozen=True, slots=True)
class Target:
    """One resource or subresource that a policy judges."""

    kind: Kind
    subresource: str = ""

    @property
    def key(self) -> TargetKey:
        """What a review of this target is looked up by."""
        return self.kind.group, self.kind.plural, self.subresource


def _pods() -> tuple[Target, ...]:
    whole = [Target(kind) for kind in POD_KINDS]
    return (*whole, *(Target(kind, sub) for kind in POD_KINDS for sub in kind.judged_subresources))


def _scalable() -> tuple[Target, ...]:
    scaling = [kind for kind in POD_KINDS if kind.scales]
    return (*map(Target, scaling), *(Target(kind, "scale") for kind in scaling), Target(AUTOSCALER))


NAMED = {"pods": _pods(), "scalable": _scalable()}

TARGETS = {target.key: target for target in (*map(Target, KINDS.values()), *NAMED["pods"], *NAMED["scalable"])}


def targets(kinds: str | tuple[str, ...]) -> tuple[Target, ...]:
    """Return what `kinds` stands for: the name of a set ("pods", "scalable"), or the names of kinds."""
    if isinstance(kinds, str):
        return NAMED[kinds]
    found = [Target(kind) for kind in KINDS.values() if kind.kind in kinds]
    if len(found) != len(kinds):
        raise LookupError(f"{kinds} names a kind that is not in the table")
    return tuple(found)


def resource_of(group: str, kind: str) -> str:
    """Return the resource of a kind: as the table says, else as the API's convention forms it."""
    known = KINDS.get((group, kind))
    return known.plural if known else f"{kind.lower()}s"
