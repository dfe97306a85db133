"""Defaults of the environments development, staging and production."""

from collections.abc import Mapping
from typing import NamedTuple

from kube.resource import JsonObject


class Tier(NamedTuple):
    """The sizes and the redundancy of one environment."""

    replicas: int
    storage: str
    backup: bool
    workload: JsonObject
    cache: JsonObject
    database: JsonObject
    queue: JsonObject
    queue_storage: str
    spread: bool = False  # anti-affinity and a PodDisruptionBudget for workloads
    alerts: bool = False


def resources(cpu: str, memory: str, most_cpu: str, most_memory: str) -> JsonObject:
    """Return requests and limits."""
    return {
        "requests": {"cpu": cpu, "memory": memory},
        "limits": {"cpu": most_cpu, "memory": most_memory},
    }


TIERS: Mapping[str, Tier] = {
    "development": Tier(
        replicas=1,
        storage="10Gi",
        backup=False,
        workload=resources("50m", "64Mi", "250m", "256Mi"),
        cache=resources("25m", "64Mi", "250m", "128Mi"),
        database=resources("100m", "512Mi", "1", "1Gi"),
        queue=resources("50m", "256Mi", "500m", "512Mi"),
        queue_storage="1Gi",
    ),
    "staging": Tier(
        replicas=2,
        storage="50Gi",
        backup=True,
        workload=resources("100m", "128Mi", "500m", "512Mi"),
        cache=resources("50m", "128Mi", "500m", "256Mi"),
        database=resources("250m", "1Gi", "1", "2Gi"),
        queue=resources("100m", "512Mi", "1", "1Gi"),
        queue_storage="5Gi",
    ),
    "production": Tier(
        replicas=3,
        storage="100Gi",
        backup=True,
        workload=resources("250m", "256Mi", "1", "1Gi"),
        cache=resources("100m", "256Mi", "1", "1Gi"),
        database=resources("500m", "2Gi", "2", "4Gi"),
        queue=resources("250m", "1Gi", "1", "2Gi"),
        queue_storage="10Gi",
        spread=True,
        alerts=True,
    ),
}
