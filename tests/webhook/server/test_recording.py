"""Recorded reviews: a sample, redacted, that `gatewright impact --reviews` can judge."""

import json
import logging

import pytest

from config.documents import DocumentError
from tests.webhook.server.conftest import review as sent
from webhook.harness.reviews import Admission, review
from webhook.server import recording
from webhook.server.recording import Recorder, redact

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "app",
        "managedFields": [{"manager": "kubectl"}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "shop"},
    },
    "spec": {
        "containers": [
            {
                "name": "app",
                "image": "a",
                "env": [{"name": "KEY", "value": "s3cret"}, {"name": "REF"}],
            }
        ]
    },
}
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "key"},
    "data": {"password": "czNjcmV0"},
}


def test_values_of_secrets_and_variables_are_not_recorded():
    """Names are kept because policies judge them; of the user only name and groups."""
    pod = json.loads(redact(review(Admission(POD, old_object=SECRET, operation="UPDATE"))))[
        "request"
    ]
    assert pod["object"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "app", "annotations": {"team": "shop"}},
        "spec": {
            "containers": [
                {
                    "name": "app",
                    "image": "a",
                    "env": [{"name": "KEY", "value": "redacted"}, {"name": "REF"}],
                }
            ]
        },
    }
    assert pod["oldObject"]["data"] == {"password": "redacted"}
    assert pod["userInfo"] == {"username": "kubernetes-admin", "groups": ["system:authenticated"]}


def test_a_share_of_the_reviews_is_recorded(tmp_path):
    """Each is a line appended to the file."""
    file = tmp_path / "reviews.jsonl"
    file.write_text("{}\n")
    draws = iter([0.05, 0.5, 0.0])
    recorder = Recorder(file, 0.1, lambda: next(draws))
    for _ in range(3):
        recorder.record(review(Admission(POD)))
    assert [json.loads(line).get("kind") for line in file.read_text().splitlines()] == [None] + [
        "AdmissionReview"
    ] * 2


def test_recording_stops_when_the_disk_is_full(tmp_path, monkeypatch, caplog):
    """It is logged once; reviews continue."""
    monkeypatch.setattr(recording, "MAX_BYTES", 1000)
    recorder = Recorder(tmp_path / "reviews.jsonl", 1.0)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            recorder.record(review(Admission(POD)))
    assert (tmp_path / "reviews.jsonl").read_text().count("\n") == 1
    assert [record.getMessage() for record in caplog.records] == [
        f"no more reviews are recorded in {tmp_path / 'reviews.jsonl'}: it has 1,000 bytes"
    ]


def test_a_file_that_cannot_be_written_is_an_error_at_the_start(tmp_path):
    """The process ends with the error, instead of recording nothing."""
    file = tmp_path / "none" / "reviews.jsonl"
    with pytest.raises(DocumentError) as error:
        Recorder(file, 1.0)
    assert (
        str(error.value) == f"{file}: reviews cannot be recorded there: No such file or directory"
    )


NESTED: dict = {}
for _ in range(300):
    NESTED = {"a": NESTED}


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(sent(object={"kind": "Pod", "metadata": {"name": "good"}, "a": NESTED})),
        json.dumps(sent()).replace('"name": "good"}}', '"name": "good"}, "n": ' + "9" * 4000 + "}"),
    ],
    ids=["300 levels", "an integer of 4000 digits"],
)
async def test_a_review_that_cannot_be_recorded_is_answered(start, tmp_path, body, caplog):
    """It is not in the file, and a log line reports it; the next one is recorded."""
    file = tmp_path / "reviews.jsonl"
    async with start(record=Recorder(file, 1.0).record) as webhook, webhook.connected() as wire:
        answers = [await wire.post(body.encode()), await wire.post(sent())]
    assert [(each.status, each.response["allowed"]) for each in answers] == [(200, True)] * 2
    assert [json.loads(line)["request"]["name"] for line in file.read_text().splitlines()] == [
        "good"
    ]
    (line,) = [each.getMessage() for each in caplog.records if "recorded" in each.getMessage()]
    assert line.startswith("a review was not recorded: ")


@pytest.mark.parametrize("existing", [False, True])
def test_the_file_is_private(tmp_path, existing):
    """It contains commands and annotations of all objects, so an existing readable file becomes private, too."""
    file = tmp_path / "reviews.jsonl"
    if existing:
        file.touch(0o644)
    Recorder(file, 1.0).record(review(Admission(POD)))
    assert oct(file.stat().st_mode)[-3:] == "600"


def test_values_of_custom_resources_are_not_recorded():
    """Environment variables by name, and the data of an AppConfig, which becomes a ConfigMap."""
    about = {"metadata": {"name": "app"}}
    job = {"apiVersion": "a.example/v1", "kind": "Job", **about, "spec": {"env": {"KEY": "s3cret"}}}
    config = {"apiVersion": "a.example/v1", "kind": "AppConfig", **about}
    config["spec"] = {"data": {"key": "s3cret"}}
    found = [json.loads(redact(review(Admission(each)))) for each in (job, config)]
    assert [each["request"]["object"]["spec"] for each in found] == [
        {"env": {"KEY": "redacted"}},
        {"data": {"key": "redacted"}},
    ]


async def test_a_review_without_a_matching_policy_is_not_recorded(start):
    """The controller's probe of the webhook is such a review."""
    recorded = []
    async with start(record=recorded.append) as webhook, webhook.connected() as wire:
        await wire.post(sent("good"))
        assert "patch" in (await wire.post(sent("bad"), path="/mutate")).response
        probes = {"group": "gatewright.io", "version": "v1alpha1"}
        kind, resource = probes | {"kind": "Probe"}, probes | {"resource": "probes"}
        await wire.post(sent("", kind=kind, resource=resource, operation="CONNECT", object=None))
    assert [json.loads(each)["request"]["name"] for each in recorded] == ["good"]
