"""`check` reports as `schema` what the API server cannot decode or lacks, and nothing that it accepts."""

import copy
import json
import os
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from config import schemas
from config.documents import Document
from config.object_faults import object_faults
from config.schemas import CustomTypes
from gatewright.checks.check_report import with_schema
from gatewright.outputs import SubjectResult
from kube.resource import JsonObject
from webhook.harness.bases import smallest

ROUNDS = int(os.environ.get("ROUNDS", "250"))
SEED = int(os.environ.get("SEED", "1"))
KINDS = (
    *("Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod", "Service", "Ingress"),
    *("ConfigMap", "Secret", "HorizontalPodAutoscaler", "NetworkPolicy", "PodDisruptionBudget"),
    *("PersistentVolumeClaim", "Role", "RoleBinding", "StorageClass", "Namespace"),
)
CONTAINER = {
    "env": [{"name": "A", "value": "1"}],
    "ports": [{"containerPort": 80, "name": "http"}],
    "resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"cpu": 1.5}},
    "securityContext": {"privileged": False, "runAsUser": 1, "capabilities": {"drop": ["ALL"]}},
    "command": ["a"],
    "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
}
METADATA = {"labels": {"a": "b"}, "annotations": {"a": "b"}}
VALUES: tuple[Any, ...] = (
    *("text", "3", "true", "1Gi", "", 3, 0, -1, 1.5, 2.0**63, 2**31, True, False, None),
    *([], {}, ["a"], {"a": "b"}, [None], {"a": None}, [{}], "1.5", "2e3", "1 Gi"),
)
NAMES = ("replica", "securityContex", "Image", "labelz", "spec", "name", "zz")


def widened(object: JsonObject) -> JsonObject:
    """Return an object whose containers and metadata have some fields more."""
    object["metadata"] |= copy.deepcopy(METADATA)
    for value, _ in places(object):
        for container in value.get("containers", ()) if isinstance(value, dict) else ():
            container.update(copy.deepcopy(CONTAINER))
    return object


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each list and object below a value, with each of its keys."""
    found = list(value.items() if isinstance(value, dict) else enumerate(value))
    for key, item in found:
        yield value, key
        if isinstance(item, dict | list):
            yield from places(item)


def mutated(random: Random, object: JsonObject) -> JsonObject:
    """Return the object with one or two random changes below its kind."""
    for _ in range(random.randint(0, 2)):
        holders = [(at, key) for at, key in places(object) if key not in ("apiVersion", "kind")]
        at, key = random.choice([each for each in holders if each[1] != "metadata"])
        if isinstance(at, dict) and random.random() < 0.3:
            del at[key]
        elif isinstance(at, dict) and random.random() < 0.3:
            at[random.choice(NAMES)] = (
                at.pop(key) if random.random() < 0.5 else random.choice(VALUES)
            )
        else:
            at[key] = copy.deepcopy(random.choice(VALUES))
    return object


@pytest.mark.controlplane
def test_what_the_api_server_cannot_decode_is_reported(control_plane, namespace) -> None:
    """Its answer 400 with strict validation, for unknown fields and wrong types; never 201.

    Of the objects that it decodes and refuses, most lack a field or have an unknown value.
    """
    api, random = control_plane.api, Random(SEED)
    differences, refused = list[Any](), [0, 0]
    for number in range(ROUNDS):
        kind = random.choice(KINDS)
        sent = mutated(random, widened(smallest(kind, f"case-{number}", namespace)))
        plural, is_namespaced = schemas.resources()[f"{sent['apiVersion']}/{kind}"]
        group = "api" if sent["apiVersion"] == "v1" else "apis"
        place = f"/namespaces/{namespace}" if is_namespaced else ""
        url = f"/{group}/{sent['apiVersion']}{place}/{plural}"
        code, body = api.request("POST", f"{url}?dryRun=All&fieldValidation=Strict", sent)
        if code == 400 and b"does not match the namespace" in body:
            continue
        faults = list(object_faults(sent, CustomTypes()))
        result = SubjectResult(kind=kind, name="", verdict="allowed")
        reported = with_schema(result, Document.of_object(sent), CustomTypes())
        undecodable = any(not each.is_decodable for each in faults)
        if code == 422:
            refused[bool(reported.violations)] += 1
        if (code == 400) != undecodable or (code == 201 and reported.violations):
            differences.append((sent, code, json.loads(body).get("message"), faults))
    assert [(code, message, faults) for _, code, message, faults in differences] == []
    assert refused[True] > refused[False], refused
