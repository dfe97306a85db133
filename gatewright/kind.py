"""What a team's own kinds import: `from gatewright.kind import CustomResource, PlannedKind, Plan, Step, Apply`."""

from config.api.core import Quantity, ResourceRequirements, SecurityContext
from config.api.definition import AGE, Column, Definition, Scale
from config.api.meta import ApiModel, Condition, CustomResource, Int32, Int64, Status
from controller.reconcilers.labels import inherited
from controller.runtime.plan import (
    Apply,
    Counts,
    Delete,
    Event,
    Given,
    Object,
    Once,
    Patch,
    Plan,
    PlannedKind,
    Problem,
    Random,
    Reads,
    Reference,
    Seen,
    Step,
)
from kube.resource import Resource

__all__ = [
    "AGE",
    "ApiModel",
    "Apply",
    "Column",
    "Condition",
    "Counts",
    "CustomResource",
    "Definition",
    "Delete",
    "Event",
    "Given",
    "Int32",
    "Int64",
    "Object",
    "Once",
    "Patch",
    "Plan",
    "PlannedKind",
    "Problem",
    "Quantity",
    "Random",
    "Reads",
    "Reference",
    "Resource",
    "ResourceRequirements",
    "Scale",
    "SecurityContext",
    "Seen",
    "Status",
    "Step",
    "inherited",
]
