"""Random walks of updates: what policies accept never becomes worse, and never ends denied.

ROUNDS sets the number of updates of each walk (default 100); with ROUNDS=100000 it takes minutes.
"""

import copy
import os
import random
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from config.faults import FaultsError
from tests.webhook.asking import ask
from webhook.engine import NAMESPACE_LABELS, NOW, Engine
from webhook.harness.bases import smallest
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import in_force
from webhook.server.policy_files import policy_set_of

ROUNDS = int(os.environ.get("ROUNDS", "100"))
PRESETS = ("baseline", "restricted", "best-practices", "production")
REMOVED = object()
TEMPLATES = {"Pod": ("spec",), "Deployment": ("spec", "template", "spec")}
QUANTITIES = ["10m", "100m", "2", "128Mi", "64Gi", REMOVED]
OF_CONTAINERS: dict[tuple[str, ...], list[Any]] = {
    ("image",): ["nginx", "nginx:latest", "registry.company.com/web:1", "a.b/c@sha256:" + "0" * 64],
    ("securityContext", "privileged"): [True, False, REMOVED],
    ("securityContext", "allowPrivilegeEscalation"): [True, False, REMOVED],
    ("securityContext", "runAsNonRoot"): [True, False, REMOVED],
    ("securityContext", "runAsUser"): [0, 1000, REMOVED],
    ("securityContext", "readOnlyRootFilesystem"): [True, False, REMOVED],
    ("securityContext", "capabilities"): [
        {"drop": ["ALL"]},
        {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
        {"add": ["SYS_ADMIN", "NET_RAW"]},
        REMOVED,
    ],
    ("resources", "limits", "cpu"): QUANTITIES,
    ("resources", "limits", "memory"): QUANTITIES,
    ("resources", "requests", "cpu"): QUANTITIES,
    ("ports",): [[{"containerPort": 80, "hostPort": 80}], [{"containerPort": 8080}], REMOVED],
    ("readinessProbe",): [{"httpGet": {"path": "/", "port": 80}}, REMOVED],
    ("livenessProbe",): [{"httpGet": {"path": "/", "port": 80}}, REMOVED],
    ("imagePullPolicy",): ["Always", "Never", REMOVED],
    ("lifecycle",): [{"preStop": {"exec": {"command": ["true"]}}}, REMOVED],
}
OF_PODS: dict[tuple[str, ...], list[Any]] = {
    ("hostNetwork",): [True, False, REMOVED],
    ("hostPID",): [True, REMOVED],
    ("hostIPC",): [True, REMOVED],
    ("automountServiceAccountToken",): [True, False, REMOVED],
    ("serviceAccountName",): ["default", "web", REMOVED],
    ("securityContext", "runAsNonRoot"): [True, False, REMOVED],
    ("securityContext", "seccompProfile"): [
        {"type": "RuntimeDefault"},
        {"type": "Unconfined"},
        REMOVED,
    ],
    ("volumes",): [
        [{"name": "v", "hostPath": {"path": "/"}}],
        [{"name": "v", "emptyDir": {}}],
        REMOVED,
    ],
    ("terminationGracePeriodSeconds",): [0, 30, 86_400, REMOVED],
    ("dnsPolicy",): ["None", "ClusterFirst", REMOVED],
}
OF_DEPLOYMENTS: dict[tuple[str, ...], list[Any]] = {
    ("spec", "replicas"): [1, 2, 11, 50, REMOVED],
    ("metadata", "labels"): [{"managed-by": "x"}, {"app.kubernetes.io/name": "web"}, REMOVED],
}


def set_at(value: dict[str, Any], path: tuple[str, ...], new: Any) -> None:
    """Set or remove a field, and create its parents."""
    for step in path[:-1]:
        value = value.setdefault(step, {})
    if new is REMOVED:
        value.pop(path[-1], None)
    else:
        value[path[-1]] = copy.deepcopy(new)


def edit(chosen: random.Random, kind: str, object: dict[str, Any]) -> dict[str, Any]:
    """Return an object with one to three changes."""
    edited = copy.deepcopy(object)
    for _ in range(chosen.randint(1, 3)):
        pod: Any = edited
        for step in TEMPLATES[kind]:
            pod = pod[step]
        containers = pod["containers"]
        fields, target = chosen.choice(
            [
                (OF_CONTAINERS, chosen.choice(containers)),
                (OF_CONTAINERS, chosen.choice(containers)),
                (OF_PODS, pod),
                (
                    OF_DEPLOYMENTS if kind == "Deployment" else OF_PODS,
                    edited if kind == "Deployment" else pod,
                ),
            ]
        )
        if chosen.random() < 0.1:
            if len(containers) > 1:
                containers.pop(chosen.randrange(len(containers)))
            else:
                containers.append({"name": f"c-{chosen.randrange(1000)}", "image": "nginx"})
        path = chosen.choice([*fields])
        set_at(target, path, chosen.choice(fields[path]))
    return edited


@cache
def sets() -> dict[str, tuple[Any, ...]]:
    """Return the presets, and each policy that needs no parameters, as sets of their own."""
    found = {
        preset: in_force(
            policy_set_of([Path(f"config/policies/{preset}.yaml")], catalogue()), catalogue()
        )
        for preset in PRESETS
    }
    for name, policy in catalogue().items():
        needs_nothing = (
            policy.validate is not None and not callable(policy.needs) and not policy.needs
        )
        if needs_nothing and not any(
            parameter.is_required() for parameter in policy.params.model_fields.values()
        ):
            document = {
                "apiVersion": "gatewright.io/v1alpha1",
                "kind": "ClusterAdmissionPolicy",
                "metadata": {"name": name},
                "spec": {"policy": name, "validationActions": ["Deny"]},
            }
            with suppress(FaultsError):  # its defaults alone are no policy
                found[name] = (bind(document, catalogue()),)
    return found


LOOKED_UP = {
    NOW: datetime(2026, 11, 28, tzinfo=UTC),
    NAMESPACE_LABELS: {"environment": "production"},
}


@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(TEMPLATES))
@pytest.mark.parametrize("name", sorted(sets()))
def test_accepted_updates_make_nothing_worse(name, kind):
    """From an object that is accepted at its creation no accepted update leads to one that is not.

    From any object, none leads to one with more violations.
    """
    chosen, engine = random.Random(f"{name} {kind}"), Engine(sets()[name])

    def violations(object: dict[str, Any], **old: Any) -> tuple[bool, int]:
        request = ask(object, kind, namespace="production", looked_up=LOOKED_UP, **old)
        verdict = engine.validate(request)
        return verdict.allowed, sum(
            len(outcome.violations) + len(outcome.tolerated)
            for outcome in verdict.outcomes
            if "Deny" in outcome.actions
        )

    object = smallest(kind, "web", "production")
    _, number = violations(object)
    for _ in range(ROUNDS):
        edited = edit(chosen, kind, object)
        is_accepted, _ = violations(edited, old_object=object, operation="UPDATE")
        if is_accepted:
            _, after = violations(edited)
            assert after <= number, (object, edited)
            object, number = edited, after
