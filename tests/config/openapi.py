"""`python -m tests.config.openapi` writes config/openapi.json from the OpenAPI that a real API server publishes."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from config.schemas import FILE
from tests.controlplane.binaries import find_binaries
from tests.controlplane.plane import ControlPlane
from webhook.engine.kinds import KINDS

SHORTENED = ("io.k8s.api.", "io.k8s.apimachinery.pkg.apis.", "io.k8s.apimachinery.pkg.")
SCALARS = ("Quantity", "IntOrString", "Time", "MicroTime", "RawExtension", "FieldsV1", "JSON")


def published(plane: ControlPlane) -> dict[str, Any]:
    """The fields of each kind that policies know or look up and the API server serves, with the types below them."""
    index = _get(plane, "/openapi/v3")["paths"]
    schemas: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    wanted = {kind for _, kind in KINDS} | {"Scale", "LimitRange"}
    for group_version in sorted(
        {each for kind in KINDS.values() for each in _served(kind.group, index)}
    ):
        found = _get(plane, index[group_version]["serverRelativeURL"])["components"]["schemas"]
        schemas |= found
        for name, schema in found.items():
            for each in schema.get("x-kubernetes-group-version-kind", ()):
                path = "/".join(filter(None, (each["group"], each["version"])))
                if each["kind"] in wanted and name.startswith("io.k8s.api."):
                    kinds[f"{path}/{each['kind']}"] = name
    types: dict[str, dict[str, str]] = {}
    for name in kinds.values():
        _add(name, schemas, types)
    return {
        "kubernetes": _get(plane, "/version")["gitVersion"],
        "kinds": {kind: short(name) for kind, name in sorted(kinds.items())},
        "types": dict(sorted(types.items())),
    }


def _served(group: str, index: dict[str, Any]) -> Iterator[str]:
    prefix = f"apis/{group}/" if group else "api/"
    return (path for path in index if path.startswith(prefix))


def short(name: str) -> str:
    """A type's name without what all of them begin with."""
    for prefix in SHORTENED:
        name = name.removeprefix(prefix)
    return name


def _add(name: str, schemas: dict[str, Any], types: dict[str, dict[str, str]]) -> None:
    if short(name) in types:
        return
    types[short(name)] = fields = {}
    for field, schema in schemas[name].get("properties", {}).items():
        fields[field] = _type(schema, schemas, types)


def _type(schema: dict[str, Any], schemas: dict[str, Any], types: dict[str, dict[str, str]]) -> str:
    for reference in (schema, *schema.get("allOf", ())):
        if "$ref" in reference:
            name = reference["$ref"].rpartition("/")[2]
            if name.rpartition(".")[2] in SCALARS or "properties" not in schemas[name]:
                return ""
            _add(name, schemas, types)
            return short(name)
    for prefix, part in (("[", "items"), ("{", "additionalProperties")):
        inner = _type(schema[part], schemas, types) if isinstance(schema.get(part), dict) else ""
        if inner:
            keys = ",".join(schema.get("x-kubernetes-list-map-keys", ()))
            return f"{prefix}{inner} {keys}" if keys else f"{prefix}{inner}"
    return ""


def _get(plane: ControlPlane, path: str) -> Any:
    command = [find_binaries()["kubectl"], "--kubeconfig", plane.kubeconfig, "get", "--raw", path]
    return json.loads(
        subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=60).stdout
    )


def text(plane: ControlPlane) -> str:
    """The file as it is committed: a type a line."""
    found = published(plane)
    types = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(fields)}" for name, fields in found["types"].items()
    )
    kinds = json.dumps(found["kinds"], indent=1)
    return (
        f'{{"kubernetes": "{found["kubernetes"]}",\n"kinds": {kinds},\n"types": {{\n{types}\n}}}}\n'
    )


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as directory,
        ControlPlane.start(Path(directory) / "plane", parts=("etcd", "kube-apiserver")) as started,
    ):
        FILE.write_text(text(started))
