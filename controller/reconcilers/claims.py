"""PersistentVolumeClaims: what they ask for, and how much that is."""

from fractions import Fraction

from config.quantities import parse_quantity
from controller.runtime.plan import Object


def claim_spec(storage: str, class_name: str | None) -> Object:
    """Return what a claim asks for."""
    asked: Object = {"accessModes": ["ReadWriteOnce"], **sized(storage)}
    return {**asked, "storageClassName": class_name} if class_name else asked


def sized(storage: str) -> Object:
    """Return the part of what a claim asks for that is its size."""
    return {"resources": {"requests": {"storage": storage}}}


def origin(storage: str, class_name: str, at: str = "") -> dict[str, str]:
    """Return where what a claim asks for comes from: the fields that say so; `at` is where the claim stands."""
    return {f"{at}spec.resources": storage, f"{at}spec.storageClassName": class_name}


def asked(claim: Object) -> Fraction:
    """Return how much a claim asks for."""
    return amount(claim["spec"]["resources"]["requests"]["storage"])


def amount(storage: str | int) -> Fraction:
    """Return how much a quantity says."""
    return parse_quantity(str(storage)).value
