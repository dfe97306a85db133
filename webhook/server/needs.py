"""Runs the look-ups that policies need for one request, within its deadline."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from types import CoroutineType
from typing import Any

from kube.errors import ApiError
from webhook.engine import Attributes
from webhook.server.decisions import fields_of

LookUpFunction = Callable[[Attributes], Any]
"""Returns the look-up, or a coroutine if the API server must be asked."""

log = logging.getLogger("gatewright.webhook")


async def looked_up(
    look_ups: Mapping[str, LookUpFunction], about: Attributes, needs: frozenset[str], seconds: float
) -> Mapping[str, Any]:
    """Run the look-ups that the policies need.

    The engine turns a missing one into an error outcome.
    """
    answers: dict[str, Any] = {}
    deadline = None
    for name in needs & look_ups.keys():
        try:
            answer = look_ups[name](about)
            if type(answer) is CoroutineType:
                deadline = deadline or asyncio.get_running_loop().time() + seconds
                async with asyncio.timeout_at(deadline):
                    answer = await answer
            answers[name] = answer
        except (ApiError, TimeoutError) as error:
            reason = str(error) or "no answer in time"
            fields = {"fields": fields_of(about)}
            log.warning("%s: look-up failed: %s", name, reason, extra=fields)
    return answers
