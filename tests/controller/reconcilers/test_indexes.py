"""Indexes of the caches."""

from controller.reconcilers.indexes import by_label, by_name


def test_an_object_is_found_by_its_name():
    """Only the object with the name is found."""
    assert list(by_name({"metadata": {"name": "nightly"}})) == ["nightly"]


def test_an_object_is_found_by_the_value_of_a_label():
    """Only objects with the label are found."""
    index = by_label("gatewright.io/backup")
    assert list(index({"metadata": {"labels": {"gatewright.io/backup": "nightly"}}})) == ["nightly"]
    assert (
        list(index({"metadata": {"labels": {"app": "nightly"}}}))
        == list(index({"metadata": {}}))
        == []
    )
