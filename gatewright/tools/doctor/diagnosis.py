"""Run every check of doctor on the state of a cluster."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from gatewright.tools.doctor import backends, bundles, deadlocks, policies, timeouts, webhooks
from gatewright.tools.doctor.hazards import LEVELS_OF_HARM, Hazard, ObjectPatch, shorten_words
from gatewright.tools.doctor.models import WebhookConfiguration
from gatewright.tools.doctor.sequences import sequences
from gatewright.tools.doctor.state import ClusterState


def diagnose(
    state: ClusterState, now: datetime, served: Mapping[str, bytes] | None = None
) -> list[Hazard]:
    """Return all findings, grouped by object, the worst first.

    `served` are the certificates that probed servers presented (PEM by DNS name). The findings of
    one object have the same patch, which fixes all of them that a patch can fix.
    """
    called_in_turn = sequences(state)
    hazards = [
        *deadlocks.check(state),
        *backends.check(state),
        *bundles.check(state, now, served),
        *timeouts.check(state, called_in_turn),
        *webhooks.check(state, called_in_turn),
        *policies.check(state, now),
    ]
    return sorted(
        _with_merged_patches(_without_repetition(hazards)),
        key=lambda each: (LEVELS_OF_HARM.index(each.level), each.subject.title, each.check),
    )


def _with_merged_patches(hazards: Iterable[Hazard]) -> Iterator[Hazard]:
    """Yield the findings, each with the patches of all findings about its object.

    Two patches of one field are the same: each check sets the value that all its findings need.
    """
    hazards = list(hazards)
    merged: dict[str, dict[str, Mapping[str, object]]] = {}
    for finding in hazards:
        operations = merged.setdefault(finding.subject.title, {})
        operations |= {str(operation["path"]): operation for operation in finding.patch}
    for finding in hazards:
        patch: ObjectPatch = tuple(merged[finding.subject.title].values()) if finding.patch else ()
        yield replace(finding, patch=patch)


def _without_repetition(hazards: Iterable[Hazard]) -> Iterator[Hazard]:
    """Yield the findings; one stands for webhooks of a configuration that have the same fault."""
    alike: dict[tuple[str, ...], list[Hazard]] = {}
    for at, finding in enumerate(hazards):
        name = finding.path.removeprefix("webhooks[name=").removesuffix("]")
        is_about_it = isinstance(
            finding.subject, WebhookConfiguration
        ) and finding.message.startswith(f"{name} ")
        rest = finding.message.removeprefix(name)
        key = finding.subject.title, finding.check, finding.level, rest, finding.fix
        alike.setdefault(key if is_about_it else (str(at),), []).append(finding)
    for same in alike.values():
        yield same[0] if len(same) == 1 else _join(same)


def _join(same: list[Hazard]) -> Hazard:
    """Return one finding for findings about several webhooks that differ only in the name."""
    first = same[0]
    names = [each.path.removeprefix("webhooks[name=").removesuffix("]") for each in same]
    return replace(
        first,
        message=f"each of {shorten_words(names)}{first.message.removeprefix(names[0])}",
        patch=tuple(operation for each in same for operation in each.patch),
        run=" && ".join(dict.fromkeys(each.run for each in same if each.run)),
    )
