"""Secrets' keys in the environment of the containers that take all keys of a ConfigMap.

A container that has the ConfigMap in `envFrom` gets a variable with a `secretKeyRef` for each
reference. The kubelet reads the Secret: its value is neither read here nor copied. A variable that
the container sets itself is left alone, as Kubernetes prefers `env` to `envFrom`.
"""

from collections.abc import Container, Iterator, Mapping

from config.api.components import KeyReference
from kube.resource import JsonObject

CONTAINERS = ("containers", "initContainers")


def environment_fields(
    pod: JsonObject,
    config_map: str,
    references: Mapping[str, KeyReference],
    missing: Container[str],
    own: Container[str],
) -> JsonObject:
    """Return the fields of a pod's spec that give its containers the references.

    `own` are the variables that were given before, as `variables_of` returns them; other existing
    variables are the containers' own. While a Secret is `missing`, its variables stay as they are.
    Empty if no container takes the ConfigMap's keys.
    """
    fields: JsonObject = {}
    for field in CONTAINERS:
        changed = []
        for container in pod.get(field) or ():
            if config_map not in sources_of(container):
                continue
            name = container["name"]
            existing = {each["name"]: each for each in container.get("env") or ()}
            given = []
            for key, reference in sorted(references.items()):
                if key in existing and f"{name}/{key}" not in own:
                    continue
                if reference.name not in missing:
                    given.append(_variable(key, reference))
                elif key in existing:
                    given.append(existing[key])
            changed += [{"name": name, "env": given}] if given else []
        if changed:
            fields[field] = changed
    return fields


def variables_of(fields: JsonObject) -> frozenset[str]:
    """Return the variables of some fields of a pod's spec, each as `<container>/<variable>`."""
    return frozenset(
        f"{container['name']}/{variable['name']}"
        for containers in fields.values()
        for container in containers
        for variable in container["env"]
    )


def sources_of(container: JsonObject) -> Iterator[str]:
    """Yield the names of the ConfigMaps that a container takes all keys of."""
    for source in container.get("envFrom") or ():
        if name := (source.get("configMapRef") or {}).get("name"):
            yield name


def kept_of(pod: JsonObject) -> JsonObject:
    """Return the containers that take all keys of a ConfigMap, without values of variables."""
    kept: JsonObject = {}
    for field in CONTAINERS:
        containers = [
            {
                "name": container["name"],
                "envFrom": [{"configMapRef": {"name": name}} for name in sources_of(container)],
                "env": [
                    {key: value for key, value in variable.items() if key != "value"}
                    for variable in container.get("env") or ()
                ],
            }
            for container in pod.get(field) or ()
            if any(sources_of(container))
        ]
        if containers:
            kept[field] = containers
    return kept


def _variable(name: str, reference: KeyReference) -> JsonObject:
    return {"name": name, "valueFrom": {"secretKeyRef": reference.to_api()}}
