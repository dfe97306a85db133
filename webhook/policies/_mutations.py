"""Mutations in CEL: ApplyConfiguration and JSONPatch, with the meaning of MutatingAdmissionPolicy."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from config.api.rules import Mutation
from webhook.cel import CelError, Program
from webhook.engine import Patch, Request
from webhook.engine.rules import RuleError
from webhook.engine.violation import UNSET, Step
from webhook.policies._merge import merged

Change = Callable[[Request, Any], Iterator[Patch]]


def compile_mutations(compiler: Any, mutations: Sequence[Mutation]) -> Callable[[Any], Change]:
    """Compile mutations; the result takes what the expressions share. Faults are left with `compiler`."""
    compiled: list[tuple[str, Program]] = []
    for index, each in enumerate(mutations):
        is_patch = each.patch_type == "JSONPatch"
        expression = each.json_patch if is_patch else each.apply_configuration
        field = "jsonPatch" if is_patch else "applyConfiguration"
        path = f"spec.mutations[{index}].{field}"
        if expression is None or (each.json_patch and each.apply_configuration):
            compiler.faults.append((path, f"patchType {each.patch_type} needs this, and nothing else"))
            continue
        wanted = "list(JSONPatch)" if is_patch else "Object"
        program = compiler.compile(
            f"{path}.expression", expression.expression, wanted, environment=compiler.with_structs()
        )
        if program is not None:
            compiled.append((each.patch_type, program))
    return lambda shared: _changing(compiled, shared)


def _changing(mutations: Sequence[tuple[str, Program]], shared: Any) -> Change:
    def mutate(request: Request, params: Any) -> Iterator[Patch]:
        object = request.value
        for sort, program in mutations:
            try:
                found = program.evaluate(shared.values(request, params.model_extra, object))
                object = _patched(object, found) if sort == "JSONPatch" else merged(object, found)
            except CelError as error:
                raise RuleError(f"mutation '{program.source}' failed: {error}") from None
        yield from _difference(request.value, object, ())

    return mutate


def _patched(object: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    if not all(isinstance(each, dict) and {"op", "path"} <= each.keys() for each in operations):
        raise RuleError("a JSONPatch needs op and path")
    import jsonpatch  # read only where an object is patched

    try:
        patched: dict[str, Any] = jsonpatch.apply_patch(object, operations)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        raise RuleError(f"JSONPatch cannot be applied: {error}") from None
    return patched


def _difference(old: dict[str, Any], new: dict[str, Any], at: tuple[Step, ...]) -> Iterator[Patch]:
    """Yield the patches from one object to another: maps by their keys, anything else as a whole."""
    for key in old.keys() - new.keys():
        yield Patch((*at, key), UNSET, overwrite=True)
    for key, value in new.items():
        if key not in old or old[key] is None:
            yield Patch((*at, key), value, overwrite=True)
        elif isinstance(value, dict) and isinstance(old[key], dict):
            yield from _difference(old[key], value, (*at, key))
        elif value != old[key] or type(value) is not type(old[key]):
            yield Patch((*at, key), value, overwrite=True)
