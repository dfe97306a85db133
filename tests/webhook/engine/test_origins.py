"""A child's field is mapped to the parent's field that it comes from."""

import pytest

from config.field_paths import value_at
from webhook.engine.origins import trace_field

CONTAINER = "spec.template.spec.containers[name=app]"
ORIGIN = {
    "spec.replicas": "spec.frontend.replicas",
    f"{CONTAINER}.image": "spec.frontend.image",
    f"{CONTAINER}.ports": "spec.port",
    f"{CONTAINER}.resources": "spec.resources",
    "spec.template.spec": "spec.pod",
    "spec.rules[0].host": "spec.hosts[name=main].host",
    "data": "spec.config",
    "metadata.labels[*]": "metadata.labels[*]",
    "metadata.labels[app]": "",
    "spec.tls": "spec.secret",
}
PARENT = {
    "spec": {
        "frontend": {"replicas": 3, "image": "nginx"},
        "port": 80,
        "hosts": [{"name": "other"}, {"name": "main", "host": "shop.example"}],
        "config": {"a.b": "c"},
    }
}


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("spec.replicas", "spec.frontend.replicas"),
        (f"{CONTAINER}.image", "spec.frontend.image"),
        (f"{CONTAINER}.resources.limits.cpu", "spec.resources.limits.cpu"),
        (f"{CONTAINER}.resources", "spec.resources"),
        (f"{CONTAINER}.resourcesClaims", "spec.pod.containers[name=app].resourcesClaims"),
        (f"{CONTAINER}.ports[0].containerPort", "spec.port"),
        (f"{CONTAINER}.livenessProbe", "spec.pod.containers[name=app].livenessProbe"),
        ("spec.rules[0].host", "spec.hosts[name=main].host"),
        ("spec.rules[1].host", None),
        ("data[a.b]", "spec.config[a.b]"),
        ("spec.replicasOfAnother", None),
        ("metadata.labels[app.kubernetes.io/name]", None),
        ("metadata.labels[team]", "metadata.labels[team]"),
        ("metadata.labels[app]", None),
        ("metadata.annotations[team]", None),
        ("spec.tls[0].hosts", "spec.secret"),
        ("spec.tls.hosts", "spec.secret.hosts"),
    ],
)
def test_the_longest_origin_wins(path, source):
    """The longest prefix of the path that has an origin is replaced by it, in whole steps."""
    assert trace_field(path, ORIGIN, PARENT) == source


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.port", 80),
        ("spec.hosts[1].host", "shop.example"),
        ("spec.hosts[name=main].host", "shop.example"),
        ("spec.hosts[2].host", None),
        ("spec.hosts[name=none].host", None),
        ("spec.config[a.b]", "c"),
        ("spec.port.name", None),
    ],
)
def test_the_value_at_a_path(path, value):
    """List items are found by position or by key; a missing value is None."""
    assert value_at(PARENT, path) == value
