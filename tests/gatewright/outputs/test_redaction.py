"""Values of Secrets are never printed."""

from gatewright.outputs.redaction import redact

CONFIG_MAP = {"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}
APPLIED = {
    "kubectl.kubernetes.io/last-applied-configuration": '{"data":{"a":"MQ=="}}',
    "other": "kept",
}
SECRET = {
    "kind": "Secret",
    "metadata": {"name": "a", "annotations": APPLIED},
    "data": {"a": "MQ=="},
}


def test_only_secrets_are_hidden():
    """Other objects are printed unchanged."""
    assert redact(CONFIG_MAP) == CONFIG_MAP


def test_keys_of_a_secret_are_shown():
    """Kubectl's last-applied annotation is redacted too; a changed value is marked."""
    shown = {"kubectl.kubernetes.io/last-applied-configuration": "(secret)", "other": "kept"}
    assert redact(SECRET) == {
        "kind": "Secret",
        "metadata": {"name": "a", "annotations": shown},
        "data": {"a": "(secret)"},
    }
    before, after = {"a": "1", "b": "2"}, {"a": "1", "b": "3"}
    changed = {"kind": "Secret", "metadata": {"name": "a"}, "stringData": after}
    told = {"a": "(secret)", "b": "(secret, changed)"}
    assert redact(changed, changed | {"stringData": before})["stringData"] == told
