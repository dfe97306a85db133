"""Autoscaling: a HorizontalPodAutoscaler that decides a Deployment's number of replicas.

The plan leaves the number to it: the Deployment is created with the least number, and every later
apply repeats the number that the autoscaler set.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from config.api.autoscaling import Autoscaling, WebAppAutoscaling
from config.api.meta import Condition
from controller.reconcilers.labels import metadata_origin
from controller.reconcilers.resources import AUTOSCALER, DEPLOYMENT
from controller.runtime.plan import (
    Apply,
    Delete,
    Observed,
    Problem,
    Reference,
    Write,
    incomplete,
)
from controller.runtime.status import of_type
from kube.resource import JsonObject

NO_METRICS = "FailedGetResourceMetric"
# How a cluster without metrics differs from pods without a request, by the autoscaler's message.
NO_API = ("could not find the requested resource", "no known available metric versions")
NO_REQUEST = "missing request for cpu"


class Scaling(NamedTuple):
    """Who decides a workload's number of replicas, and what follows from that."""

    replicas: int  # of a new Deployment
    field: str  # where the parent has this number
    autoscaled: bool = False
    writes: Sequence[Write] = ()
    conditions: Sequence[Condition] = ()
    problem: Problem | None = None

    def desired_replicas(self, deployment: JsonObject | None) -> int:
        """Return how many replicas a Deployment should have now."""
        if deployment is None or not self.autoscaled:
            return self.replicas
        return int(deployment["spec"].get("replicas", 1))


class Scaled(NamedTuple):
    """The Deployment to scale, and where the parent has `autoscaling` and the default of `min`."""

    metadata: JsonObject
    path: str
    default_path: str
    condition: str  # its type
    observed: Observed
    now: datetime


def scaling(spec: Autoscaling | WebAppAutoscaling | None, replicas: int, scaled: Scaled) -> Scaling:
    """Return the scaling of a workload; `replicas` is the fixed number, or the default of `min`."""
    name, namespace = scaled.metadata["name"], scaled.metadata["namespace"]
    fixed = f"{scaled.path.rpartition('.')[0]}.replicas"
    stored = scaled.observed.child(AUTOSCALER, name)
    if spec is None:
        if stored is None:
            return Scaling(replicas, fixed)
        reference = Reference(AUTOSCALER, name, stored["metadata"]["uid"], namespace)
        return Scaling(replicas, fixed, writes=[Delete(reference)])
    if spec.max is None:
        problem = incomplete(f"{scaled.path}.max")
        return Scaling(replicas, fixed, autoscaled=True, problem=problem)
    least = min(replicas, spec.max) if spec.min is None else spec.min
    field = scaled.default_path if spec.min is None else f"{scaled.path}.min"
    if least > spec.max:
        wrong = f"{scaled.path}.min: {least}; it must not exceed max: {spec.max}. Lower it"
        return Scaling(replicas, field, autoscaled=True, problem=Problem(wrong, "Invalid"))
    object = autoscaler(scaled.metadata, least, spec.max, spec.target_cpu)
    told = f"{least} to {spec.max} replicas at {spec.target_cpu}% of the requested cpu"
    return Scaling(
        least,
        field,
        autoscaled=True,
        writes=[Apply(object, _origin(scaled, field))],
        conditions=[_condition(scaled, stored, told)],
    )


def autoscaler(metadata: JsonObject, least: int, most: int, target_cpu: int) -> JsonObject:
    """Return the autoscaler of the Deployment of the same name."""
    target = {"apiVersion": DEPLOYMENT.api_version, "kind": DEPLOYMENT.kind}
    cpu = {"type": "Utilization", "averageUtilization": target_cpu}
    return {
        "apiVersion": AUTOSCALER.api_version,
        "kind": AUTOSCALER.kind,
        "metadata": metadata,
        "spec": {
            "scaleTargetRef": {**target, "name": metadata["name"]},
            "minReplicas": least,
            "maxReplicas": most,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": cpu}}],
        },
    }


def _origin(scaled: Scaled, min_field: str) -> Mapping[str, str]:
    return {
        **metadata_origin(),
        "spec.minReplicas": min_field,
        "spec.maxReplicas": f"{scaled.path}.max",
        "spec.metrics": f"{scaled.path}.targetCPU",
    }


def _condition(scaled: Scaled, stored: JsonObject | None, told: str) -> Condition:
    """Return whether an autoscaler can decide, from its conditions, with the remedy if it cannot.

    It changes only with these: not with the measured usage.
    """
    conditions = ((stored or {}).get("status") or {}).get("conditions") or ()
    able_and_active = [of_type(each, conditions) for each in ("AbleToScale", "ScalingActive")]
    failed = next((each for each in able_and_active if each and each["status"] == "False"), None)
    is_active = failed is None and able_and_active[1] is not None
    if failed:
        reason, message = str(failed.get("reason") or "Failed"), _remedy(failed)
    elif is_active:
        reason, message = "ScalingActive", told
    else:
        reason, message = "Progressing", "waiting for the first measurement of the pods' cpu usage"
    return Condition.of(scaled.condition, is_active, reason, scaled.now, message)


def _remedy(failed: JsonObject) -> str:
    """Return an autoscaler's message, without what changes at each attempt, and the remedy."""
    message = str(failed.get("message") or "")
    if any(text in message for text in NO_API):
        return (
            "the cluster serves no metrics.k8s.io, so cpu usage is unknown and the number of "
            "replicas stays. Install metrics-server"
        )
    if NO_REQUEST in message:
        return "the container has no cpu request to compare its usage with. Set resources.requests"
    if failed.get("reason") == NO_METRICS:
        return "the pods' cpu usage is not measured; see kubectl describe hpa"
    return message
