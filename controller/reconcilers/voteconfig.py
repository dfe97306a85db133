"""VoteConfig: the ConfigMap that a vote app reads, and a restart of its users when it changes.

It has a finalizer as an example: there is nothing to clean up, so the first reconcile after the
deletion request removes it, whatever else fails. Garbage collection deletes the ConfigMap.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from config.api.appconfig import ConfigMapStatus
from config.api.voteconfig import GROUP, VoteConfig
from config.config_maps import config_map_name, votes
from controller.reconcilers.resources import CONFIG_MAP
from controller.reconcilers.rolling import (
    CHANGES,
    CHECKED,
    INDEX,
    METADATA,
    READS,
    WORKLOADS,
    plan_refusal,
    plan_rolling,
)
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Observed, Plan, Problem, incomplete
from kube.resource import JsonObject

FINALIZER = f"{GROUP}/finalizer"
ORIGIN = {
    **METADATA,
    CHECKED: "spec.options",
    "data": "spec.options",
    "data.question": "spec.poll.question",
}


def plan(voteconfig: VoteConfig, observed: Observed, now: datetime) -> Plan:
    """Plan what should exist for `voteconfig`, given what was `observed`."""
    if voteconfig.metadata.deletion_timestamp is not None:
        return Plan((), ConfigMapStatus(), finalized=True)
    return replace(_living(voteconfig, observed, now), finalized=False)


def _living(voteconfig: VoteConfig, observed: Observed, now: datetime) -> Plan:
    spec = voteconfig.spec
    question = spec.effective_question
    needed = {"spec.poll.question": question, "spec.options": spec.options}
    needed |= {f"spec.options[{number}].id": each.id for number, each in enumerate(spec.options)}
    missing = [path for path, given in needed.items() if not given]
    if missing or question is None:
        return plan_refusal(voteconfig.status, incomplete(*missing))
    data, faults = votes(question, spec.options)
    if faults:
        message = "; ".join(f"{path}: {text}" for path, text in faults)
        return plan_refusal(voteconfig.status, Problem(message, "Invalid"))
    return plan_rolling(
        voteconfig, voteconfig.status, config_map_name(voteconfig.name), data, ORIGIN, observed, now
    )


def by_config_map(voteconfig: JsonObject) -> Iterator[str]:
    """Yield the name of its ConfigMap: workloads that read it enqueue the VoteConfig."""
    yield config_map_name(voteconfig["metadata"]["name"])


VOTECONFIG = PlannedKind(
    VoteConfig,
    plan=plan,
    owns=(CONFIG_MAP,),
    reads=READS,
    patches=WORKLOADS,
    indexes={INDEX: by_config_map},
    finalizer=FINALIZER,
    counts=CHANGES,
)
