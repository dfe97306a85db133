"""`python -m tests.config.openapi` writes config/openapi.json from what a real API server publishes and fills in."""

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from config.schemas import FILE
from tests.config.filled_in import Asked, asked_before_admission
from tests.controlplane.plane import ControlPlane

SHORTENED = (
    "io.k8s.api.",
    "io.k8s.apimachinery.pkg.apis.",
    "io.k8s.apimachinery.pkg.",
    "io.k8s.",
)
# Optional in OpenAPI, and required by validation wherever the type is used.
REQUIRED_BY_VALIDATION = {
    "core.v1.ConfigMapEnvSource": ["name"],
    "core.v1.ConfigMapVolumeSource": ["name"],
    "core.v1.Container": ["image"],
    "core.v1.EphemeralContainer": ["image"],
    "core.v1.ExecAction": ["command"],
    "core.v1.SecretEnvSource": ["name"],
    "core.v1.SecretVolumeSource": ["secretName"],
}
OF_PODS = "v1/Pod"  # admission plugins change a Pod, so its spec is read from a PodTemplate
NOW = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T")
METADATA = "meta.v1.ObjectMeta"


class Published:
    """The resources, the types of their kinds, and the values that the API server fills in."""

    def __init__(self, plane: ControlPlane) -> None:
        """Read discovery and OpenAPI."""
        self._api = plane.api
        self.version = self.get("/version")["gitVersion"]
        self._schemas: dict[str, Any] = {}
        self.resources: dict[str, list[Any]] = {}
        self.subresources: dict[str, list[str]] = {}
        self.kinds: dict[str, str] = {}
        self.types: dict[str, dict[str, str]] = {}
        self.required: dict[str, list[str]] = {}
        self.enums: dict[str, dict[str, list[str]]] = {}
        parts = set()
        for path in sorted(self.get("/openapi/v3")["paths"]):
            if path.count("/") != (2 if path.startswith("apis/") else 1):
                continue
            url = self.get("/openapi/v3")["paths"][path]["serverRelativeURL"]
            self._schemas |= self.get(url).get("components", {}).get("schemas", {})
            group_version = path.partition("/")[2]
            listed = self.get(f"/{path}").get("resources", ())
            of_plural = {each["name"]: f"{group_version}/{each['kind']}" for each in listed}
            for served in listed:
                own = "/".join(filter(None, (served.get("group"), served.get("version"))))
                kind = f"{own or group_version}/{served['kind']}"
                parts.add(kind)
                plural, _, subresource = served["name"].partition("/")
                if subresource and served["verbs"] != ["get"]:  # not read-only, such as log
                    self.subresources.setdefault(of_plural[plural], []).append(subresource)
                if not subresource and {"list", "create"} <= {*served["verbs"]}:
                    self.resources[kind] = [served["name"], served["namespaced"]]
        for name, schema in self._schemas.items():
            for gvk in schema.get("x-kubernetes-group-version-kind", ()):
                kind = "/".join(filter(None, (gvk["group"], gvk["version"], gvk["kind"])))
                if kind in parts and "DeleteOptions" not in name:
                    self.kinds[kind] = short(name)
                    self._add(name)

    def get(self, path: str) -> Any:
        """Read one page."""
        return json.loads(self._api.request("GET", path)[1])

    def _add(self, name: str) -> None:
        if short(name) in self.types:
            return
        self.types[short(name)] = fields = {}
        self.required[short(name)] = self._schemas[name].get("required", [])
        for field, schema in self._schemas[name].get("properties", {}).items():
            fields[field] = self._type(schema)
            if values := schema.get("enum", schema.get("items", {}).get("enum")):
                self.enums.setdefault(short(name), {})[field] = sorted(filter(None, values))

    def faults(self, asked: Asked) -> list[str]:
        """The fields for which the API server refuses an object."""
        body = self._api.request("POST", f"{asked.path}?dryRun=All", asked.object)[1]
        causes = (json.loads(body).get("details") or {}).get("causes", ())
        return [each.get("field", "") for each in causes]

    def _type(self, schema: dict[str, Any]) -> str:
        for reference in (schema, *schema.get("allOf", ())):
            if "$ref" in reference:
                return self._named(reference["$ref"].rpartition("/")[2], schema)
        match schema.get("type"):
            case "array":
                return f"[{self._type(schema['items'])}{_keys(schema)}"
            case "object" if isinstance(schema.get("additionalProperties"), dict):
                return f"{_atomic(schema)}{{{self._type(schema['additionalProperties'])}"
            case "integer" | "number" | "boolean" as type:
                return f":{type}"
            case "string":
                return ":string" if schema.get("format", "byte") == "byte" else ":scalar"
        return ""

    def _named(self, name: str, by: dict[str, Any]) -> str:
        schema = self._schemas[name]
        if name.endswith(".resource.Quantity"):
            return ":quantity"
        if "properties" not in schema:
            return self._type(schema)
        self._add(name)
        return f"{_atomic(schema, by)}{short(name)}"


def _atomic(*schemas: dict[str, Any]) -> str:
    return "!" if any(each.get("x-kubernetes-map-type") == "atomic" for each in schemas) else ""


def _keys(schema: dict[str, Any]) -> str:
    match schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-patch-strategy", ""):
        case "map", _:
            return f" {','.join(schema['x-kubernetes-list-map-keys'])}"
        case "set", _:
            return " ="
        case None, strategy if strategy.startswith("merge"):
            return f" {schema.get('x-kubernetes-patch-merge-key', '=')}"
    return ""


def short(name: str) -> str:
    """A type's name without the prefix that all types share."""
    for prefix in SHORTENED:
        name = name.removeprefix(prefix)
    return name


def samples(found: Published) -> Iterator[tuple[str, str, tuple[str | int, ...]]]:
    """Yield each type with a kind that contains it, and its path there."""
    seen: set[str] = {METADATA}
    waiting: list[tuple[str, str, tuple[str | int, ...]]] = [
        (kind, found.kinds[kind], ()) for kind in found.resources if kind != OF_PODS
    ]
    while waiting:
        kind, type, path = waiting.pop(0)
        if type in seen:
            continue
        seen.add(type)
        yield type, kind, path
        for field, below in found.types[type].items():
            inner, more = below.lstrip("!"), [*path, field]
            while inner[:1] in ("[", "{"):
                more.append(0 if inner[0] == "[" else "key")
                inner = inner[1:].partition(" ")[0].lstrip("!")
            if inner in found.types:
                waiting.append((kind, inner, tuple(more)))


def _at(path: tuple[str | int, ...], value: Any) -> Any:
    for step in reversed(path):
        value = [value] if step == 0 else {step: value}
    return value


def _value_at(value: Any, path: tuple[str | int, ...]) -> Any:
    try:
        for step in path:
            value = value[step]
    except (KeyError, IndexError, TypeError):  # refused, or removed as without effect
        return None
    return value


def _zero(code: str) -> Any:
    """The zero value of a field; None if the API server writes none."""
    zeros = {":string": "", ":boolean": False, ":integer": 0, ":number": 0}
    shapes: dict[str, Any] = {"[": [], "{": {}}
    return zeros.get(code, shapes.get(code.lstrip("!")[:1]))


def filled_in(
    found: Published, plane: ControlPlane
) -> tuple[dict[str, dict[str, Any]], dict[str, list[str]]]:
    """The defaults that the API server fills in before admission, and the zero values that it omits, by type."""
    defaults: dict[str, dict[str, Any]] = {}
    omitted: dict[str, list[str]] = {}
    with asked_before_admission(plane) as ask:
        for type, kind, path in samples(found):
            fields = found.types[type]
            own = {"apiVersion", "kind", "metadata"} if not path else set()

            def asked(value: Any, kind: str = kind, path: Any = path) -> Any:
                plural, namespaced = found.resources[kind]
                return _value_at(ask(Asked(kind, plural, namespaced, _at(path, value))), path)

            kept: dict[str, Any] = {
                field: {} if isinstance(each, dict) and fields[field] in found.types else each
                for field, each in (asked({}) or {}).items()
                if field not in own and not (isinstance(each, str) and NOW.match(each))
            }
            if kept:
                defaults[type] = dict(sorted(kept.items()))
            zeros = {
                field: zero
                for field, code in fields.items()
                if field not in own and (zero := _zero(code)) is not None
            }
            answered = asked(zeros)
            if isinstance(answered, dict):
                left_out = [field for field, zero in zeros.items() if answered.get(field) != zero]
                omitted |= {type: left_out} if left_out else {}
    return dict(sorted(defaults.items())), dict(sorted(omitted.items()))


def demanded(found: Published) -> dict[str, list[str]]:
    """The fields that OpenAPI calls required and without which the API server refuses an object, by type."""
    demands: dict[str, list[str]] = {}
    for type, kind, path in samples(found):
        above = "".join(f"[{step}]" if step in (0, "key") else f".{step}" for step in path)
        plural, namespaced = found.resources[kind]
        faults = found.faults(Asked(kind, plural, namespaced, _at(path, {})))
        below = [f".{each}".removeprefix(above) for each in faults if f".{each}".startswith(above)]
        refused = {match[1] for each in below if (match := re.match(r"\.([A-Za-z]+)", each))}
        required = {*found.required[type], *REQUIRED_BY_VALIDATION.get(type, ())}
        if fields := sorted(refused & required):
            demands[type] = fields
    return dict(sorted(demands.items()))


def text(plane: ControlPlane) -> str:
    """The content of the committed file: one type per line."""
    found = Published(plane)
    defaults, omitted = filled_in(found, plane)
    parts: dict[str, dict[str, Any]] = {
        "resources": dict(sorted(found.resources.items())),
        "subresources": {kind: sorted(each) for kind, each in sorted(found.subresources.items())},
        "kinds": dict(sorted(found.kinds.items())),
        "types": dict(sorted(found.types.items())),
        "defaults": defaults,
        "omitted": omitted,
        "required": demanded(found),
        "enums": dict(sorted(found.enums.items())),
    }
    sections = [f'"kubernetes": "{found.version}"']
    for name, part in parts.items():
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in part.items()]
        sections.append(f'"{name}": {{\n' + ",\n".join(lines) + "\n}")
    return "{" + ",\n".join(sections) + "}\n"


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as directory,
        ControlPlane.start(
            Path(directory) / "plane", parts=("etcd", "kube-apiserver"), audit=False
        ) as started,
    ):
        FILE.write_text(text(started))
