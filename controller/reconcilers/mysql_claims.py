"""The volume of a MySQL server: the StatefulSet keeps the template it was made with, and claims grow by themselves."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from controller.runtime.plan import Object, Patch, Problem, Reads, Reference, Seen
from kube.resource import Resource
from webhook.engine.quantities import parse_quantity

CLAIM = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
OURS = {"app.kubernetes.io/name": "mysql", "app.kubernetes.io/managed-by": "gatewright"}
INDEX = "database"


def by_label(claim: Object) -> Iterator[str]:
    """Yield the name of the server that a claim belongs to."""
    if name := claim["metadata"].get("labels", {}).get("app"):
        yield name


def by_parent(parent: Object) -> Iterator[str]:
    """Yield the name of the server that belongs to an AppStack or an EcommercePlatform."""
    yield f"{parent['metadata']['name']}-db"


READS_CLAIMS = Reads(CLAIM, {INDEX: by_label}, ",".join(f"{key}={value}" for key, value in OURS.items()))


def template_storage(stateful_set: Object | None, storage: str) -> str:
    """Return the size in the StatefulSet's template, which cannot change."""
    if stateful_set is None:
        return storage
    (template,) = stateful_set["spec"]["volumeClaimTemplates"]
    return str(template["spec"]["resources"]["requests"]["storage"])


def claims_of(seen: Seen, server: str) -> Sequence[Object]:
    """Return the claims that there are for a server and its backups."""
    return [claim for claim in seen.find(CLAIM, INDEX, server) if "deletionTimestamp" not in claim["metadata"]]


def grown(claims: Sequence[Object], storage: str) -> list[Patch]:
    """Return what makes each claim as large as is asked for; one that is larger stays as it is."""
    fields = {"spec": {"resources": {"requests": {"storage": storage}}}}
    return [
        Patch(
            Reference(CLAIM, each["metadata"]["name"], each["metadata"]["uid"], each["metadata"]["namespace"]), fields
        )
        for each in claims
        if _asked(each) <= amount(storage)
    ]


def shrunk(claims: Sequence[Object], storage: str) -> Problem | None:
    """Return what is wrong where a claim is larger than what is asked for now."""
    largest = max((_asked(each) for each in claims), default=Fraction(0))
    if amount(storage) >= largest:
        return None
    had = next(each["spec"]["resources"]["requests"]["storage"] for each in claims if _asked(each) == largest)
    told = f"spec.database.storage: {storage}; a volume of {had} cannot shrink. Set it to {had} or more"
    return Problem(told, "StorageShrunk")


def amount(storage: str) -> Fraction:
    """Return how much a quantity says."""
    return parse_quantity(str(storage)).value


def _asked(claim: Object) -> Fraction:
    return amount(claim["spec"]["resources"]["requests"]["storage"])
