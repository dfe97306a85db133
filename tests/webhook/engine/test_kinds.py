"""The table of kinds."""

import pytest

from webhook.engine.kinds import KINDS, resource_of, targets


def test_kinds_are_named_once():
    """A policy names kinds without their groups, so a name means one kind."""
    names = [kind.kind for kind in KINDS.values()]
    assert len(set(names)) == len(names)


def test_a_policy_can_name_kinds():
    """Each name stands for one kind, in the order of the table."""
    assert [target.key for target in targets(("WebApp", "Pod"))] == [("", "pods", ""), ("example.com", "webapps", "")]


def test_a_kind_that_is_not_known_is_refused():
    """A policy that would never be asked is a mistake."""
    with pytest.raises(LookupError):
        targets(("Pod", "Pods"))


@pytest.mark.parametrize(
    ("group", "kind", "resource"),
    [("", "Pod", "pods"), ("apps", "Deployment", "deployments"), ("", "ConfigMap", "configmaps")],
)
def test_resources_have_names(group, kind, resource):
    """A kind that is not in the table is named as the API's convention has it."""
    assert resource_of(group, kind) == resource
