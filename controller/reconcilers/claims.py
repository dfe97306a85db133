"""PersistentVolumeClaims: their spec, their size, and whether their StorageClass exists."""

from collections.abc import Iterable, Iterator
from fractions import Fraction

from config.quantities import parse_quantity
from controller.reconcilers.indexes import by_name
from controller.reconcilers.resources import STORAGE_CLASS
from controller.runtime.kind import Reads
from controller.runtime.plan import Object, Observed, Problem

IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


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


def by_default(storage_class: Object) -> Iterator[str]:
    """Yield whether a StorageClass is the one of claims that name none, as its annotation says it."""
    if said := storage_class["metadata"].get("annotations", {}).get(IS_DEFAULT):
        yield said


READS_CLASSES = Reads(STORAGE_CLASS, {"name": by_name, "default": by_default})


def without_class(claims: Iterable[Object], observed: Observed) -> Problem | None:
    """Return why a claim waits for a volume for ever: the StorageClass that would make it does not exist."""
    for claim in claims:
        if claim.get("status", {}).get("phase") == "Pending":
            name, named = claim["metadata"]["name"], claim["spec"].get("storageClassName")
            if named and not observed.find(STORAGE_CLASS, "name", named):
                told = f'StorageClass "{named}" does not exist, and claim {name} waits for it'
                return Problem(told, "StorageClassNotFound")
            if named is None and not observed.find(STORAGE_CLASS, "default", "true"):
                told = f"no StorageClass is the default, and claim {name} names none"
                return Problem(told, "StorageClassNotFound")
    return None
