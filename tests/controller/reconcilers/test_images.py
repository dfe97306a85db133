"""The registries of the images that Gatewright chooses."""

import pytest

from controller.reconcilers.images import PUBLISHED, image, is_chosen


@pytest.mark.parametrize(
    ("registry", "expected"),
    [
        (
            "",
            [
                "postgres:17",
                "registry.k8s.io/pause:17",
                "quay.io/prometheuscommunity/postgres-exporter:17",
            ],
        ),
        (
            "r.example/team/",
            [f"r.example/team/{name}:17" for name in ("postgres", "pause", "postgres-exporter")],
        ),
    ],
)
def test_images_come_from_the_registry_that_is_set(registry: str, expected: list[str]) -> None:
    """All images come from it; without the setting, each comes from the registry that it is published in."""
    settings = {"registry": registry}
    assert [
        image(settings, name, "17") for name in ("postgres", "pause", "postgres-exporter")
    ] == expected


def test_images_of_users_are_not_moved_to_the_registry() -> None:
    """These are other images, other registries, and our images with their names without the setting."""
    assert is_chosen({}, "mysql:8.4")
    for settings, name in (
        ({}, "nginx:1.21"),
        ({}, "r.example/mysql:8.4"),
        ({"registry": "r.example"}, "mysql:8.4"),
    ):
        assert not is_chosen(settings, name)
    assert set(PUBLISHED) >= {
        f"gatewright-backup-{type}" for type in ("postgresql", "mysql", "mongodb")
    }
