"""The public API for kinds: `from gatewright.kind import CustomResource, PlannedKind, Plan`."""

from config import crds
from config.api.core import QuantityText as Quantity
from config.api.core import ResourceRequirements, SecurityContext
from config.api.definition import AGE, Column, Definition, Scale
from config.api.meta import ApiModel, Condition, CustomResource, Int32, Int64, Status
from controller.reconcilers.labels import inherited, metadata_origin
from controller.runtime.kind import Counts, PlannedKind, Reads
from controller.runtime.plan import (
    Apply,
    CreateOnly,
    Delete,
    Event,
    Observed,
    Plan,
    Problem,
    Random,
    Reference,
    Step,
)
from controller.runtime.plan import (
    ApplyFields as Patch,
)
from kube.resource import JsonObject as Object
from kube.resource import Resource

__all__ = [
    "AGE",
    "ApiModel",
    "Apply",
    "Column",
    "Condition",
    "Counts",
    "CreateOnly",
    "CustomResource",
    "Definition",
    "Delete",
    "Event",
    "Int32",
    "Int64",
    "Object",
    "Observed",
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
    "Status",
    "Step",
    "inherited",
    "metadata_origin",
    "render_crds",
]


def render_crds(*types: type[CustomResource]) -> str:
    """Return the CustomResourceDefinitions of types as YAML: versions of one kind are one CRD."""
    return "---\n".join(crds.render(types).values())
