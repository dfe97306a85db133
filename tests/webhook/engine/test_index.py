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
from webhook.engine import BoundPolicy, Engine, Request, ranks
from webhook.engine.exemptions import Exemption, Exemptions
from webhook.engine.globs import Globs
from webhook.engine.index import Index
from webhook.engine.match import NamespaceNames
from webhook.engine.ranks import Ranking


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(st.lists(POLICIES, min_size=1, max_size=12), st.sampled_from([1, 16]))
def test_the_policies_that_apply_are_found_in_order(policies, least):
    """Those of the cluster first, then the tenant's, by names, globs and labels of namespaces."""
    policies = [replace(each, name=f"p{number}") for number, each in enumerate(policies)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranks, "MIN_INDEXED", least)
        engine = Engine(policies)
        ordered = sorted(policies, key=lambda each: each.namespace is not None)
        for sent in REQUESTS:
            asked = [each.policy for each in engine.validate(reviewed(sent)).outcomes]
            assert asked == [each.title for each in ordered if applies(each, sent)]


CHANGES = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(["put", "remove"]), POLICIES),
    min_size=1,
    max_size=25,
)


@pytest.mark.long
@pytest.mark.parametrize("least", [1, 16])
@settings(max_examples=10, deadline=None)
@given(steps=CHANGES)
def test_a_changed_engine_judges_as_a_new_one(least, steps):
    """Whatever was indexed and cached before a change: policies are put, replaced and removed."""
    policies, engine = list[BoundPolicy](), Engine([])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranks, "MIN_INDEXED", least)
        for number, (place, verb, policy) in enumerate(steps):
            index = place % (len(policies) + 1)
            policies[index : index + place % 2] = (
                [replace(policy, name=f"p{number}")] if verb == "put" else []
            )
            engine = engine.with_policies(policies)
            new = Engine(policies)
            assert engine.policies == tuple(policies)
            assert engine.judged_kinds == new.judged_kinds
            assert engine.versions_sent == new.versions_sent
            for sent in REQUESTS:
                request = reviewed(sent)
                assert engine.requirements(request.attributes) == new.requirements(
                    request.attributes
                )
                asked = [each.policy for each in engine.validate(request).outcomes]
                assert asked == [each.policy for each in new.validate(request).outcomes]


def test_one_change_of_thousands_is_indexed_alone(monkeypatch):
    """The other policies are not read again, and places they do not concern stay cached."""
    policies = [
        bound({"any": [{"namespaces": [f"ns-{number}"]}]}, name=f"p{number}")
        for number in range(1_000)
    ]
    engine = Engine(policies)
    request = reviewed(Sent(DEPLOYMENT, "ns-7"))
    before = engine._validating.policies_for(request.attributes)
    read = list[str]()

    def names(bound: BoundPolicy) -> NamespaceNames:
        read.append(bound.name)
        return bound.match.namespaces()

    monkeypatch.setattr(BoundPolicy, "namespaces", property(names))
    policies[500] = replace(policies[500], name="changed")
    changed = engine.with_policies(policies)
    assert changed._validating.policies_for(request.attributes) is before
    assert set(read) == {"p500", "changed"}


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
    ranked = Index(Ranking(tuple(policies)).ranked).policies_for(request.attributes).ranked
    assert [each.name for each in ranked.select(request)] == [
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
