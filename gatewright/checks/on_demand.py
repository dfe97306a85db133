"""Opens what few runs need: a cluster, registries, planners. Only such a run imports them."""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING

from config.settings import Settings
from gatewright.checks.subjects import Subjects
from gatewright.outputs import InputProblem
from webhook.engine import Planners
from webhook.engine.planners import NO_PLANNERS

if TYPE_CHECKING:
    from gatewright.checks.live_cluster import Live
    from webhook.registries.cache import ImageLookUps


def cluster_of(
    settings: Settings, home: str, problems: list[InputProblem]
) -> "AbstractAsyncContextManager[Live | None]":
    """Return the cluster that the settings name, to be entered; None if they name none.

    At the end, what could not be read is added to the problems.
    """
    if settings.kubeconfig is None:
        return nullcontext()
    from gatewright.checks.live_cluster import live_cluster

    return live_cluster(settings, home, problems)


def image_look_ups(settings: Settings) -> "AbstractAsyncContextManager[ImageLookUps]":
    """Return the look-ups of images in registries, to be entered."""
    from gatewright.processes import registries

    return registries.image_look_ups(settings)


def planners_for(subjects: Subjects, settings: Settings, home: str) -> Planners:
    """Return the planners of all kinds; none if no subject can have children."""
    if not subjects.may_have_children:
        return NO_PLANNERS
    from gatewright.plans import planners

    return planners.planners_of(settings, home)
