"""What an installation chooses: which kinds are made real, and which namespaces are never asked about."""

import pytest

from config.settings import Settings
from controller.reconcilers import planned_kinds
from gatewright.controlling import wanted_kinds
from gatewright.planning import planners_of
from gatewright.registering import excluded_namespaces
from kube.endpoint import Endpoint

INSIDE = Endpoint("https://10.0.0.1", namespace="gatewright-system")


@pytest.mark.parametrize(
    ("names", "expected"),
    [([], {kind.name for kind in planned_kinds()}), (["WebApp", "widget"], {"webapp", "widget"}), (["none"], set())],
)
def test_which_kinds_are_made(names, expected):
    """All, those that are named, or none; and what would be made of no other is judged."""
    assert {kind.name for kind in wanted_kinds(names)} == expected
    planners = planners_of(Settings(kinds=names), "gatewright-system")
    assert {each.kind.kind.lower() for each in planners} == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["gatewright-system"]),
        ({"namespace": "ours"}, ["ours"]),
        ({"excluded_namespaces": ["calico-system"]}, ["gatewright-system", "calico-system"]),
        ({"namespace": "ours", "excluded_namespaces": ["calico-system"]}, ["ours", "calico-system"]),
        ({"webhook_url": "https://127.0.0.1:9443"}, []),
        ({"webhook_url": "https://127.0.0.1:9443", "excluded_namespaces": ["calico-system"]}, ["calico-system"]),
    ],
)
def test_which_namespaces_are_never_sent(settings, expected):
    """The one that Gatewright is installed in, and those that somebody chose."""
    assert excluded_namespaces(Settings(**settings), INSIDE) == expected
