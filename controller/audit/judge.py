"""Judges existing objects as the webhook would judge their creation. Pure."""

from collections.abc import Iterable, Mapping, Set
from datetime import datetime
from typing import Any

from config.image_references import try_parse_image
from kube.resource import JsonObject, group_kind, group_version
from webhook.engine import NOW, Attributes, BoundPolicy, Engine, Request, Verdict
from webhook.engine.containers import CONTAINER_LISTS
from webhook.engine.image_look_ups import RUNNING
from webhook.engine.kinds import NAMESPACES, OURS, Kind
from webhook.known import Known

NO_IMAGES: Mapping[str, Any] = {}
POD = "", "Pod"
# The kinds that are created from the spec of an owner, and the built-in kinds of these owners.
CREATORS = {
    POD: {"DaemonSet", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"},
    ("", "PersistentVolumeClaim"): {"Pod", "StatefulSet"},
    ("apps", "ReplicaSet"): {"Deployment"},
    ("autoscaling", "HorizontalPodAutoscaler"): {"ScaledObject"},
    ("batch", "Job"): {"CronJob"},
}


class ObjectJudge:
    """Judges objects with one engine and the known state of their cluster.

    An owner is judged instead of the objects that it controls.
    """

    def __init__(self, engine: Engine, known: Known, now: datetime) -> None:
        """Use this engine, these look-ups and this time."""
        self.engine = engine
        self._known, self._now = known, now
        by_resource = _titles_by_resource(engine.policies)
        self._judged_by = {
            kind: by_resource.get((kind.group, kind.plural), frozenset())
            for kind in engine.judged_kinds
        }
        self._by_name = {(kind.group, kind.kind): kind for kind in self._judged_by}
        self._planned = {
            planner.kind: {(kind.group, kind.kind) for kind in engine.planners.reach(planner)}
            for planner in engine.planners
        }
        self.kinds_judged_when_owned = engine.for_owned.judged_kinds
        """The kinds with a policy that judges owned objects too."""

    @property
    def kinds(self) -> Set[Kind]:
        """The kinds whose objects are judged."""
        return self._judged_by.keys()

    def __call__(
        self,
        kind: Kind,
        object: JsonObject,
        is_owned: bool,
        images: Mapping[str, Any] = NO_IMAGES,
    ) -> Verdict:
        """Return the verdict on an object, with the look-ups of its images.

        If its owner is judged instead (`is_owned`), only policies about owned objects judge it.
        """
        metadata = object["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        attributes = Attributes(
            uid=metadata["uid"],
            operation="CREATE",
            group=kind.group,
            version=group_version(object["apiVersion"])[1],
            kind=object["kind"],  # a policy that names only resources has a guessed kind
            resource_group=kind.group,
            resource=kind.plural,
            name=name,
            namespace=name if (kind.group, kind.plural) == NAMESPACES else namespace,
        )
        engine = self.engine.for_owned if is_owned else self.engine
        running = running_digests(object) if (kind.group, kind.kind) == POD else {}
        data = {**self._known.about(namespace), **images, RUNNING: running, NOW: self._now}
        return engine.validate(Request(attributes, object, None, data))

    def owner_answers(self, kind: Kind, object: JsonObject) -> bool:
        """Return whether the owner of an object is judged by the same policies, or plans it."""
        if kind not in self._judged_by:
            return True
        return any(
            self._answers_for(kind, owner_reference)
            for owner_reference in object["metadata"].get("ownerReferences") or ()
        )

    def _answers_for(self, kind: Kind, owner: JsonObject) -> bool:
        above = self._by_name.get(group_kind(owner)) if owner.get("controller") else None
        if above is None:
            return False
        name = kind.group, kind.kind
        if name in self._planned.get(above, ()):
            return True
        is_custom = (above.group, above.kind) not in OURS
        is_creator = name in CREATORS and (is_custom or above.kind in CREATORS[name])
        return is_creator and self._judged_by[kind] <= self._judged_by[above]


def running_digests(pod: JsonObject) -> dict[str, str]:
    """Return the digest that each container of a Pod runs, by the container's name.

    Left out is one that has not started, and one whose image was never pulled, but built there.
    """
    digests = dict[str, str]()
    for name in CONTAINER_LISTS:
        for container_status in pod.get("status", {}).get(f"{name[:-1]}Statuses") or ():
            # docker's have a prefix: docker-pullable://
            image = try_parse_image(container_status.get("imageID", "").rpartition("://")[2])
            if image is not None and image.digest:
                digests[container_status["name"]] = image.digest
    return digests


def _titles_by_resource(
    policies: Iterable[BoundPolicy],
) -> Mapping[tuple[str, str], Set[str]]:
    """Return the policies that judge objects, but none that are owned, by group and plural."""
    titles: dict[tuple[str, str], set[str]] = {}
    for policy in policies:
        if policy.policy.validate is not None and not policy.policy.judges_owned:
            for resource in {(target.kind.group, target.kind.plural) for _, target in policy.keys}:
                titles.setdefault(resource, set()).add(policy.title)
    return titles
