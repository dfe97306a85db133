import pytest
from pydantic import ValidationError

from config.api.widget import Widget, WidgetStatus


def read(spec: dict) -> Widget:
    """The Widget with this spec, as the API server sends it."""
    return Widget.model_validate(
        {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {}, "spec": spec}
    )


@pytest.mark.parametrize(
    ("spec", "replicas"), [({}, 1), ({"replicas": None}, 1), ({"replicas": 0}, 0)]
)
def test_one_replica_is_the_default(spec, replicas):
    """`replicas` may be unset."""
    assert read(spec).spec.replicas == replicas


@pytest.mark.parametrize("wrong", [-1, "2", 1.5])
def test_other_numbers_are_refused(wrong):
    """The bounds are those of the schema."""
    with pytest.raises(ValidationError):
        read({"replicas": wrong})


def test_a_status_omits_unknown_fields():
    """Unobserved fields are not written."""
    assert WidgetStatus(available_replicas=0).to_api() == {"availableReplicas": 0}
