"""What Secrets hold is printed nowhere."""

from gatewright.hidden import hidden

CONFIG_MAP = {"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}
APPLIED = {"kubectl.kubernetes.io/last-applied-configuration": '{"data":{"a":"MQ=="}}', "other": "kept"}
SECRET = {"kind": "Secret", "metadata": {"name": "a", "annotations": APPLIED}, "data": {"a": "MQ=="}}


def test_only_secrets_are_hidden():
    """Anything else is as it is."""
    assert hidden(CONFIG_MAP) == CONFIG_MAP


def test_the_names_of_what_a_secret_holds_stay():
    """Not even what kubectl noted of it is told; a value that is another one than before is said to be."""
    shown = {"kubectl.kubernetes.io/last-applied-configuration": "(secret)", "other": "kept"}
    assert hidden(SECRET) == {
        "kind": "Secret",
        "metadata": {"name": "a", "annotations": shown},
        "data": {"a": "(secret)"},
    }
    before, after = {"a": "1", "b": "2"}, {"a": "1", "b": "3"}
    changed = {"kind": "Secret", "metadata": {"name": "a"}, "stringData": after}
    told = {"a": "(secret)", "b": "(secret, changed)"}
    assert hidden(changed, changed | {"stringData": before})["stringData"] == told
