import pytest
from pydantic import ValidationError

from config.api.voteconfig import VoteConfig, VoteConfigV1Alpha1


def read(spec: object, **metadata: object) -> VoteConfig:
    """The VoteConfig with this spec, as the API server sends it."""
    object = {
        "apiVersion": "voting.schoolofdevops.com/v1",
        "kind": "VoteConfig",
        "metadata": metadata,
        "spec": spec,
    }
    return VoteConfig.model_validate(object)


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        ({}, None),
        ({"poll": {"question": "Which?"}}, "Which?"),
        ({"question": "Which?"}, "Which?"),
        ({"poll": {}, "question": "Which?"}, "Which?"),
        ({"poll": {"question": "Which?"}, "question": "Old?"}, "Which?"),
    ],
)
def test_the_question_is_found_where_either_version_has_it(spec, asked):
    """The field of the stored version takes precedence."""
    assert read(spec).spec.effective_question == asked


def test_an_invalid_spec_does_not_delay_deletion():
    """The spec of an object in deletion is not read."""
    with pytest.raises(ValidationError):
        read({"options": "?"})
    assert read({"options": "?"}, deletionTimestamp="2026-01-01T00:00:00Z").spec.options == []


def test_one_version_is_stored():
    """Both are the same resource."""
    new, old = VoteConfig.definition, VoteConfigV1Alpha1.definition
    assert (new.name, new.kind, new.storage) == (old.name, old.kind, not old.storage)
