"""The known state of a cluster, or of files that stand in for one."""

import pytest

from webhook.engine import NAMESPACE, NAMESPACE_LABELS, NotLookedUpError
from webhook.engine.request import NAME_LABEL
from webhook.known import Known

LIMITS = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits"}}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
SHOP = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "shop", "labels": {"env": "prod"}},
}


def test_an_added_object_is_looked_up_at_once():
    """It is found only in its namespace.

    An object of the same name replaces it, and one without a name is ignored.
    """
    known = Known()
    assert known.about("shop")["services"] == known.about("lab")["services"] == []
    known.add(SERVICE, "shop")
    known.add({"apiVersion": "v1", "kind": "Service", "metadata": {"generateName": "web-"}}, "shop")
    assert (known.about("shop")["services"], known.about("lab")["services"]) == ([SERVICE], [])
    changed = SERVICE | {"spec": {}}
    known.add(changed, "shop")
    assert known.about("shop")["services"] == [changed]


def test_labels_of_a_namespace_are_known_when_it_is():
    """Before, only the label with its name is known: any other label, or the list of all, is an error."""
    known = Known()
    unknown = known.about("shop")[NAMESPACE_LABELS]
    assert (known.knows("shop"), known.knows("")) == (False, True)
    assert unknown[NAME_LABEL] == "shop"
    for ask in (
        lambda: unknown["env"],
        lambda: unknown.get("env"),
        lambda: dict(unknown),
        lambda: len(unknown),
    ):
        with pytest.raises(NotLookedUpError, match=r"^namespace_labels$"):
            ask()
    known.add(SHOP, "")
    assert known.knows("shop")
    assert known.about("shop")[NAMESPACE_LABELS] == {"env": "prod", NAME_LABEL: "shop"}
    assert known.about("shop")[NAMESPACE] is None
    known.set_labels("shop", None, SHOP)
    assert known.about("shop")[NAMESPACE_LABELS] == {NAME_LABEL: "shop"}
    assert known.about("shop")[NAMESPACE] == SHOP


def test_an_absence_of_limits_is_known_only_for_known_namespaces():
    """Elsewhere a policy that needs them cannot decide."""
    known = Known()
    known.add(LIMITS, "shop")
    assert "limit_ranges" not in known.about("shop")
    known.set_labels("shop", {})
    assert known.about("shop")["limit_ranges"] == [LIMITS]


def test_a_look_up_that_could_not_be_read_is_missing():
    """It is not taken for an empty one."""
    known = Known()
    assert known.about("shop")["services"] == []
    known.forget("services")
    assert "services" not in known.about("shop")
