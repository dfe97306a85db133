"""Judges existing objects with what registries know of their images."""

import time

from controller.audit.inventory import Existing
from controller.audit.judge import ObjectJudge
from kube.resource import JsonObject
from webhook.engine import Verdict
from webhook.engine.containers import CONTAINER_LISTS
from webhook.engine.images import parsed
from webhook.policies._attached import IMAGE_LOOK_UPS, RUNNING
from webhook.registries.cache import ImageLookUps

REGISTRY_SECONDS = 300.0  # that one pass waits for registries in all


class ImageVerifier:
    """Reads from registries what an object's images lack, then judges it again.

    After REGISTRY_SECONDS, policies cannot decide about images that are not known yet.
    """

    def __init__(self, judge: ObjectJudge, look_ups: ImageLookUps) -> None:
        """Take the judge of one pass."""
        self._judge, self._look_ups = judge, look_ups
        self._left = REGISTRY_SECONDS

    async def verdict(self, existing: Existing) -> Verdict:
        """Return the verdict on an object."""
        images = self._look_ups.of_review(IMAGE_LOOK_UPS)
        running = running_digests(existing.object) if existing.kind.kind == "Pod" else {}
        while True:
            looked_up = images.looked_up if images else {}
            verdict = self._judge(*existing, {**looked_up, RUNNING: running})
            if images is None or self._left <= 0:
                return verdict
            began = time.monotonic()
            has_more = await images.has_more(is_denied=not verdict.allowed, seconds=self._left)
            self._left -= time.monotonic() - began
            if not has_more:
                return verdict


def running_digests(pod: JsonObject) -> dict[str, str]:
    """Return the digest that each container of a Pod runs, by the container's name.

    Left out is one that has not started, and one whose image was never pulled, but built there.
    """
    found = dict[str, str]()
    for name in CONTAINER_LISTS:
        for each in pod.get("status", {}).get(f"{name[:-1]}Statuses") or ():
            # docker's have a prefix: docker-pullable://
            image = parsed(each.get("imageID", "").rpartition("://")[2])
            if image is not None and image.digest:
                found[each["name"]] = image.digest
    return found
