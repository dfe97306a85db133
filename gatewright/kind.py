"""What a team's own kinds import: `from gatewright.kind import CustomResource, PlannedKind, Plan, Step, Apply`."""

from config.api.core import Quantity, ResourceRequirements, SecurityContext
from config.api.definition import AGE, Column, Definition, Scale
from config.api.meta import ApiModel, Condition, CustomResource, Int32, Int64, Status
from controller.reconcilers.labels import inherited, metadata_origin
from controller.runtime.given import Given
from controller.runtime.plan import (
    Apply,
    Delete,
    Event,
    Object,
    Once,
    Patch,
    Plan,
    Problem,
    Random,
    Reference,
    Seen,
    Step,
)
from controller.runtime.planned_kind import Counts, PlannedKind, Reads
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
    "metadata_origin",
]
