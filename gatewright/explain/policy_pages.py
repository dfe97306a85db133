"""The contents of a policy's page: its targets, parameters and fixes."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from webhook.engine import Policy
from webhook.engine.image_look_ups import IMAGE_LOOK_UPS

LABEL = re.compile(r"(Why|Judged|Allowed|Denied|Sets|Warns|Fix|See): +", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter, or a field of one: its dotted path, type, default and meaning."""

    name: str
    type: str
    default: str
    meaning: str


def does(policy: Policy) -> str:
    """Return whether a policy denies, sets fields, or both."""
    return " and ".join(
        ["denies"] * (policy.validate is not None) + ["sets fields"] * (policy.mutate is not None)
    )


def fixes(policy: Policy) -> str:
    """Return the sentence about `check --fix` for a policy; "" if it fixes nothing."""
    if policy.fix is None:
        return ""
    if policy.fix.is_safe:
        return f"`check --fix` corrects violations: {policy.fix.why}."
    return f"`check --fix --unsafe-fixes` corrects violations; unsafe: {policy.fix.why}."


def reads_registries(needs: object) -> bool:
    """Return whether the look-ups of a policy read image registries."""
    return isinstance(needs, Iterable) and not IMAGE_LOOK_UPS.isdisjoint(needs)


def targets(policy: Policy) -> list[str]:
    """Return the kinds and subresources that a policy applies to."""
    names = (
        f"{target.kind.kind}{f'/{target.subresource}' if target.subresource else ''}"
        for target in policy.targets
    )
    return list(dict.fromkeys(names))


def parameters(policy: Policy) -> list[Parameter]:
    """Return the parameters of a policy, nested ones included."""
    schema = policy.params.model_json_schema(by_alias=True)
    return list(_parameters(schema, schema.get("$defs", {}), ""))


def _parameters(
    schema: Mapping[str, Any], known: Mapping[str, Any], above: str
) -> Iterator[Parameter]:
    for name, field in schema.get("properties", {}).items():
        required = name in schema.get("required", ())
        default = "required" if required else to_yaml_line(field.get("default"))
        yield Parameter(f"{above}{name}", type_of(field), default, field.get("description", ""))
        inner, brackets = object_in(field)
        if inner is not None:
            yield from _parameters(known[inner], known, f"{above}{name}{brackets}.")


def object_in(field: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return the name of the object in a field or list item, and the path's suffix."""
    for alternative in (field, *field.get("anyOf", ())):
        if "$ref" in alternative:
            return alternative["$ref"].rpartition("/")[2], ""
        for within, brackets in (("items", "[]"), ("additionalProperties", ".*")):
            if isinstance(alternative.get(within), Mapping) and "$ref" in alternative[within]:
                return alternative[within]["$ref"].rpartition("/")[2], brackets
    return None, ""


def type_of(field: Mapping[str, Any]) -> str:
    """Return the type of a field of a JSON Schema, in words."""
    if "enum" in field:
        return " or ".join(map(to_yaml_line, field["enum"]))
    if "const" in field:
        return to_yaml_line(field["const"])
    if "anyOf" in field:
        return " or ".join(type_of(each) for each in field["anyOf"] if each.get("type") != "null")
    if "$ref" in field:
        return "object"
    if field.get("type") == "array":
        items = field.get("items", {})
        return f"list of {type_of(items)}{'' if {'enum', 'const', 'anyOf'} & items.keys() else 's'}"
    values = field.get("additionalProperties")
    if field.get("type") == "object" and isinstance(values, Mapping):
        return f"object of {type_of(values)}s"
    return str(field.get("type", "anything"))


def to_yaml_line(value: object) -> str:
    """Return a value as one line of YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")


def prose(documentation: str) -> Iterator[str]:
    """Yield the paragraphs of a docstring; a label such as "Why:" begins a paragraph."""
    for paragraph in re.split(r"\n\s*\n", documentation):
        marked = LABEL.sub(lambda found: f"\0**{found[1]}:** ", re.sub(r"\n +", "\n", paragraph))
        yield from (each.strip() for each in marked.split("\0") if each.strip())
