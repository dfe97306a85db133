"""Judges existing objects with the signatures of their images, read from registries."""

import time

from controller.audit.inventory import Existing
from controller.audit.judge import ObjectJudge
from webhook.engine import Verdict
from webhook.engine.image_look_ups import IMAGE_LOOK_UPS
from webhook.registries.cache import ImageLookUps

REGISTRY_SECONDS = 300.0  # total time that one pass waits for registries


class ImageVerifier:
    """Judges an object, reads missing data of its images from registries, and judges it again.

    After REGISTRY_SECONDS, policies cannot decide about images that were not read yet.
    """

    def __init__(self, judge: ObjectJudge, look_ups: ImageLookUps) -> None:
        """Take the judge of one pass."""
        self._judge, self._look_ups = judge, look_ups
        self._left = REGISTRY_SECONDS

    async def verdict(self, existing: Existing) -> Verdict:
        """Return the verdict on an object."""
        images = self._look_ups.of_review(IMAGE_LOOK_UPS)
        assert images is not None
        while True:
            verdict = self._judge(*existing, images.looked_up)
            if self._left <= 0:
                return verdict
            began = time.monotonic()
            has_more = await images.has_more(is_denied=not verdict.allowed, seconds=self._left)
            self._left -= time.monotonic() - began
            if not has_more:
                return verdict
