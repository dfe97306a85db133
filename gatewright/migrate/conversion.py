"""Converts documents to policy objects; each is compiled before it counts as converted."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from config.documents import Document
from config.faults import FaultsError
from gatewright.migrate.cel_policies import convert_validating_policy
from gatewright.migrate.kinds import KindNames
from gatewright.migrate.kyverno import convert_policy
from gatewright.migrate.results import Converted, ConvertedPolicy, Origin, Unconverted
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import bind

LEGACY, CEL = "kyverno.io/", "policies.kyverno.io/"
CONVERTERS: dict[tuple[str, str], Callable[[Origin, KindNames], Converted]] = {
    (LEGACY, "ClusterPolicy"): convert_policy,
    (LEGACY, "Policy"): convert_policy,
    (CEL, "ValidatingPolicy"): convert_validating_policy,
    (CEL, "NamespacedValidatingPolicy"): convert_validating_policy,
}
OTHER_TOOLS = ("kyverno.io/", "policies.kyverno.io/", "gatekeeper.sh/")


@dataclass(slots=True)
class Migration:
    """What was converted, what was not, and the documents that could not be read."""

    converted: list[ConvertedPolicy] = field(default_factory=list)
    unconverted: list[Unconverted] = field(default_factory=list)
    malformed: list[Unconverted] = field(default_factory=list)


def migrate(documents: Iterable[Document]) -> Migration:
    """Convert documents. Documents of no policy are ignored."""
    documents = list(documents)
    names, found, taken = KindNames(documents), Migration(), set[tuple[str, str]]()
    for document in documents:
        origin = Origin(document)
        convert = _converter(document)
        if convert is None:
            continue
        try:
            results = list(convert(origin, names))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            reason = f"it cannot be read: {type(error).__name__}: {error}"
            found.malformed.append(Unconverted(origin, reason))
            continue
        for each in map(_compiled, results):
            if isinstance(each, Unconverted):
                found.unconverted.append(each)
                continue
            each.name = next(_unused(each, taken))
            taken.add((each.namespace, each.name))
            found.converted.append(each)
    return found


def _converter(document: Document) -> Callable[[Origin, KindNames], Converted] | None:
    api_version, kind = str(document.value.get("apiVersion")), str(document.value.get("kind"))
    for (group, name), convert in CONVERTERS.items():
        if api_version.startswith(group) and kind == name:
            return convert
    return None


def _compiled(each: ConvertedPolicy | Unconverted) -> ConvertedPolicy | Unconverted:
    """Return what the webhook takes; a fault of it is the reason why it is not converted."""
    if isinstance(each, Unconverted):
        return each
    try:
        each.name = each.name or "unnamed"
        bind(each.object, catalogue())
    except FaultsError as error:
        path, text = next(iter(error.faults))
        return Unconverted(each.origin, f"Gatewright does not take {path}: {text}")
    return each


def _unused(each: ConvertedPolicy, taken: set[tuple[str, str]]) -> Iterator[str]:
    """Yield names that no other object has."""
    yield from (
        name
        for name in (each.name, *(f"{each.name}-{number}" for number in range(2, 1000)))
        if (each.namespace, name) not in taken
    )
