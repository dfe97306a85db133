"""PersistentVolumeClaims: their spec, their size, and whether their StorageClass exists."""

from collections.abc import Iterable, Iterator

from config.quantities import parse_quantity
from controller.reconcilers.indexes import by_name
from controller.reconcilers.resources import STORAGE_CLASS
from controller.runtime.kind import Reads
from controller.runtime.plan import Observed, Problem
from kube.resource import JsonObject

IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def claim_spec(storage: str, class_name: str | None) -> JsonObject:
    """Return the spec of a claim."""
    spec: JsonObject = {"accessModes": ["ReadWriteOnce"], **sized(storage)}
    return {**spec, "storageClassName": class_name} if class_name else spec


def sized(storage: str) -> JsonObject:
    """Return the part of a claim's spec that sets its size."""
    return {"resources": {"requests": {"storage": storage}}}


def origin(storage: str, class_name: str, at: str = "") -> dict[str, str]:
    """Return the origins of a claim's size and class.

    `at` is the path of the claim in the child.
    """
    return {f"{at}spec.resources": storage, f"{at}spec.storageClassName": class_name}


def requested_storage(claim: JsonObject) -> int:
    """Return how much a claim requests, in thousandths of a byte."""
    return amount(claim["spec"]["resources"]["requests"]["storage"])


def amount(storage: str | int) -> int:
    """Return a quantity in thousandths of a byte."""
    return parse_quantity(str(storage)).millis


def by_default(storage_class: JsonObject) -> Iterator[str]:
    """Yield the value of the annotation that marks the default StorageClass."""
    if value := storage_class["metadata"].get("annotations", {}).get(IS_DEFAULT):
        yield value


READS_CLASSES = Reads(STORAGE_CLASS, {"name": by_name, "default": by_default})


def without_class(claims: Iterable[JsonObject], observed: Observed) -> Problem | None:
    """Return why a pending claim never gets a volume: no StorageClass, or no default one."""
    for claim in claims:
        if claim.get("status", {}).get("phase") == "Pending":
            name, named = claim["metadata"]["name"], claim["spec"].get("storageClassName")
            if named and not observed.find(STORAGE_CLASS, "name", named):
                message = (
                    f'StorageClass "{named}" does not exist, and claim {name} waits for it. '
                    "Create it"
                )
                return Problem(message, "StorageClassNotFound")
            if named is None and not observed.find(STORAGE_CLASS, "default", "true"):
                message = (
                    f"no StorageClass is the default, and claim {name} names none. "
                    "Make one the default"
                )
                return Problem(message, "StorageClassNotFound")
    return None
