"""The fields of objects, as published by a real API server."""

import pytest

from config.schemas import FILE, unknown_fields
from tests.config.openapi import text


@pytest.mark.controlplane
def test_the_committed_fields_are_those_of_the_api_server(empty_plane):
    """After a new Kubernetes version: `python -m tests.config.openapi`."""
    assert FILE.read_text() == text(empty_plane)


def test_all_unknown_fields_are_found():
    """Fields in lists, in maps and in custom resources are checked; an open value may have any field."""
    shop = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"labels": {"any": "x"}, "lables": {}},
        "spec": {
            "template": {
                "spec": {"containers": [{"resources": {"limits": {"any": 1}, "limit": {}}}]}
            }
        },
    }
    assert list(unknown_fields(shop)) == [
        ("metadata.lables", 'unknown field; did you mean "labels"?'),
        (
            "spec.template.spec.containers[0].resources.limit",
            'unknown field; did you mean "limits"?',
        ),
    ]
    backup = {
        "apiVersion": "backup.example.com/v1",
        "kind": "Backup",
        "spec": {"source": {"connection": {"any": 1}}},
    }
    assert list(unknown_fields(backup)) == []


def test_an_unknown_kind_may_have_any_field():
    """Its schema is not here."""
    assert (
        list(unknown_fields({"apiVersion": "example.org/v1", "kind": "Gadget", "spec": {"any": 1}}))
        == []
    )
