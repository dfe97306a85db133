"""What users rely on, as data: fields of CRDs, values of the chart, the JSON report, metrics and options.

`python -m tests.config.promises` writes `promised.json` at a release; the test says what was removed or
narrowed since. Until the first release, the file has the state of the commit in tests/node/previous.py.
"""

import importlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from gatewright.cli import COMMANDS, TOOLS, added_commands, load_command

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("promised.json")
# Keywords of a schema that say which values are accepted, and the default.
KEYWORDS = (
    "type",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "default",
)
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
LOWER, UPPER = ("minimum", "minLength", "minItems"), ("maximum", "maxLength", "maxItems")
Facts = dict[str, dict[str, Any]]


def collect(root: Path = ROOT) -> Facts:
    """Return the facts of a checkout by their name, such as a path of a field."""
    facts: Facts = {}
    for file in sorted((root / "config/crd/bases").glob("*.yaml")):
        for definition in yaml.load_all(file.read_text(), LOADER):
            for version in definition["spec"]["versions"]:
                kind = f"{definition['spec']['group']}/{version['name']}/{definition['spec']['names']['kind']}"
                facts |= fields(version["schema"]["openAPIV3Schema"], f"field {kind} ")
    values = json.loads((root / "charts/gatewright/values.schema.json").read_text())
    facts |= fields(values, "value ", values)
    report = json.loads((root / "docs/reference/report.schema.json").read_text())
    facts |= {
        name: {"type": each["type"]}
        for name, each in fields(report, "report ", report).items()
        if "type" in each
    }
    row = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) \|", re.MULTILINE)
    for name, type, labels in row.findall((root / "docs/reference/metrics.md").read_text()):
        facts[f"metric {name}"] = {"type": type, "enum": sorted(re.findall(r"`(\w+)`", labels))}
    return facts


def options() -> Facts:
    """Return the options of each command."""
    commands = {
        name: importlib.import_module(f"gatewright.commands.{name}").command for name in COMMANDS
    }
    commands |= {name: load_command(added_commands()[name]) for name in TOOLS}
    return {
        f"option {name} {option}": {}
        for name, command in commands.items()
        for param in command.params
        if isinstance(param, click.Option)
        for option in (*param.opts, *param.secondary_opts)
    }


def fields(schema: Any, path: str, root: Mapping[str, Any] | None = None) -> Facts:
    """Return what a JSON schema says about each field, by path."""
    found: Facts = {}
    merged = _merge(schema, root or {})
    found[path.rstrip()] = {key: merged[key] for key in KEYWORDS if key in merged}
    found[path.rstrip()]["required"] = sorted(merged.get("required", ()))
    separator = "" if path.endswith(" ") else "."
    for name, field in merged.get("properties", {}).items():
        found |= fields(field, f"{path}{separator}{name}", root)
    for key, suffix in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(merged.get(key), dict):
            found |= fields(merged[key], f"{path}{suffix}", root)
    return found


def _merge(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with its references and `allOf` merged into it."""
    if not isinstance(schema, dict):
        return {}
    whole = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
    others = list(schema.get("allOf", ()))
    if "$ref" in schema:
        others.append(root["$defs"][schema["$ref"].removeprefix("#/$defs/")])
    for other in (_merge(each, root) for each in others):
        properties = other.get("properties", {}) | {
            name: field
            for name, field in whole.get("properties", {}).items()
            if field is not True or name not in other.get("properties", {})
        }
        whole = {**other, **whole, **({"properties": properties} if properties else {})}
    return whole


def broken(promised: Facts, now: Facts) -> Iterator[str]:
    """Yield what was removed or narrowed, or has another default."""
    for name, old in promised.items():
        new = now.get(name)
        if new is None:
            yield f"{name}: removed"
            continue
        yield from (f"{name}: {what}" for what in _narrowed(old, new))
        # Defaults of objects are those of their fields; the types fill in items of lists.
        default = old.get("default")
        is_promised = default and isinstance(default, str | int) and "[]" not in name
        if is_promised and new.get("default") != default:
            yield f"{name}: default is {new.get('default')!r}, was {default!r}"


def _narrowed(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for keyword in ("type", "pattern"):
        if keyword in new and new[keyword] != old.get(keyword):
            yield f"{keyword} is {new[keyword]!r}, was {old.get(keyword)!r}"
    if "enum" in new:
        lost = [value for value in old.get("enum", ()) if value not in new["enum"]]
        if "enum" not in old or lost:
            yield f"accepts only {new['enum']!r}, was {old.get('enum')!r}"
    for keywords, is_narrower in ((LOWER, float.__gt__), (UPPER, float.__lt__)):
        for keyword in keywords:
            if keyword in new and (
                keyword not in old or is_narrower(float(new[keyword]), float(old[keyword]))
            ):
                yield f"{keyword} is {new[keyword]}, was {old.get(keyword)}"
    if added := set(new.get("required", ())) - set(old.get("required", ())):
        yield f"now required: {', '.join(sorted(added))}"


def main() -> None:
    """Write the present state."""
    text = json.dumps(collect() | options(), indent=0, sort_keys=True, ensure_ascii=False)
    FILE.write_text(f"{text}\n")


if __name__ == "__main__":
    main()
