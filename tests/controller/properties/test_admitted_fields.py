"""Whatever a text field of any kind is admitted with, the real API server takes the children made of it.

A field that is new, or has no format yet, is tried too: fields are found in the types.
"""

import itertools
from collections.abc import Iterator
from copy import deepcopy
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

from config.defaulting import fill_crd_defaults
from config.settings import Settings
from controller.reconcilers import planned_kinds
from controller.runtime.kind import PlannedKind
from gatewright.processes.planners import planners_of
from kube.client import Client
from kube.errors import Invalid
from kube.resource import JsonObject
from tests.controller.properties.test_children_on_a_cluster import children, planned
from tests.controller.reconcilers.every_kind import NAMESPACE, Case, cases
from tests.controller.reconcilers.test_every_plan import is_let_in
from webhook.engine import Engine
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import PolicySet, in_force

pytestmark = pytest.mark.controlplane("etcd", "kube-apiserver")

TEXTS = ("Bad Name!", "UPPER", " begins", "ends ", "a" * 300, "a/b", "..", "-1", "é", "a_b")
Path = tuple[str | int, ...]


@pytest.fixture(scope="module")
def engine() -> Engine:
    """An engine with the rules that are always in force, and with the planners."""
    return Engine(in_force(PolicySet(), catalogue()), planners_of(Settings(), NAMESPACE))


def text_fields(annotation: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all text fields of a type; of a list, those of its first item."""
    origin = get_origin(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for field in annotation.model_fields.values():
            yield from text_fields(field.annotation, (*path, str(field.alias)))
    elif annotation is str:
        yield path
    elif origin is list:
        yield from text_fields(get_args(annotation)[0], (*path, 0))
    elif origin is not Literal and origin is not dict:
        parts = get_args(annotation)[:1] if origin is Annotated else get_args(annotation)
        for part in parts:
            if part is not NoneType:
                yield from text_fields(part, path)


def with_text(spec: JsonObject, path: Path, text: str) -> JsonObject | None:
    """Return a spec with a text at a path; None if a list of the path is missing."""
    changed = deepcopy(spec)
    holder: Any = changed
    for step, following in itertools.pairwise(path):
        if isinstance(following, int) and not (isinstance(holder, dict) and holder.get(step)):
            return None
        if isinstance(step, int):
            holder = holder[step]
        elif isinstance(found := holder.setdefault(step, {}), dict | list):
            holder = found
        else:  # a reference that is only a name
            return None
    holder[path[-1]] = text
    return changed


@pytest.mark.parametrize("kind", planned_kinds(), ids=lambda kind: kind.name)
async def test_children_of_what_is_admitted_are_valid(
    place: str, user: Client, engine: Engine, kind: PlannedKind[Any]
) -> None:
    """Each text field, set to each of some texts: denied, or its children are valid.

    Of the kind's objects, the first one in which a child has the text is tried.
    """
    fields = [*dict.fromkeys(text_fields(kind.type.model_fields["spec"].annotation))]
    wrong, tried = list[str](), set[tuple[Path, str, str, str]]()
    for case in (each for each in cases() if each.kind is kind):
        before = children(case, place)
        for path, text in itertools.product(fields, TEXTS):
            spec = with_text(case.object["spec"], path, text)
            if spec is None:
                continue
            changed = Case(kind, fill_crd_defaults({**case.object, "spec": spec}))
            if not is_let_in(engine, changed):
                continue
            for (resource, name), desired in planned(changed, place).items():
                trial = (path, text, resource.kind, name.removeprefix(case.name))
                if trial in tried or before.get((resource, name)) == desired:
                    continue
                tried.add(trial)
                try:
                    await user.apply(resource, desired, field_manager="test", dry_run=True)
                except Invalid as error:
                    wrong.append(f"{'.'.join(map(str, path))}: {text[:20]!r}: {error}")
                    break
    assert not wrong, f"{len(wrong)} of {len(tried)}: " + "\n".join(wrong)
