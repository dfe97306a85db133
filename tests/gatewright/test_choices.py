"""The choices of an installation: reconciled kinds, and namespaces excluded from admission."""

import pytest

from config.settings import Settings
from controller.reconcilers import planned_kinds
from gatewright.processes.controller_process import enabled_kinds
from gatewright.processes.planners import planners_of
from gatewright.processes.registration import excluded_namespaces
from kube.endpoint import Endpoint

INSIDE = Endpoint("https://10.0.0.1", namespace="gatewright-system")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], {kind.name for kind in planned_kinds()}),
        (["WebApp", "widget"], {"webapp", "widget"}),
        (["none"], set()),
    ],
)
def test_which_kinds_are_planned(names, expected):
    """All kinds, the named ones, or none are planned; only their children are judged."""
    assert {kind.name for kind in enabled_kinds(names)} == expected
    planners = planners_of(Settings(kinds=names), "gatewright-system")
    assert {each.kind.kind.lower() for each in planners} == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["gatewright-system"]),
        ({"namespace": "ours"}, ["ours"]),
        ({"excluded_namespaces": ["calico-system"]}, ["gatewright-system", "calico-system"]),
        (
            {"namespace": "ours", "excluded_namespaces": ["calico-system"]},
            ["ours", "calico-system"],
        ),
        ({"webhook_url": "https://127.0.0.1:9443"}, []),
        (
            {"webhook_url": "https://127.0.0.1:9443", "excluded_namespaces": ["calico-system"]},
            ["calico-system"],
        ),
    ],
)
def test_which_namespaces_are_excluded(settings, expected):
    """Gatewright's own namespace, and those in the settings."""
    assert excluded_namespaces(Settings(**settings), INSIDE) == expected
