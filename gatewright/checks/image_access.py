"""Judges with what registries know of images, where the user allows that they are asked."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from config.settings import Settings
from gatewright.checks.on_demand import image_look_ups
from webhook.engine import Engine
from webhook.policies._attached import IMAGE_LOOK_UPS

NOT_VERIFIED = "images are not verified: that needs --registry-access"

Pass = Callable[[Mapping[str, Any]], Awaitable[None]]


async def judge_with_images(
    settings: Settings,
    engines: Iterable[Engine],
    judge_all: Pass,
    notes: list[str],
    *,
    registry_access: bool,
) -> Mapping[str, Any]:
    """Judge everything, and again while images were missing; return what registries know of them.

    Without `registry_access` policies about images cannot decide, and `notes` get a line about it.
    """
    policies = (policy for engine in engines for policy in engine.policies)
    needs = frozenset[str]().union(*(policy.needs for policy in policies)) & IMAGE_LOOK_UPS
    if not (needs and registry_access):
        notes += [NOT_VERIFIED] * bool(needs)
        await judge_all({})
        return {}
    async with image_look_ups(settings) as look_ups:
        images = look_ups.of_review(needs)
        assert images is not None
        await judge_all(images.looked_up)
        while await images.has_more(is_denied=False):
            await judge_all(images.looked_up)
        return images.looked_up
