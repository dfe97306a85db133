import pytest
from pydantic import ValidationError

from config.api.webapp import WebApp, WebAppStatus

SPEC = {"replicas": 1, "image": "shop:1"}
TOO_MUCH = [
    {"resources": {"limits": {"cpu": amount}}} for amount in ("much", "1 Gi", 0.5, None, True)
]


def read(spec: dict) -> WebApp:
    """The WebApp with this spec, as the API server sends it."""
    return WebApp.model_validate(
        {"apiVersion": "example.com/v1", "kind": "WebApp", "metadata": {}, "spec": spec}
    )


def test_defaults_are_those_of_the_documentation():
    """Unset fields have the documented port 8080 and resources."""
    assert read(SPEC).spec.to_api() == {
        **SPEC,
        "port": 8080,
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"cpu": "500m", "memory": "512Mi"},
        },
    }


def test_resources_default_only_as_a_whole():
    """If `resources` is set, no default is added to it."""
    assert read({**SPEC, "resources": {"limits": {"cpu": 1}}}).spec.resources.to_api() == {
        "limits": {"cpu": 1}
    }


def test_a_security_context_is_read_and_written_unchanged():
    """Every field of core/v1 keeps its name, even if an acronym makes it irregular."""
    given = {
        "runAsNonRoot": True,
        "seLinuxOptions": {"level": "s0:c123,c456"},
        "appArmorProfile": {"type": "RuntimeDefault"},
        "seccompProfile": {"type": "Localhost", "localhostProfile": "profile.json"},
        "capabilities": {"drop": ["ALL"]},
        "windowsOptions": {"gmsaCredentialSpecName": "spec", "runAsUserName": "user"},
    }
    assert read({**SPEC, "securityContext": given}).spec.security_context.to_api() == given


@pytest.mark.parametrize(
    "wrong",
    [
        {"replicas": 0},
        {"replicas": 11},
        {"replicas": "3"},
        {"image": ""},
        {"port": 0},
        {"port": 65536},
        *TOO_MUCH,
    ],
)
def test_values_out_of_bounds_are_refused(wrong):
    """The bounds are those of the schema."""
    with pytest.raises(ValidationError):
        read({**SPEC, **wrong})


def test_a_status_omits_unknown_fields():
    """Unobserved fields are not written."""
    assert WebAppStatus(phase="Pending", ready_replicas=0).to_api() == {
        "phase": "Pending",
        "readyReplicas": 0,
    }


def test_the_stored_status_is_not_parsed():
    """No plan uses it, so an unknown status of a newer release has no effect."""
    assert (
        WebApp.model_validate({"spec": SPEC, "status": {"phase": "FromTheFuture"}}).spec
        == read(SPEC).spec
    )
