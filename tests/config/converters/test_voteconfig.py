import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.converters import ConversionError, as_written, convert, to_stored_version
from config.converters.voteconfig import KEPT

V1, OLD = "voting.schoolofdevops.com/v1", "voting.schoolofdevops.com/v1alpha1"

texts = st.text("aäb \n", max_size=3)
metadata = st.fixed_dictionaries(
    {"name": texts, "uid": texts},
    optional={
        "labels": st.dictionaries(texts, texts, max_size=2),
        "annotations": st.dictionaries(texts, texts, min_size=1, max_size=2),
        "finalizers": st.lists(texts, max_size=2),
    },
)
statuses = st.fixed_dictionaries(
    {}, optional={"checksum": texts, "conditions": st.just([{"type": "Ready"}])}
)


def objects(api_version: str, spec: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects of a version."""
    about = {
        "apiVersion": st.just(api_version),
        "kind": st.just("VoteConfig"),
        "metadata": metadata,
    }
    return st.fixed_dictionaries(about, optional={"spec": spec, "status": statuses})


def specs(
    question: dict[str, st.SearchStrategy[Any]], **option: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    """Specs with a question somewhere, and options whose ids may be there twice, or not at all."""
    options = st.lists(
        st.fixed_dictionaries({}, optional={"id": st.sampled_from("ab"), "label": texts, **option})
    )
    return st.fixed_dictionaries({}, optional={**question, "options": options})


polls = st.fixed_dictionaries({}, optional={"question": texts, "later": texts})


@settings(max_examples=25)
@given(objects(V1, specs({"poll": polls}, description=texts, later=texts)))
def test_v1_survives_v1alpha1(new: dict[str, Any]) -> None:
    """A stored object is unchanged after conversion to v1alpha1 and back."""
    before = deepcopy(new)
    old = convert(new, OLD)
    assert old["apiVersion"] == OLD
    assert old.get("spec", {}).keys() <= {"question", "options"}
    assert all(
        option.keys() <= {"id", "label"} for option in old.get("spec", {}).get("options", ())
    )
    assert convert(old, V1) == before == new


@settings(max_examples=25)
@given(objects(OLD, specs({"question": texts})))
def test_v1alpha1_survives_v1(old: dict[str, Any]) -> None:
    """An object is unchanged after conversion to v1 and back; only the annotation is added to the metadata."""
    before = deepcopy(old)
    new = convert(old, V1)
    assert "question" not in new.get("spec", {})
    assert convert(new, OLD) == before == old
    assert new["metadata"] == old["metadata"]


def vote(api_version: str, spec: Any, **annotations: str) -> dict[str, Any]:
    """A VoteConfig."""
    about = {"name": "pets"} | ({"annotations": annotations} if annotations else {})
    return {"apiVersion": api_version, "kind": "VoteConfig", "metadata": about, "spec": spec}


NEW = vote(
    V1,
    {
        "poll": {"question": "Which?"},
        "options": [
            {"id": "cats", "label": "Cats", "description": "Purr."},
            {"id": "dogs", "label": "Dogs", "description": "Bark."},
        ],
    },
)


def test_the_question_moves_and_descriptions_are_kept_aside() -> None:
    """`kubectl get voteconfigs.v1alpha1.voting.schoolofdevops.com` shows the converted object."""
    old = convert(NEW, OLD)
    assert old["spec"] == {
        "question": "Which?",
        "options": [{"id": "cats", "label": "Cats"}, {"id": "dogs", "label": "Dogs"}],
    }
    kept = {
        "options": [{"id": "cats", "description": "Purr."}, {"id": "dogs", "description": "Bark."}]
    }
    assert json.loads(old["metadata"]["annotations"][KEPT]) == kept


def test_an_edit_in_v1alpha1_keeps_the_other_descriptions() -> None:
    """Options are matched by id after one is removed, one is added, and the order is changed."""
    old = convert(NEW, OLD)
    old["spec"] = {
        "question": "Who?",
        "options": [{"id": "fish"}, {"id": "dogs", "label": "Hounds"}],
    }
    assert convert(old, V1) == vote(
        V1,
        {
            "poll": {"question": "Who?"},
            "options": [{"id": "fish"}, {"id": "dogs", "label": "Hounds", "description": "Bark."}],
        },
    )


def test_what_no_annotation_can_hold_stays_in_place() -> None:
    """The API server allows 256 KiB of annotations; v1alpha1 keeps fields that it lacks."""
    new = deepcopy(NEW)
    new["spec"]["poll"]["later"] = "?"
    new["spec"]["options"][1]["description"] = "Bark." * 60_000
    old = convert(new, OLD)
    assert "annotations" not in old["metadata"]
    assert old["spec"] == {
        "question": "Which?",
        "poll": {"later": "?"},
        "options": new["spec"]["options"],
    }
    assert convert(old, V1) == new


def test_an_id_of_a_wrong_type_is_no_id() -> None:
    """However deep it is; it can only be in the annotation."""
    deep = f'{{"options": [{{"id": {"[" * 1000}{"]" * 1000}}}]}}'
    old = vote(OLD, {"options": [{"id": "cats"}]}, **{KEPT: deep})
    assert convert(old, V1)["spec"] == old["spec"]


def test_objects_written_without_conversion_are_understood() -> None:
    """With strategy None the API server only changes `apiVersion`, and keeps the fields of the other version."""
    as_stored = vote(V1, {"question": "Which?", "options": [{"id": "cats"}]})
    assert convert(as_stored, OLD)["spec"] == as_stored["spec"]
    as_shown = vote(
        OLD, {"poll": {"question": "Which?"}, "options": [{"id": "cats", "description": "Purr."}]}
    )
    assert convert(as_shown, V1)["spec"] == as_shown["spec"]


@pytest.mark.parametrize(
    ("object", "desired", "message"),
    [
        (vote(OLD, "?"), V1, "spec: must be an object"),
        (vote(V1, {"poll": []}), OLD, "spec.poll: must be an object"),
        (vote(OLD, {"poll": []}), V1, "spec.poll: must be an object"),
        (vote(OLD, {"options": ["cats"]}), V1, "spec.options: must be a list of objects"),
        (
            vote(OLD, {"options": [{"id": "cats"}]}, **{KEPT: '{"options": {}}'}),
            V1,
            f"metadata.annotations[{KEPT}]: options: must be a list of objects",
        ),
        (vote(OLD, {}, **{KEPT: "{"}), V1, f"metadata.annotations[{KEPT}]: is not JSON: "),
        (
            vote(OLD, {}, **{KEPT: "[]"}),
            V1,
            f"metadata.annotations[{KEPT}]: must be a JSON object; remove it",
        ),
        (
            vote(V1, {}),
            "voting.schoolofdevops.com/v2",
            "VoteConfig has no version v2; it has v1, v1alpha1",
        ),
        (
            vote("voting.schoolofdevops.com/v3", {}),
            V1,
            "VoteConfig has no version v3; it has v1, v1alpha1",
        ),
        (
            vote(V1, {}),
            "example.com/v1",
            f"VoteConfig of {V1} cannot be converted to example.com/v1",
        ),
        (
            vote("example.com/v1", {}),
            "example.com/v2",
            "VoteConfig of example.com/v1 cannot be converted to example.com/v2",
        ),
        ({}, V1, f"None of None cannot be converted to {V1}"),
    ],
)
def test_a_failed_conversion_names_the_field(
    object: dict[str, Any], desired: str, message: str
) -> None:
    """The message names the field, or the existing versions."""
    with pytest.raises(ConversionError) as raised:
        convert(object, desired)
    assert str(raised.value).startswith(message)


def test_plans_get_the_stored_version() -> None:
    """The written version does not matter; kinds with one version are unchanged."""
    assert to_stored_version(vote(OLD, {"question": "Which?"})) == vote(
        V1, {"poll": {"question": "Which?"}}
    )
    for object in (NEW, {"apiVersion": "example.com/v1", "kind": "WebApp"}):
        assert to_stored_version(object) is object


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("v1alpha1", "spec.question, spec.options: must be set"),
        ("v1", "spec.poll.question, spec.options: must be set"),
        ("v3", "spec.poll.question, spec.options: must be set"),
    ],
)
def test_fields_are_called_as_they_were_written(version: str, said: str) -> None:
    """A message about the stored version gets the field names of the written one.

    Kinds with one version are unchanged.
    """
    stored_said = "spec.poll.question, spec.options: must be set"
    assert as_written(stored_said, "voting.schoolofdevops.com", version, "VoteConfig") == said
    assert as_written(stored_said, "example.com", version, "WebApp") == stored_said


def test_only_whole_names_of_fields_are_translated() -> None:
    """A field whose name only begins or ends alike is unchanged; nested paths are translated with their parent."""
    for text, said in {
        "spec.poll.questions": "spec.poll.questions",
        "data.spec.poll.question": "data.spec.poll.question",
        "spec.poll.question.text": "spec.question.text",
    }.items():
        assert as_written(text, "voting.schoolofdevops.com", "v1alpha1", "VoteConfig") == said
