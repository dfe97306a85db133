"""What policies look up of other Ingresses: where each is, and the hosts it answers for."""

from collections.abc import Mapping
from typing import Any


def summary(ingress: Mapping[str, Any], namespace: str = "") -> dict[str, Any]:
    """Return namespace, name and hosts of an Ingress; `namespace` is where one goes that names none.

    What is not what its kind says is left out here: it is denied when it is judged itself.
    """
    metadata, spec = ingress["metadata"], ingress.get("spec")
    rules = spec.get("rules") if isinstance(spec, dict) else None
    hosts = [rule.get("host") for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []
    return {
        "namespace": metadata.get("namespace") or namespace,
        "name": metadata["name"],
        "hosts": [host for host in hosts if isinstance(host, str) and host],
    }


def wildcard(host: str) -> str:
    """Return the wildcard host that covers `host`: a wildcard stands for exactly one label."""
    return f"*.{host.partition('.')[2]}"
