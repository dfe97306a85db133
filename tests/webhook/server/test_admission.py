"""HTTP responses of the webhook to each kind of request."""

import asyncio
import gc
import json
import logging
import threading
import time
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from kube.errors import Unreachable
from kube.store import entry_of
from tests.waiting import WITHIN
from tests.webhook.server.conftest import LABELS, NAMES, bind, review, without_collector
from webhook.engine import (
    NAMESPACE_LABELS,
    NOW,
    Engine,
    PlannedChildren,
    PlannedObject,
    Planner,
    Planners,
    Policy,
    Request,
    Violation,
)
from webhook.engine.kinds import KINDS, POD
from webhook.engine.look_ups import LookUp
from webhook.server import protocol
from webhook.server.requests import is_light, route_of
from webhook.server.stored_objects import StoredObjects


@pytest.mark.parametrize(
    "path", ["/validate", "/validate-webapp", "/validate?timeout=3s", "/validate-a-b?timeout=3s"]
)
async def test_a_violation_is_denied_with_its_message(webhook, path):
    """Every path of the validating hook denies a violation."""
    answer = await webhook.post(review("bad"), path)
    assert answer.status == 200
    assert answer.response["uid"] == "u-1"
    assert answer.response["allowed"] is False
    assert answer.response["status"]["code"] == 403
    assert (
        "metadata.name: bad; objects must be good. Rename it."
        in answer.response["status"]["message"]
    )


@pytest.mark.parametrize("path", ["/mutate", "/mutate-webapp?timeout=1s"])
async def test_a_mutation_returns_a_patch(webhook, path):
    """Every path of the mutating hook patches and never validates."""
    response = (await webhook.post(review("bad"), path)).response
    assert response["allowed"] is True
    assert response["patchType"] == "JSONPatch"


async def test_each_hook_asks_its_own_policies(webhook):
    """If policies only mutate, or only validate, the other hook allows."""
    for policy, patched, allowed in ((LABELS, True, True), (NAMES, False, False)):
        webhook.policies.engine = Engine([bind(policy)])
        assert ("patch" in (await webhook.post(review("bad"), "/mutate")).response) is patched
        assert (await webhook.post(review("bad"))).response["allowed"] is allowed


async def test_each_hook_looks_up_what_its_own_policies_need(start):
    """A mutation does not wait for what the validation of its object needs."""
    asked = []

    def services(about):
        asked.append(about.name)
        return []

    engine = Engine([bind(replace(NAMES, needs=("services",))), bind(LABELS)])
    async with start(engine, look_ups={"services": services}) as webhook:
        assert "patch" in (await webhook.post(review("bad"), "/mutate")).response
        assert asked == []
        assert not (await webhook.post(review("bad"))).response["allowed"]
        assert asked == ["bad"]


async def test_the_room_for_bodies_is_free_again(webhook):
    """The room is freed after each response: 40 MiB in sequence do not count as concurrent reviews."""
    body = b"{" + b" " * 8_000_000
    async with webhook.connected() as wire:
        assert [(await wire.post(body)).status for _ in range(5)] == [400] * 5


async def test_a_good_object_is_allowed_over_one_connection(webhook):
    """Consecutive reviews use the same connection."""
    async with webhook.connected() as wire:
        for _ in range(3):
            answer = await wire.post(review())
            assert (answer.status, answer.response) == (200, {"uid": "u-1", "allowed": True})
            assert "connection" not in answer.headers


async def test_the_response_hides_the_server_software(webhook):
    """The Server header has no version."""
    assert (await webhook.post(review())).headers["server"] == "gatewright"
    assert (await webhook.post(b"", "/nowhere")).headers["server"] == "gatewright"


DEEP = b"[" * 100_000
BAD_BODIES = [
    (b"", "the body is not JSON"),
    (b"{", "the body is not JSON"),
    (json.dumps(review()).encode()[:-10], "the body is not JSON"),
    (b"\xff\xfe{", "the body is not JSON"),
    ("{}".encode("utf-16"), "the body is not JSON"),
    (b'{"a": NaN}', "the body is not JSON"),
    (b'{"x":' + DEEP, "the body is not JSON"),
    (b'{"x":' + DEEP + b"]" * 100_000, "the body is not JSON"),
    (b"null", "the body: Expected `object`"),
    (b"[]", "the body: Expected `object`"),
    (b"{}", "only admission.k8s.io/v1 AdmissionReview is answered"),
    (
        b'{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview"}',
        "only admission.k8s.io/v1",
    ),
    (b'{"apiVersion": "v1", "kind": "Status"}', "only admission.k8s.io/v1"),
    (b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}', "request: missing"),
    (
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": null}',
        "request: missing",
    ),
    (json.dumps(review(uid="")).encode(), "request.uid"),
    (json.dumps(review(uid=7)).encode(), "request.uid"),
    (json.dumps(review(uid="x" * 1_000_000)).encode(), "request.uid"),
]


async def test_a_body_that_is_no_review_gets_400(webhook):
    """The text has the reason, and the webhook keeps serving."""
    for body, text in BAD_BODIES:
        async with webhook.connected() as wire:
            answer = await wire.post(body)
            assert answer.status == 400, body[:200]
            assert text in answer.body.decode()
            assert len(answer.body) < 500
            assert (await wire.post(review())).response["allowed"]


MALFORMED = [
    {"operation": "PATCH"},
    {"operation": None},
    {"kind": None},
    {"kind": {"kind": "Pod"}},
    {"resource": "pods"},
    {"object": None},
    {"object": "a pod"},
    {"object": []},
    {"object": {"kind": "Secret"}},
    {"userInfo": "jane"},
]


async def test_a_malformed_request_is_denied_with_400(webhook):
    """A request with a uid gets HTTP 200 and a denial."""
    for malformed in MALFORMED:
        answer = await webhook.post(review(**malformed))
        assert answer.status == 200, malformed
        assert answer.response["allowed"] is False, malformed
        assert answer.response["status"]["code"] == 400, malformed
        assert answer.response["uid"] == "u-1", malformed


HEADERS = [
    ({"Content_Type": "text/plain"}, 415),
    ({"Content_Type": "application/yaml"}, 415),
    ({"Content_Type": ""}, 415),
    ({"Content_Type": "application/json; charset=utf-8"}, 200),
    ({"Content_Encoding": "gzip"}, 415),
    ({"Content_Encoding": "identity"}, 415),
]


async def test_only_plain_json_is_accepted(webhook):
    """The content type may have parameters; compressed bodies are rejected."""
    for headers, status in HEADERS:
        assert (await webhook.post(review(), **headers)).status == status, headers


async def test_another_method_gets_405(webhook):
    """The Allow header has POST."""
    for method in ("GET", "PUT", "DELETE", "OPTIONS"):
        async with webhook.connected() as wire:
            await wire.send(f"{method} /validate HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            answer = await wire.answer()
        assert (answer.status, answer.headers["allow"]) == (405, "POST"), method


@pytest.mark.parametrize(
    ("path", "hook"),
    [
        ("/validate", "validate"),
        ("/validate-webapp", "validate"),
        ("/mutate-x?timeout=3s", "mutate"),
        ("/validate-", None),
        ("/validate/", None),
        ("/validate-a/b", None),
        ("//validate", None),
        ("/validate/..;/x", None),
        ("/%76alidate", None),
        ("/validatex", None),
        ("/", None),
        ("*", None),
    ],
)
def test_paths_are_compared_exactly(path, hook):
    """They are not normalized."""
    route = route_of(path)
    assert (route and route.hook) == hook


async def test_any_other_path_gets_404(webhook):
    """Only the hooks are served on this port."""
    for path in ("/", "//validate", "/validate/..;/x", "/%76alidate", "/metrics", "/healthz"):
        assert (await webhook.post(review(), path)).status == 404, path


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("?timeout=10s", 9.0),
        ("?timeout=0.5s", 0.45),
        ("?a=1&timeout=60s&b=2", 27.0),
        ("?timeout=500ms", 9.0),
        ("?timeout=2.5s", 2.25),
        ("", 9.0),
        ("?timeout=0s", 9.0),
        ("?timeout=-1s", 9.0),
        ("?timeout=abc", 9.0),
        ("?timeout=9999999h", 9.0),
        ("?timeout=3s&timeout=8s", 2.7),
    ],
)
def test_the_api_servers_time_out_is_used(query, seconds):
    """A tenth is reserved for the response; an invalid value means the default."""
    assert route_of(f"/validate{query}").seconds == pytest.approx(seconds)


LIMIT = 8 * 1024 * 1024


@pytest.fixture
def brisk(monkeypatch):
    """Shorten the wait for the rest of a rejected body."""
    monkeypatch.setattr(protocol, "LINGER_SECONDS", 0.1)


@pytest.mark.usefixtures("brisk")
@pytest.mark.parametrize(
    ("size", "status"), [(LIMIT - 1, 200), (LIMIT, 200), (LIMIT + 1, 413), (9 * 1024 * 1024, 413)]
)
async def test_the_largest_body_is_8_mib(webhook, size, status):
    """One byte more is rejected."""
    whole = json.dumps(review())
    body = (whole + " " * (size - len(whole))).encode()
    async with webhook.connected() as wire:
        assert (await wire.post(body)).status == status


@pytest.mark.long
@pytest.mark.usefixtures("brisk")
async def test_the_bodies_of_one_address_leave_room_for_another_address(start):
    """If an address has no room for another body, the body is read after others have ended."""
    head = b"POST /validate?timeout=%ds HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += b"Content-Length: 8000000\r\n\r\n"
    whole = json.dumps(review()).encode().ljust(8_000_000)
    async with start() as webhook, AsyncExitStack() as stack:
        held = [await stack.enter_async_context(webhook.connected()) for _ in range(2)]
        for wire in held:
            await wire.send(head % 10 + b" ")
        await webhook.until_counted(
            len(held), "controller_runtime_webhook_requests_in_flight", webhook="validate"
        )
        waiting, late = [await stack.enter_async_context(webhook.connected()) for _ in range(2)]
        late.writer.write(head % 1 + whole)
        answer = await late.answer()
        assert answer.status == 503
        assert answer.body == b"not judged within 0.9 s, which is when the API server gives up\n"
        waiting.writer.write(head % 10 + whole)
        async with webhook.connected(address="127.0.0.2") as wire:
            assert (await wire.post(json.dumps(review()).encode() + b" " * 7_000_000)).status == 200
        held[0].writer.transport.abort()
        assert (await waiting.answer()).status == 200


async def test_the_time_for_an_answer_begins_with_the_head(webhook):
    """The API server counts the time in which the body is sent, too."""
    body = json.dumps(review()).encode()
    head = b"POST /validate?timeout=0.01s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    async with webhook.connected() as wire:
        await wire.send(head + b"Content-Length: %d\r\n\r\n" % len(body))
        await webhook.until_counted(
            1, "controller_runtime_webhook_requests_in_flight", webhook="validate"
        )
        await asyncio.sleep(0.01)  # all of the time
        await wire.send(body)
        answer = await wire.answer()
    assert answer.status == 503
    assert answer.body == b"not judged within 0.009 s, which is when the API server gives up\n"


@pytest.mark.usefixtures("brisk")
async def test_a_chunked_body_is_rejected(webhook):
    """The API server always sends a Content-Length."""
    head = b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked"
    async with webhook.connected() as wire:
        await wire.send(head + b"\r\n\r\n1\r\n{\r\n")
        answer = await wire.answer()
        assert (answer.status, answer.body) == (
            411,
            b"the body must be sent with its Content-Length\n",
        )
        assert await wire.ended()


def many_values(**request):
    """Encode a review of a pod with half a million values."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "good"}, "many": [{}] * 500_000}
    return json.dumps(review(object=pod, **request), separators=(",", ":")).encode()


@pytest.mark.usefixtures("brisk")
async def test_too_many_values_are_rejected(webhook):
    """A megabyte of empty objects takes a hundred megabytes when decoded."""
    answer = await webhook.post(many_values())
    assert (answer.status, answer.body) == (413, b"a review may have at most 500,000 values\n")


@pytest.mark.usefixtures("brisk")
async def test_an_object_without_policies_is_not_decoded(webhook):
    """It may have any number of values and is allowed."""
    config_maps = {"group": "", "version": "v1", "resource": "configmaps"}
    answer = await webhook.post(many_values(resource=config_maps))
    assert (answer.status, answer.response) == (200, {"uid": "u-1", "allowed": True})
    verdict = {"webhook": "validate", "operation": "CREATE", "verdict": "allowed"}
    assert webhook.counted("gatewright_admission_reviews_total", **verdict) == 1


@pytest.mark.usefixtures("brisk")
async def test_a_large_content_length_is_rejected_before_the_body(webhook):
    """A client need not send a gigabyte to get the error."""
    async with webhook.connected() as wire:
        answer = await wire.post(b"", Content_Length="1000000000")
        assert answer.status == 413
        assert answer.headers["connection"] == "close"
        assert await wire.ended()


@pytest.mark.usefixtures("brisk")
async def test_expect_100_continue_is_rejected(webhook):
    """The client repeats the request with its body; curl does so automatically."""
    head = b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9000000"
    async with webhook.connected() as wire:
        await wire.send(head + b"\r\nExpect: 100-continue\r\n\r\n")
        assert (await wire.answer()).status == 417
        assert await wire.ended()


@pytest.mark.parametrize(
    "head",
    [
        b"POST /validate HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /validate HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /validate HTTP/1.1\r\nX: " + b"x" * 9000 + b"\r\n\r\n",
        b"POST /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x00\x01\x02\x03\r\n\r\n",
    ],
)
async def test_an_invalid_http_request_closes_the_connection(webhook, head, caplog):
    """The parser's error is answered in one line, without a traceback in the log."""
    async with webhook.connected() as wire:
        await wire.send(head)
        answer = await wire.answer()
        assert answer.status == 400
        assert await wire.ended()
    assert not [record for record in caplog.records if record.exc_info]


async def test_before_the_policies_are_loaded_nothing_is_allowed(start):
    """A review gets 503 with Retry-After."""
    async with start(engine=None) as webhook:
        answer = await webhook.post(review())
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        webhook.policies.engine = Engine([bind(NAMES)])
        assert (await webhook.post(review("bad"))).response["allowed"] is False


async def test_a_policy_error_denies_without_details(start):
    """With Fail, the denial has code 500 and the policy's name, not the exception's text."""
    async with start() as webhook:
        response = (await webhook.post(review("broken"))).response
    assert response["status"]["code"] == 500
    assert "names" in response["status"]["message"]
    assert "secret of life" not in json.dumps(response)


async def test_a_policy_error_with_ignore_warns(start):
    """The request is allowed with a warning."""
    async with start(Engine([bind(NAMES, fails_closed=False)])) as webhook:
        response = (await webhook.post(review("broken"))).response
    assert response["allowed"] is True
    assert "names" in response["warnings"][0]


def by_labels(request, _):
    """Report namespaces labelled production."""
    if request.lookup(NAMESPACE_LABELS).get("environment") == "production":
        yield Violation("metadata.namespace", "production", "nothing may be made there", "go away")


LABELLED = Engine([bind(Policy("labelled", validate=by_labels, needs=(NAMESPACE_LABELS,)))])


async def test_namespace_labels_are_looked_up_for_the_policies_that_need_them(start):
    """The look-up runs once, and the policy sees its result."""
    asked = []

    async def look_up(about):
        asked.append(about.namespace)
        return {"environment": "production"}

    async with start(LABELLED, look_ups={NAMESPACE_LABELS: look_up}) as webhook:
        assert (await webhook.post(review())).response["status"]["code"] == 403
    assert asked == ["shop"]


async def test_look_ups_of_children_run_once(start):
    """Policies for children have their look-ups; mutating the parent uses none of them."""
    asked = []

    def look_up(name, found):
        async def looked_up(about):
            asked.append((name, about.kind))
            return found

        return looked_up

    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "it"}}
    planned = PlannedChildren([PlannedObject(KINDS["", "Service"], service)])
    planner = Planner(POD, (KINDS["", "Service"],), lambda pod, now, served: planned)
    policy = Policy("labelled", validate=by_labels, kinds=("Service",), needs=(NAMESPACE_LABELS,))
    engine = Engine([bind(policy)], Planners([planner]))
    look_ups = {
        NAMESPACE_LABELS: look_up("labels", {"environment": "production"}),
        NOW: look_up("now", None),
    }
    async with start(engine, look_ups=look_ups) as webhook:
        assert (await webhook.post(review(), "/mutate")).response["allowed"] is True
        assert asked == []
        status = (await webhook.post(review())).response["status"]
    assert sorted(asked) == [("labels", "Pod"), ("now", "Pod")]
    assert status["message"] == (
        "1 violation\n- labelled: Service/it: metadata.namespace: production; nothing may be made there. Go away."
    )


async def fails(_):
    """Fail like an unreachable API server."""
    raise Unreachable("connection refused")


async def hangs(_):
    """Never return."""
    await asyncio.Event().wait()


LARGE = ["x"] * 4000


class Slow:
    """Return an engine that judges pods named slow only when the test allows it."""

    def __init__(self, *, tenants=False):
        self.begun, self.released = threading.Event(), threading.Event()
        policy = bind(Policy("slow", validate=self.judge, kinds="pods"))
        own = bind(Policy("own", validate=lambda request, params: iter(()), kinds="pods"))
        rule = replace(own, namespace="shop", size=64, evaluates=True)
        self.engine = Engine([policy, rule] if tenants else [policy])

    def judge(self, request, _):
        """Wait for the test."""
        if request.name == "slow":
            self.begun.set()
            assert self.released.wait(20)
        yield from ()

    async def reached(self, webhook):
        """Send a large review, and return once it is being judged."""
        large = asyncio.create_task(webhook.post(review("slow", padding=LARGE)))
        await asyncio.to_thread(self.begun.wait, 20)
        return large


async def test_a_large_review_does_not_delay_others(start):
    """It is judged in a thread: an object of a megabyte may take seconds."""
    slow = Slow()
    async with start(slow.engine) as webhook:
        large = await slow.reached(webhook)
        assert (await webhook.post(review())).response["allowed"]
        assert not large.done()
        slow.released.set()
        assert (await large).response["allowed"]


async def test_a_review_by_a_rule_of_a_tenant_does_not_delay_others(start):
    """It is judged in the thread, however small its object is; reviews of other namespaces are not."""
    slow = Slow(tenants=True)
    async with start(slow.engine) as webhook:
        small = asyncio.create_task(webhook.post(review("slow", namespace="shop")))
        await asyncio.to_thread(slow.begun.wait, 20)
        assert (await webhook.post(review(namespace="lab"))).response["allowed"]
        assert not small.done()
        slow.released.set()
        assert (await small).response["allowed"]


async def test_a_review_with_large_looked_up_objects_does_not_delay_others(start):
    """They are decoded when a policy reads them, in the thread if they are large."""
    begun, released = threading.Event(), threading.Event()

    class Slow(dict):
        """A shape that waits for the test."""

        def __init__(self, object, _):
            begun.set()
            assert released.wait(20)
            super().__init__(object)

    object = {"metadata": {"name": "l", "uid": "1", "resourceVersion": "1"}, "spec": "x" * 70_000}
    found = StoredObjects(LookUp((), Slow), [entry_of(object)])
    policy = Policy(
        "limits",
        validate=lambda request, _: (each for each in request.lookup("limits") if not each),
        kinds="pods",
        needs=("limits",),
    )
    engine = Engine([replace(bind(policy), namespace="shop")])
    async with start(engine, look_ups={"limits": lambda _: found}) as webhook:
        large = asyncio.create_task(webhook.post(review(namespace="shop")))
        await asyncio.to_thread(begun.wait, 20)
        assert (await webhook.post(review(namespace="lab"))).response["allowed"]
        assert not large.done()
        released.set()
        assert (await large).response["allowed"]


async def test_a_large_review_is_not_answered_after_its_deadline(start):
    """One is judged at a time; queued ones wait until the API server's timeout and get no verdict."""
    slow = Slow()
    async with start(slow.engine) as webhook:
        large = await slow.reached(webhook)
        answer = await webhook.post(review(padding=LARGE), "/validate?timeout=0.01s")
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.body == b"not judged within 0.009 s, which is when the API server gives up\n"
        slow.released.set()
        assert (await large).response["allowed"]


MANY = {f"f:{number}": {} for number in range(1000)}


@pytest.mark.parametrize(
    ("object", "light"),
    [
        ({"metadata": {"managedFields": [{"fieldsV1": MANY}]}}, True),
        ({"spec": {"containers": [{}] * 240}}, True),
        ({"spec": {"containers": [{}] * 260}}, False),
        ({"metadata": {"finalizers": ["a"] * 4000}}, False),
        ({"metadata": {"annotations": {"a": "x" * 300_000}}}, False),
    ],
    ids=["managed fields", "containers", "more containers", "values", "size"],
)
def test_only_reviews_that_are_soon_judged_are_judged_on_the_event_loop(object, light):
    """The cost depends on list items, such as containers, on the number of values, and on the size."""
    assert is_light(json.dumps(review(object=object), separators=(",", ":")).encode()) is light


def takes_its_time(_, __):
    """Return no violations, late."""
    time.sleep(0.002)
    yield from ()


async def test_a_late_verdict_is_an_error_and_never_an_allow(start):
    """The API server may have given up and applied the webhook's failurePolicy."""
    async with start(
        Engine([bind(Policy("slow", validate=takes_its_time, kinds="pods"))])
    ) as webhook:
        assert (await webhook.post(review(), "/validate?timeout=0.001s")).status == 503


@pytest.mark.parametrize(
    ("look_ups", "seconds"),
    [({}, 10), ({NAMESPACE_LABELS: fails}, 10), ({NAMESPACE_LABELS: hangs}, 0.5)],
)
async def test_unavailable_labels_are_an_error(start, look_ups, seconds):
    """The policy's failurePolicy (Fail) decides, within the API server's time-out."""
    async with start(LABELLED, look_ups=look_ups) as webhook, asyncio.timeout(WITHIN):
        response = (await webhook.post(review(), f"/validate?timeout={seconds}s")).response
    assert response["allowed"] is False
    assert response["status"]["code"] == 500
    assert "could not be looked up" in response["status"]["message"]


async def breaks(_):
    """Raise an unexpected exception."""
    raise RuntimeError("the secret of life")


async def test_an_internal_error_is_http_500(start, caplog):
    """The API server's failurePolicy decides; the log has the traceback, the response no details."""
    async with start(LABELLED, look_ups={NAMESPACE_LABELS: breaks}) as webhook:
        answer = await webhook.post(review())
        assert (answer.status, answer.body) == (500, b"internal error\n")
        assert (
            webhook.counted(
                "controller_runtime_webhook_requests_total", webhook="validate", code="500"
            )
            == 1
        )
    assert [
        record.exc_info is not None for record in caplog.records if record.levelname == "ERROR"
    ] == [True]


async def test_decisions_are_counted(webhook):
    """Reviews are counted by decision, requests by code; no client data becomes a label."""
    for name in ("good", "bad", "broken"):
        await webhook.post(review(name))
    await webhook.post(review(operation="x" * 50))
    await webhook.post(review(), "/mutate-some-path")
    await webhook.post(b"{")
    await webhook.post(b"{", "/nowhere")
    decided = {
        tuple(sample.labels.values()): sample.value
        for family in webhook.registry.collect()
        for sample in family.samples
        if sample.name == "gatewright_admission_reviews_total"
    }
    assert decided == {
        ("validate", "CREATE", "allowed"): 1,
        ("validate", "CREATE", "denied"): 1,
        ("validate", "CREATE", "error"): 1,
        ("validate", "other", "malformed"): 1,
        ("mutate", "CREATE", "patched"): 1,
    }
    assert (
        webhook.counted("controller_runtime_webhook_requests_total", webhook="validate", code="200")
        == 4
    )
    assert (
        webhook.counted("controller_runtime_webhook_requests_total", webhook="validate", code="400")
        == 1
    )
    assert (
        webhook.counted("controller_runtime_webhook_latency_seconds_count", webhook="mutate") == 1
    )
    assert webhook.counted("controller_runtime_webhook_requests_in_flight", webhook="validate") == 0
    assert (
        webhook.counted("gatewright_policy_findings_total", policy="names", finding="denied") == 1
    )


async def test_an_existing_violation_is_counted_as_tolerated(webhook):
    """An update that makes nothing worse is allowed with a warning."""
    update = review("bad")["request"]
    response = (
        await webhook.post(review("bad", operation="UPDATE", oldObject=update["object"]))
    ).response
    assert response["allowed"] is True
    assert response["warnings"]
    assert (
        webhook.counted("gatewright_policy_findings_total", policy="names", finding="tolerated")
        == 1
    )
    decided = {"webhook": "validate", "operation": "UPDATE", "verdict": "warned"}
    assert webhook.counted("gatewright_admission_reviews_total", **decided) == 1


async def test_a_denial_is_one_log_line_without_the_object(webhook, caplog):
    """It has user, object name, namespace and policies; nothing else of the object."""
    caplog.set_level(logging.INFO, "gatewright")
    secret = {"kind": "Pod", "metadata": {"name": "bad", "annotations": {"token": "hunter2"}}}
    await webhook.post(review("bad", object=secret))
    await webhook.post(review("good"))
    (line,) = [record for record in caplog.records if record.name == "gatewright.webhook"]
    assert line.getMessage() == "denied"
    assert line.fields | {"ms": 0} == {
        "uid": "u-1",
        "operation": "CREATE",
        "kind": "Pod",
        "subresource": "",
        "namespace": "shop",
        "name": "bad",
        "user": "jane",
        "dry_run": False,
        "webhook": "validate",
        "policies": {"names": "denied"},
        "ms": 0,
    }
    assert "hunter2" not in str(vars(line))


@pytest.mark.parametrize("path", ["/validate", "/mutate"])
async def test_an_answered_review_is_freed_without_the_garbage_collector(start, path):
    """The collector runs rarely, and a review takes tens of kilobytes."""
    policies = (
        Policy("reads", validate=reads, kinds="pods"),
        Policy("writes", mutate=writes, kinds="pods"),
    )
    async with start(Engine(map(bind, policies))) as webhook:
        with without_collector():
            assert (await webhook.post(review(), path)).response["allowed"]
            assert not any(isinstance(each, Request) for each in gc.get_objects())


def reads(request, _):
    """Read every container and image; return no violations."""
    yield from [] * len([*request.containers(), *request.images()])


def writes(request, _):
    """Read every container; change nothing."""
    yield from [] * len(list(request.containers()))
