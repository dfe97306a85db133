"""A policy counts as enforced only if it denied a dry run; nothing is stored, and the requests are bounded."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from config.documents import Document
from controller.registration.enforcement import (
    MAX_AT_ONCE,
    MAX_GONE,
    MAX_REQUESTS,
    REQUEST,
    EnforcementProbe,
)
from controller.registration.enforcement_answers import ProbeRequest, judge, read_answer
from gatewright.processes.denied_requests import denied_requests
from gatewright.testing.fake_apiserver import FakeApiServer
from kube.client import Client
from kube.errors import TERMINATING, error_for
from kube.resource import Resource
from webhook.engine import BoundPolicy, Engine
from webhook.engine.kinds import KINDS, Kind
from webhook.harness.violating import DeniedRequest
from webhook.messages import MORE
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import read

NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
EXISTING = ("default", "kube-node-lease", "kube-public", "kube-system")
DEPLOYMENT, STATEFUL_SET = KINDS["apps", "Deployment"], KINDS["apps", "StatefulSet"]


def policies(*names: str, **spec: Any) -> tuple[BoundPolicy, ...]:
    """Return policies of these names in force."""
    documents = [
        Document(
            "p.yaml",
            {
                "apiVersion": "gatewright.io/v1alpha1",
                "kind": "ClusterAdmissionPolicy",
                "metadata": {"name": name},
                "spec": {"policy": "replica-limits", **spec},
            },
        )
        for name in names
    ]
    return read(documents, catalogue()).policies


(LIMITS,) = policies("limits")
SENT = DeniedRequest(DEPLOYMENT, "shop", {})
NEVER = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
HOOK = 'admission webhook "%s" denied the request: 1 violation'


def status(message: str, reason: str = "Forbidden", *causes: str) -> dict[str, Any]:
    """Return a Status of the API server."""
    details = {"causes": [{"reason": each} for each in causes]}
    return {"kind": "Status", "reason": reason, "message": message, "details": details}


def gone(reason: str, kind: str, *causes: str) -> dict[str, Any]:
    """Return the Status of a request in a namespace that is gone, or being deleted."""
    found = status("its namespace", reason, *causes)
    return {**found, "details": {**found["details"], "kind": kind}}


RBAC = (
    'deployments.apps is forbidden: User "x" cannot create resource "deployments" in API group '
    '"apps" in the namespace "shop"'
)


@pytest.mark.parametrize(
    ("code", "answer", "expected"),
    [
        (403, status(HOOK % "validate.gatewright.io", "Forbidden", "limits"), ("True", "Denied")),
        (403, status(HOOK % "validate-2.gatewright.io", "", "a", "limits"), ("True", "Denied")),
        (403, status(HOOK % "validate.gatewright.io", "", "other"), ("False", "NotDenied")),
        (
            403,
            status(HOOK % "validate-ignore.gatewright.io", "", "other"),
            ("Unknown", "DeniedFirst"),
        ),
        (500, status(HOOK % "validate.gatewright.io", "InternalError"), ("Unknown", "DeniedFirst")),
        (403, status(HOOK % "kyverno.svc", "", "limits"), ("Unknown", "DeniedFirst")),
        (
            400,
            status(HOOK % "gatewright.io.evil.example", "", "limits"),
            ("Unknown", "DeniedFirst"),
        ),
        (403, status(RBAC), ("Unknown", "Forbidden")),
        (403, status("exceeded quota"), ("Unknown", "Forbidden")),
        (404, status('namespaces "shop" not found', "NotFound"), ("Unknown", "NotFound")),
        (404, gone("NotFound", "namespaces"), ("Unknown", "NamespaceGone")),
        (403, gone("Forbidden", "deployments", TERMINATING), ("Unknown", "NamespaceGone")),
        (409, status("it exists", "AlreadyExists"), ("Unknown", "AlreadyExists")),
        (422, status("invalid", "Invalid"), ("Unknown", "Invalid")),
        (429, status("slow down", "TooManyRequests"), ("Unknown", "TooManyRequests")),
        (500, status("failed calling webhook", "InternalError"), ("Unknown", "InternalError")),
        (503, None, ("Unknown", "Unknown")),
    ],
)
def test_only_a_denial_by_the_policy_proves_it(code, answer, expected):
    """Any other error leaves it unknown, unless its own webhook denied without it."""
    assert judge(LIMITS, read_answer(error_for(code, answer)), SENT)[:2] == expected


def test_a_missing_right_is_named():
    """The message says which right the controller lacks."""
    found = judge(LIMITS, read_answer(error_for(403, status(RBAC))), SENT)
    assert found.message.startswith("the controller may not create deployments in namespace shop: ")


@dataclass
class Measuring:
    """A probe of policies at the in-memory API server, which has no admission."""

    server: FakeApiServer
    client: Client
    engine: Engine = field(default_factory=lambda: Engine([LIMITS]))
    now: float = 0.0
    changed: list[str] = field(default_factory=list)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    seconds_to_find: float = 0.0
    selectors: list[Any] = field(default_factory=list)
    tried: int = 0
    request: Callable[[BoundPolicy], ProbeRequest] | None = None
    """What returns the request of a policy; None: as they are found."""

    def _find(self, policy: BoundPolicy, *given: Any) -> ProbeRequest | None:
        self.now += self.seconds_to_find
        self.tried += 1
        if self.request is not None:
            return self.request(policy)
        return denied_requests(tuple)(policy, *given)

    def __post_init__(self) -> None:
        self.probe = EnforcementProbe(
            self.client,
            lambda: self.engine,
            self._find,
            lambda: self.selectors,
            self.registry,
            excluded_namespaces=EXISTING,
            on_changed=self.changed.extend,
            clock=lambda: self.now,
        )

    async def after(self, seconds: float) -> tuple[str, str] | None:
        """Reconcile after this time; return status and reason."""
        self.now += seconds
        await self.probe.reconcile(REQUEST)
        found = self.probe.of("limits")
        return None if found is None else found[:2]

    def gauge(self) -> float | None:
        """Return the exported value."""
        return self.registry.get_sample_value("gatewright_policy_enforced", {"policy": "limits"})

    def statuses(self) -> Counter[str]:
        """Return how many policies have each status."""
        found = (self.probe.of(each.title) for each in self.engine.policies)
        return Counter("" if each is None else each.status for each in found)

    def answer(self, code: int, answer: dict[str, Any] | None = None, path: str = "") -> None:
        """Answer so to all dry runs from now on, or to those of a path."""
        garbage = None if answer is None else json.dumps(answer)
        self.server.fail(100_000, code, method="POST", path=path, garbage=garbage)

    def sent(self) -> float:
        """Return the number of dry runs."""
        values = (
            self.registry.get_sample_value(
                "gatewright_enforcement_requests_total", {"status": status}
            )
            for status in ("True", "False", "Unknown")
        )
        return sum(filter(None, values))


@pytest.fixture
async def measuring() -> AsyncIterator[Measuring]:
    """A probe, with one namespace that is sent to webhooks."""
    async with FakeApiServer() as server, Client(server.endpoint) as client:
        server.create(NAMESPACE, {"metadata": {"name": "shop"}})
        yield Measuring(server, client)


async def test_what_is_admitted_twice_is_not_enforced(measuring):
    """A new policy is measured after 30 s, in which it reaches every webhook; nothing is ever stored."""
    assert await measuring.after(0) is None
    assert await measuring.after(29) is None
    assert measuring.sent() == 0
    assert await measuring.after(1) is None
    assert measuring.changed == []
    assert await measuring.after(10) == ("False", "Admitted")
    assert (measuring.changed, measuring.gauge(), measuring.sent()) == (["limits"], 0, 2)
    assert await measuring.after(10) == ("False", "Admitted")
    assert measuring.sent() == 2
    assert measuring.server.list(DEPLOYMENT.resource) == []


@pytest.mark.parametrize("code", [403, 404, 409, 422, 429, 500, 503])
async def test_an_error_of_the_api_server_is_unknown(measuring, code):
    """It is never enforced."""
    measuring.server.fail(2, code, method="POST")
    await measuring.after(0)
    await measuring.after(60)
    found = await measuring.after(10)
    assert found is not None
    assert (found[0], measuring.gauge()) == ("Unknown", -1)


async def test_a_namespace_that_is_gone_is_replaced(measuring):
    """The request is derived again, for another namespace."""
    await measuring.after(0)
    await measuring.after(60)
    measuring.server.delete(NAMESPACE, "shop")
    await measuring.after(10)
    assert await measuring.after(60) == ("Unknown", "NoRequest")
    measuring.server.create(NAMESPACE, {"metadata": {"name": "new"}})
    await measuring.after(60)
    assert await measuring.after(10) == ("False", "Admitted")


async def test_a_namespace_that_is_being_deleted_is_replaced(measuring):
    """No alarm, however often it happens between the list and the dry run; but not for ever."""
    measuring.server.create(NAMESPACE, {"metadata": {"name": "zoo"}})
    await measuring.after(0)
    await measuring.after(60)
    await measuring.after(10)
    measuring.changed.clear()
    dying = gone("Forbidden", "deployments", TERMINATING)
    measuring.server.fail(MAX_GONE, 403, method="POST", garbage=json.dumps(dying))
    await measuring.after(60)
    for _ in range(MAX_GONE):
        assert await measuring.after(10) == ("False", "Admitted")
    assert measuring.changed == []
    measuring.server.fail(100, 403, method="POST", garbage=json.dumps(dying))
    await measuring.after(60)
    for _ in range(MAX_GONE + 1):
        found = await measuring.after(10)
    assert (found, measuring.changed) == (("Unknown", "NamespaceGone"), ["limits"])


async def test_a_namespace_that_is_gone_says_nothing_about_others(measuring):
    """A policy that is measured in several namespaces has the result of those that exist."""
    measuring.selectors = [lambda labels: "team" in labels]
    measuring.server.create(NAMESPACE, {"metadata": {"name": "zoo", "labels": {"team": "a"}}})
    await measuring.after(0)
    await measuring.after(60)
    await measuring.after(10)
    assert measuring.sent() == 4
    dying = gone("NotFound", "namespaces")
    measuring.server.fail(1, 404, method="POST", garbage=json.dumps(dying))
    measuring.changed.clear()
    assert await measuring.after(60) == ("False", "Admitted")
    assert (measuring.changed, measuring.sent()) == ([], 6)


async def test_a_request_without_an_answer_is_sent_again_as_it_is(measuring):
    """Finding others takes time, in which an outage is not reported."""
    many(measuring, 2)
    measuring.server.fail(100, 500, method="POST")
    await measuring.after(0)
    for _ in range(6):
        await measuring.after(60)
    assert measuring.statuses() == {"Unknown": 2}
    assert measuring.tried == 2


async def test_a_policy_that_denies_nothing_has_no_result(measuring):
    """A policy that only warns is not measured; its old result goes."""
    await measuring.after(0)
    await measuring.after(60)
    await measuring.after(10)
    assert measuring.gauge() == 0
    measuring.engine = Engine(policies("limits", validationActions=["Warn"]))
    assert await measuring.after(60) is None
    assert measuring.gauge() is None


def many(measuring: Measuring, number: int, kind: Kind = DEPLOYMENT) -> list[str]:
    """Add this many policies, each with a request of its own; return their titles."""
    titles = [f"{kind.plural}-{each}" for each in range(number)]
    known = () if measuring.engine.policies == (LIMITS,) else measuring.engine.policies
    measuring.engine = Engine([*known, *(replace(LIMITS, name=title) for title in titles)])

    def request(policy: BoundPolicy) -> ProbeRequest:
        own = STATEFUL_SET if policy.title.startswith(STATEFUL_SET.plural) else DEPLOYMENT
        return DeniedRequest(own, "shop", {"metadata": {"name": policy.title, "namespace": "shop"}})

    measuring.request = request
    return titles


def denial(*titles: str) -> dict[str, Any]:
    """Return a denial by these policies: its causes have room for a few, its message for all."""
    lines = "".join(f"\n- {title}: spec.replicas: 3; too many." for title in titles)
    return status(HOOK % "validate.gatewright.io" + lines, "Forbidden", *titles[:3])


async def enforced(measuring: Measuring, titles: list[str]) -> None:
    """Measure these policies until each was denied."""
    measuring.answer(403, denial(*titles))
    await measuring.after(0)
    await measuring.after(20)
    while measuring.statuses() != {"True": len(titles)}:
        await measuring.after(10)
    measuring.server.requests.faults.clear()


async def seconds_until(measuring: Measuring, number: int) -> int:
    """Return the seconds until this many policies are not enforced; at most three minutes."""
    for seconds in range(0, 180, 10):
        if measuring.statuses()["True"] <= len(measuring.engine.policies) - number:
            return seconds
        await measuring.after(10)
    return 180


async def test_the_requests_of_a_minute_are_bounded(measuring):
    """With many policies, each is measured in turn; those that confirm a problem are sent beside them."""
    many(measuring, 2 * MAX_AT_ONCE + 14)
    await measuring.after(0)
    sent = [0.0]
    for _ in range(9):
        await measuring.after(10)
        sent.append(measuring.sent())
    each_pass = [now - before for before, now in pairwise(sent)]
    assert each_pass == [0, 0, 40, 80, 54, 14, 0, 0, 0]
    assert (MAX_REQUESTS, MAX_AT_ONCE) == (240, 40)
    assert measuring.statuses() == {"False": 94}


async def test_one_request_measures_all_policies_that_deny_it(measuring):
    """A denial lists them all, in its message if its causes have no room."""
    titles = [f"limits-{number}" for number in range(200)]
    measuring.engine = Engine(replace(LIMITS, name=title) for title in titles)
    measuring.answer(403, denial(*titles))
    await measuring.after(0)
    for _ in range(5):
        await measuring.after(61)
    assert measuring.statuses() == {"True": 200}
    assert (measuring.sent(), measuring.tried) == (5, 1)
    measuring.server.requests.faults.clear()
    measuring.answer(403, denial(*titles[:199]))
    await measuring.after(61)
    await measuring.after(10)
    assert measuring.statuses() == {"True": 199, "False": 1}
    assert measuring.probe.of(titles[199]).reason == "NotDenied"


def test_a_denial_that_lists_not_all_policies_is_unknown():
    """The policy may be among those that are left out."""
    listed = status(HOOK % "validate.gatewright.io" + f"\n- other: x\n{MORE}", "", "other")
    assert judge(LIMITS, read_answer(error_for(403, listed)), SENT)[:2] == ("Unknown", "NotListed")


@pytest.mark.long
async def test_a_sabotaged_registration_is_seen_for_any_number_of_policies(measuring):
    """More requests than in two minutes; a denial takes it back for those that were not measured."""
    titles = many(measuring, 600)
    await enforced(measuring, titles)
    before, measured_before = measuring.sent(), measuring.now
    assert await seconds_until(measuring, 600) <= 90
    minutes = (measuring.now - measured_before) / 60
    assert measuring.sent() - before <= 2 * MAX_REQUESTS * (minutes + 1)
    assert measuring.statuses() == {"False": 600}
    assert any(
        "what 40 other policies must deny: creations of deployments" in found.message
        for found in map(measuring.probe.of, titles)
        if found is not None
    )
    measuring.answer(403, denial(*titles))
    await measuring.after(60)
    assert measuring.statuses()["True"] > 500


@pytest.mark.long
async def test_a_sabotage_of_few_policies_among_many_is_seen(measuring):
    """Those of another resource do not wait for the turn of all the others."""
    titles = [*many(measuring, 600), *many(measuring, 5, STATEFUL_SET)]
    await enforced(measuring, titles)
    measuring.answer(403, denial(*titles), path="/deployments")
    assert await seconds_until(measuring, 5) <= 110
    assert measuring.statuses() == {"True": 600, "False": 5}


@pytest.mark.long
@pytest.mark.parametrize("place", [0, 399])
async def test_a_policy_that_only_warns_in_the_webhook_is_seen(measuring, place):
    """Within two minutes among 400 requests, whenever its turn is; nothing is concluded for others."""
    titles = many(measuring, 400)
    await enforced(measuring, titles)
    measuring.answer(403, denial(*(title for title in titles if title != titles[place])))
    assert await seconds_until(measuring, 1) <= 120
    for _ in range(12):
        await measuring.after(10)
        assert measuring.statuses() == {"True": 399, "False": 1}


async def test_a_webhook_that_hangs_is_reported_for_all_policies_that_it_serves(measuring):
    """The first unanswered request that is confirmed tells; the first denial takes it back."""
    titles = many(measuring, 90)
    await enforced(measuring, titles)
    message = 'failed calling webhook "validate.gatewright.io": context deadline exceeded'
    measuring.answer(500, status(message, "InternalError"))
    assert await seconds_until(measuring, 90) <= 80
    found = [measuring.probe.of(title) for title in titles]
    assert {each.reason for each in found} == {"InternalError"}
    assert "validate.gatewright.io" in found[0].message
    measuring.server.requests.faults.clear()
    measuring.answer(403, denial(*titles))
    for _ in range(7):
        await measuring.after(10)
    assert measuring.statuses() == {"True": 90}


@pytest.mark.long
async def test_the_time_to_find_requests_is_bounded(measuring):
    """Policies for which no request is found are tried in turn, too: a tenth of a second each here."""
    nowhere = {"match": {"any": [{"namespaces": ["shop"], "objectSelector": NEVER}]}}
    measuring.engine = Engine(policies(*(f"limits-{each}" for each in range(12)), **nowhere))
    measuring.seconds_to_find = 0.1
    await measuring.after(0)
    await measuring.after(20)
    for _ in range(15):
        before = measuring.tried
        await measuring.after(10)
        assert measuring.tried - before <= 3
    found = [measuring.probe.of(f"limits-{number}") for number in range(12)]
    assert {each and each.reason for each in found} == {"NoRequest"}
