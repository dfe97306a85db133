"""Every image of a spec is a reference that a kubelet can parse."""

import pytest

from config.faults import FaultsError, parse
from tests.controller.properties.test_admitted_fields import text_fields, with_text
from tests.controller.reconcilers.every_kind import cases

IMAGES = {
    "appstack": {"spec.backend.image", "spec.frontend.image", "spec.services[0].image"},
    "backup": {"spec.drill.image"},
    "ecommerceplatform": {"spec.backend.image", "spec.frontend.image", "spec.services[0].image"},
    "postgresql": {"spec.image"},
    "webapp": {"spec.image"},
}


@pytest.mark.parametrize(
    ("image", "fault"),
    [
        ("docker.io/postgres 17", "it contains whitespace"),
        (" nginx", "it contains whitespace"),
        ("https://example.com/app", "its registry is malformed"),
        ("example.com/App", "its repository is malformed; it must be lower case"),
        ("example.com/app:", "its tag is malformed"),
        ("example.com/app@sha256:1", "its digest is malformed"),
    ],
)
def test_what_no_kubelet_can_pull_is_rejected(image: str, fault: str) -> None:
    """It would be admitted by the API server, and end in InvalidImageName."""
    found: dict[str, set[str]] = {}
    for case in cases():
        for path in text_fields(case.kind.type.model_fields["spec"].annotation):
            spec = with_text(case.object["spec"], path, image) if path[-1] == "image" else None
            if spec is None:
                continue
            with pytest.raises(FaultsError) as raised:
                parse(case.kind.type, {"metadata": {"name": case.name}, "spec": spec})
            ((field, text),) = raised.value.faults
            fix = "write it as in registry.example.com/team/app:1.2"
            assert text == f'"{image}": not an image reference: {fault}; {fix}'
            found.setdefault(case.kind.name, set()).add(field)
    assert found == IMAGES
