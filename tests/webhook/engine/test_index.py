"""The index finds the policies that apply, and tries few others."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.controller.registration.sending import Sent
from tests.controller.registration.test_scope import (
    DEPLOYMENT,
    POLICIES,
    REQUESTS,
    applies,
    bound,
    reviewed,
)
from webhook.engine import BoundPolicy, Engine, Request, label_index
from webhook.engine.exemptions import Exemption, Exemptions
from webhook.engine.globs import Globs
from webhook.engine.index import Index


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(st.lists(POLICIES, min_size=1, max_size=12), st.sampled_from([1, 16]))
def test_the_policies_that_apply_are_found_in_order(policies, least):
    """Those of the cluster first, then the tenant's, by names, globs and labels of namespaces."""
    policies = [replace(each, name=f"p{number}") for number, each in enumerate(policies)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(label_index, "MIN_INDEXED", least)
        engine = Engine(policies)
        ordered = sorted(policies, key=lambda each: each.namespace is not None)
        for sent in REQUESTS:
            asked = [each.policy for each in engine.validate(reviewed(sent)).outcomes]
            assert asked == [each.title for each in ordered if applies(each, sent)]


def by_label(key: str, value: str) -> BoundPolicy:
    """Return a policy for the namespaces with a label."""
    clause = {"namespaceSelector": {"matchLabels": {key: value}}}
    return bound({"any": [clause]}, name=f"{key}-{value}")


@pytest.mark.parametrize("differ", ["keys", "values"])
def test_policies_for_other_labels_are_not_tried(differ):
    """Of 500 policies, a namespace with two labels meets two."""
    policies = [
        by_label(f"k{number}", "x") if differ == "keys" else by_label("team", f"t{number}")
        for number in range(500)
    ]
    policies += [
        bound({"any": [{"namespaces": ["shop"]}]}, name="by-name"),
        by_label("env", "prod"),
    ]
    labels = {"k7": "x", "team": "t7", "env": "prod"}
    request = reviewed(Sent(DEPLOYMENT, "shop", labels))
    ranked = Index(policies).policies_for(request.attributes).ranked
    assert [each.name for each in ranked.selected(request)] == [
        "k7-x" if differ == "keys" else "team-t7",
        "by-name",
        "env-prod",
    ]
    assert len(ranked) == len(ranked.all()) == 502


def test_exceptions_for_other_namespaces_are_not_tried(monkeypatch):
    """Of a thousand exceptions, each for a namespace or a name, those for the object are tried."""
    expires = object()
    entries = [
        Exemption(expires, **{field: Globs([f"n-{number}"])}, title=f"{field} {number}")
        for number in range(500)
        for field in ("names", "namespaces")
    ]
    tried = list[Exemption]()
    judge = Exemption.is_about

    def count(entry: Exemption, request: Request) -> bool:
        tried.append(entry)
        return judge(entry, request)

    monkeypatch.setattr(Exemption, "is_about", count)
    request = reviewed(Sent(DEPLOYMENT, "n-7"))
    assert [each.title for each in Exemptions(entries).about(request)] == ["namespaces 7"]
    assert len(tried) == 1
