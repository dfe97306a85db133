"""The kinds that policies judge: their resources, and where their pods are."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Self

from config.api.definition import Definition
from config.api.policy import GROUP
from config.crds import kinds as types
from kube.resource import Resource

CREATE_AND_UPDATE = ("CREATE", "UPDATE")
# Subresources with operation CONNECT; others are updated.
CONNECTED = frozenset({"exec", "attach", "portforward", "proxy"})
ANY_VERSION = "*"  # the first version of a kind that may be served in other versions too
MAX_VERSION_SETS = 4  # of one kind; each is a webhook
# Subresources whose object has another kind than the parent.
OF_A_PARENT = CONNECTED | {"scale", "eviction", "binding", "token"}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind in all its versions, with the properties that policies and the registration use.

    `resource` returns the `kube.resource.Resource` of one version, for requests.
    """

    group: str
    kind: str
    plural: str
    versions: tuple[str, ...] = ("v1",)
    pod_spec: str | None = None  # path of the pod's spec, if the kind has pods
    # Paths of the pods' specs in a kind with several; `[]` stands for each item of a list.
    pod_specs: tuple[str, ...] = ()
    container: str | None = None  # path of an object that is itself one container (with an image)
    scales: bool = False  # has spec.replicas and a /scale subresource
    namespaced: bool = True
    is_read: bool = False  # the webhook can look up its objects, as it can all that scale
    has_pods: bool = field(init=False, compare=False, repr=False)  # at `pod_spec` or `pod_specs`

    def __post_init__(self) -> None:
        object.__setattr__(self, "has_pods", bool(self.pod_spec or self.pod_specs))

    @classmethod
    def of(cls, definition: Definition) -> Self:
        """Return a custom kind in its storage version, to which the others are converted."""
        scale = definition.scale
        return cls(
            definition.group,
            definition.kind,
            definition.plural,
            versions=(definition.version,),
            container=definition.container,
            scales=scale is not None and scale.replicas == ".spec.replicas",
            namespaced=definition.namespaced,
            is_read=scale is not None,
        )

    @property
    def resource(self) -> Resource:
        """The resource of its newest version."""
        return Resource(self.group, self.versions[-1], self.plural, self.kind, self.namespaced)

    @property
    def pod_metadata(self) -> str | None:
        """Path of the pods' metadata."""
        return None if self.pod_spec is None else f"{self.pod_spec.removesuffix('spec')}metadata"

    def has_labels_at(self, subresource: str) -> bool:
        """Return whether label selectors can select requests for a subresource.

        For /scale, exec and the like, the webhook must look up the object that these belong to.
        """
        return subresource not in OF_A_PARENT or self.scales or self.is_read


# Group, resource, subresource, operation: the key for finding policies of a review.
TargetKey = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Target:
    """One resource or subresource that a policy judges, and the operations it judges there."""

    kind: Kind
    subresource: str = ""
    operations: tuple[str, ...] = CREATE_AND_UPDATE
    keys: tuple[TargetKey, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        place = self.kind.group, self.kind.plural, self.subresource
        keys = [(*place, operation) for operation in self.operations]
        object.__setattr__(self, "keys", tuple(keys))


TEMPLATE = "spec.template.spec"

POD = Kind("", "Pod", "pods", pod_spec="spec", is_read=True)
POD_KINDS = (
    POD,
    Kind("", "PodTemplate", "podtemplates", pod_spec="template.spec"),
    Kind("", "ReplicationController", "replicationcontrollers", pod_spec=TEMPLATE, scales=True),
    Kind("apps", "DaemonSet", "daemonsets", pod_spec=TEMPLATE),
    Kind("apps", "Deployment", "deployments", pod_spec=TEMPLATE, scales=True),
    Kind("apps", "ReplicaSet", "replicasets", pod_spec=TEMPLATE, scales=True),
    Kind("apps", "StatefulSet", "statefulsets", pod_spec=TEMPLATE, scales=True),
    Kind("batch", "CronJob", "cronjobs", pod_spec=f"spec.jobTemplate.{TEMPLATE}"),
    Kind("batch", "Job", "jobs", pod_spec=TEMPLATE),
)
AUTOSCALERS = (
    Kind("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", ("v1", "v2")),
    Kind("keda.sh", "ScaledObject", "scaledobjects", versions=("v1alpha1",)),
)
NAMESPACES = ("", "namespaces")  # group and resource of Namespace objects
PERSISTENT_VOLUME = Kind("", "PersistentVolume", "persistentvolumes", namespaced=False)
RBAC = "rbac.authorization.k8s.io"
OTHER_KINDS = (
    Kind("", "ConfigMap", "configmaps"),
    Kind("", "Namespace", "namespaces", namespaced=False),
    PERSISTENT_VOLUME,
    Kind("", "PersistentVolumeClaim", "persistentvolumeclaims"),
    Kind("", "Secret", "secrets"),
    Kind("", "Service", "services", is_read=True),
    Kind("", "ServiceAccount", "serviceaccounts"),
    Kind("networking.k8s.io", "Ingress", "ingresses"),
    Kind("networking.k8s.io", "NetworkPolicy", "networkpolicies"),
    Kind("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
    Kind(RBAC, "ClusterRole", "clusterroles", namespaced=False),
    Kind(RBAC, "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    Kind(RBAC, "Role", "roles"),
    Kind(RBAC, "RoleBinding", "rolebindings"),
    Kind("storage.k8s.io", "StorageClass", "storageclasses", namespaced=False),
)


OWN_KINDS = tuple(Kind.of(each.definition) for each in types() if each.definition.storage)
POLICY_KINDS = tuple(kind for kind in OWN_KINDS if kind.group == GROUP)
# Judged only if a policy names them: provisioners create volumes.
NAMED_ONLY = (*POLICY_KINDS, PERSISTENT_VOLUME)

NATIVE_KINDS = (*POD_KINDS, *AUTOSCALERS, *OTHER_KINDS)
KINDS = {(kind.group, kind.kind): kind for kind in (*NATIVE_KINDS, *OWN_KINDS)}
OURS = frozenset(KINDS)  # other kinds are added when a process starts


EPHEMERAL = (Target(POD, "ephemeralcontainers", ("UPDATE",)), Target(POD, "resize", ("UPDATE",)))
SESSIONS = (Target(POD, "exec", ("CONNECT",)), Target(POD, "attach", ("CONNECT",)))
SCALES = tuple(Target(each, "scale", ("UPDATE",)) for each in POD_KINDS if each.scales)
SETS = ("pods", "scalable", "namespaced", "all", "exec", "scale")
POD_KIND = re.compile(
    r"([a-z0-9-]+\.[a-z0-9.-]+)/(v[a-z0-9]+)/([A-Z][A-Za-z0-9]*)"
    r"=((?:[A-Za-z0-9]+(?:\[\])?\.)*spec)"
)


def targets(
    kinds: str | Iterable[str | Kind], operations: tuple[str, ...] = CREATE_AND_UPDATE
) -> tuple[Target, ...]:
    """Return the targets for `kinds`: one of SETS, or several sets and kinds.

    `operations` apply to whole objects; a subresource has its own. Raises LookupError for an
    unknown kind.
    """
    several = (kinds,) if isinstance(kinds, str) else kinds
    return tuple(chain(*[_expand(each, operations) for each in several]))


def _expand(name: str | Kind, operations: tuple[str, ...]) -> Iterable[Target]:
    """Return the targets of one set or kind."""
    more: tuple[Target, ...] = ()
    kinds = [*KINDS.values()]
    match name:
        case "exec":
            return SESSIONS
        case "scale":
            return SCALES
        case "pods":
            kinds, more = [each for each in kinds if each.has_pods or each.container], EPHEMERAL
        case "scalable":
            kinds = [each for each in kinds if each.scales]
            more = (*[Target(each, "scale", ("UPDATE",)) for each in kinds],)
            kinds += AUTOSCALERS
        case "namespaced" | "all":
            kinds, more = [each for each in kinds if each not in NAMED_ONLY], EPHEMERAL
            kinds = [each for each in kinds if each.namespaced or name == "all"]
        case Kind():
            kinds = [name]
        case _:
            kinds = [each for each in kinds if each.kind == name][:1]
            if not kinds:
                sets = ", ".join(SETS)
                raise LookupError(f"{name} is neither a known kind nor a set of kinds: {sets}")
    return [*[Target(kind, "", operations) for kind in kinds], *more]


def versions_sent(kinds: Iterable[Kind]) -> dict[Kind, tuple[str, ...]]:
    """Return the versions in which the API server sends the objects of each kind.

    A kind that policies name in different versions has a webhook for each set of versions, and is
    converted for it. The sets beyond MAX_VERSION_SETS share one, for which it may be sent in the
    version of another.
    """
    sets: dict[tuple[str, str], dict[frozenset[str], list[Kind]]] = {}
    for kind in dict.fromkeys(kinds):
        of_kind = sets.setdefault((kind.group, kind.plural), {})
        of_kind.setdefault(frozenset(kind.versions), []).append(kind)
    versions_of: dict[Kind, tuple[str, ...]] = {}
    for of_kind in sets.values():
        separate = [*of_kind.values()]
        last = [kind for several in separate[MAX_VERSION_SETS - 1 :] for kind in several]
        for several in (*separate[: MAX_VERSION_SETS - 1], last):
            versions = tuple(dict.fromkeys(each for kind in several for each in kind.versions))
            versions_of |= dict.fromkeys(several, versions)
    return versions_of


def add_kind(about: Definition) -> None:
    """Add the kind of an installed package, before any policy is put in force."""
    kind = Kind.of(about)
    KINDS.setdefault((kind.group, kind.kind), kind)


def add_pod_kind(text: str) -> None:
    """Add a custom kind with pods: `argoproj.io/v1alpha1/Rollout=spec.template.spec`.

    The plural may stand before the group. `[]` stands for each item of a list:
    `spec.tasks[].template.spec`. A kind that is added with several paths has pods at each. Called
    when a process starts, before any policy is put in force. Raises ValueError if `text` has
    another form, or names a built-in kind. If a policy names a kind by name only, a built-in kind
    takes precedence.
    """
    match = POD_KIND.fullmatch(text)
    if match is None:
        form = "GROUP/VERSION/KIND=PATH.OF.THE.PODS.spec"
        raise ValueError(f'"{text}" is not of the form {form}; write a list as LIST[]')
    group, version, name, path = match.groups()
    for meant in _read_both_ways(group, name):
        if (meant.group, meant.kind) in OURS:
            raise ValueError(f"{name} of {meant.group} is built in; register only custom kinds")
        existing = KINDS.get((meant.group, meant.kind), meant)
        paths = tuple(
            dict.fromkeys((*existing.pod_specs, *filter(None, (existing.pod_spec,)), path))
        )
        is_one = len(paths) == 1 and "[" not in path
        kind = replace(meant, versions=(version,), pod_spec=path if is_one else None)
        KINDS[kind.group, kind.kind] = kind if is_one else replace(kind, pod_specs=paths)


def _read_both_ways(group: str, name: str) -> list[Kind]:
    """Return the kinds that a group can mean, which may begin with the plural; as in `kinds`."""
    first, _, rest = group.partition(".")
    of_group, in_full = Kind(group, name, plural(name)), Kind(rest, name, first)
    if first == plural(name):
        return [in_full]
    if "." not in rest or first[0] != name[0].lower():
        return [of_group]
    return [of_group, in_full]


def custom_pod_kinds() -> list[Kind]:
    """Return the kinds that `add_pod_kind` added."""
    return [kind for key, kind in KINDS.items() if key not in OURS and kind.has_pods]


def resource_of(group: str, kind: str) -> str:
    """Return the resource of a kind: from the table, else by the API's naming convention."""
    listed = KINDS.get((group, kind))
    return listed.plural if listed else plural(kind)


def plural(kind: str) -> str:
    """Return the plural of a kind by the API's naming convention."""
    word = kind.lower()
    if word.endswith("s"):
        return f"{word}es"
    return re.sub(r"(?<![aeiou])y$", "ie", word) + "s"
