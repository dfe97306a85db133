"""An update tolerates only violations of the old object, for every user: with random objects and users."""

import copy
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kube.resource import JsonObject
from tests.policies.trials import FILES, trials_of
from webhook.engine import Engine, Request, Violation
from webhook.engine.violation import PLACE
from webhook.harness.cases import Trial
from webhook.harness.reviews import review
from webhook.policy_sets.bound_objects import bind
from webhook.policy_sets.catalogue import catalogue
from webhook.review import read

ROOT = Path(__file__).parents[3]
CASES = [
    *sorted((ROOT / "docs/cel").glob("*.cases.yaml")),
    *FILES,
]
RULES = int(os.environ.get("RULES", "200"))  # random ones; 1000: a thorough run
EVE, JANE = ("eve", ("system:authenticated",)), ("jane", ("devs", "system:authenticated"))
ADMIN = ("root", ("system:authenticated", "platform", "admins"))
ORDINARY = (EVE, JANE, ADMIN)
USERS = (
    *ORDINARY,
    ("system:node:a", ("system:nodes", "system:authenticated")),
    ("system:kube-controller-manager", ("system:authenticated",)),
)

WHO = [
    "'platform' in request.userInfo.groups",
    "request.userInfo.username == 'root'",
    "request.operation == 'CREATE'",
    "variables.who",
    "has(request.dryRun) && request.dryRun",
    "(oldObject == null || has(oldObject.metadata.labels))",
]
WHAT = [
    "(!has(object.spec.replicas) || object.spec.replicas <= 3)",
    "has(object.metadata.labels) && 'team' in object.metadata.labels",
    "variables.what",
    "false",
    "params.open",
]


def mixed(one: JsonObject, other: JsonObject, chance: random.Random) -> JsonObject:
    """Return an object with some fields of each of two."""
    if chance.random() < 0.3:
        return copy.deepcopy(one)
    found = {}
    for key in sorted(one.keys() | other.keys()):
        first, second = one.get(key), other.get(key)
        if isinstance(first, dict) and isinstance(second, dict):
            found[key] = mixed(first, second, chance)
        elif (value := chance.choice((first, second))) is not None:
            found[key] = copy.deepcopy(value)
    return found


def request_of(
    trial: Trial, object: JsonObject, old: JsonObject | None, user: tuple[str, tuple[str, ...]]
) -> Request:
    """Return a request like that of a case, for another object and by another user."""
    request = read(review(trial.admission))
    attributes = request.attributes._replace(
        username=user[0], groups=user[1], operation="CREATE" if old is None else "UPDATE"
    )
    return Request(attributes, object, old, trial.looked_up)


def outcomes(engine: Engine, request: Request) -> Iterator[tuple[str, Violation, bool]]:
    """Yield each violation with the policy, and whether it is tolerated."""
    for outcome in engine.validate(request).outcomes:
        yield from ((outcome.policy, each, True) for each in outcome.tolerated)
        yield from ((outcome.policy, each, False) for each in outcome.violations)


def what(policy: str, violation: Violation) -> tuple[str, str, str]:
    """Return a violation without the fields that make it the same, and without those of the requester."""
    path, rule = violation.key
    return policy, PLACE.sub("[]", path), rule


def tolerated_though_new(
    trial: Trial, engine: Engine, pool: list[JsonObject], chance: random.Random
) -> tuple[int, list[str]]:
    """Update one object of the pool to another.

    Count tolerated violations, and list those that are new for any user.
    """
    one, other = chance.choices(pool, k=2)
    old = mixed(one, other, chance)
    new = mixed(old, chance.choice(pool), chance)
    user = chance.choice(USERS)
    found = [
        what(policy, each)
        for policy, each, tolerated in outcomes(
            engine, request_of(trial, copy.deepcopy(new), copy.deepcopy(old), user)
        )
        if tolerated
    ]
    before = [
        {
            what(policy, each)
            for policy, each, _ in outcomes(
                engine, request_of(trial, copy.deepcopy(old), None, another)
            )
        }
        for another in ORDINARY
    ]
    return len(found), [
        f"{trial.where}: {violation} by {user[0]}: {old} -> {new}"
        for violation in found
        if not all(violation in there for there in before)
    ]


@pytest.mark.parametrize("most", [2, pytest.param(25, marks=pytest.mark.long)])
@pytest.mark.parametrize("cases", CASES, ids=lambda path: path.name.partition(".")[0])
def test_a_policy_tolerates_only_existing_violations_for_every_user(cases: Path, most: int) -> None:
    """Each policy of the catalogue and each documented rule judges objects mixed from those of its cases."""
    chance = random.Random(cases.name)
    trials = [
        candidate
        for candidate in trials_of(cases)
        if candidate.admission.object is not None and not candidate.admission.subresource
    ]
    for trial in chance.sample(trials, min(len(trials), most)):
        kind = trial.admission.about["kind"]
        pool = [
            object
            for other in trials
            for object in (other.admission.object, other.admission.old_object)
            if object is not None and object["kind"] == kind
        ]
        for _ in range(4):
            _, wrong = tolerated_though_new(trial, trial.engine, pool, chance)
            assert wrong == []


def rules(chance: random.Random) -> JsonObject:
    """Return the spec of a policy whose rules, variables and conditions randomly read the user or the operation."""

    def term() -> str:
        text = chance.choice([*WHO, *WHAT, *WHAT])
        return f"!({text})" if chance.random() < 0.3 else f"({text})"

    spec: JsonObject = {
        "match": {"any": [{"kinds": ["Deployment"]}]},
        "params": {"open": chance.random() < 0.5},
        "variables": [
            {"name": "who", "expression": chance.choice(WHO[:3])},
            {"name": "what", "expression": chance.choice(WHAT[:2])},
        ],
        "validations": [
            {
                "expression": chance.choice((" || ", " && ")).join((term(), term())),
                **({"path": "spec.replicas"} if chance.random() < 0.5 else {}),
            }
            for _ in range(2)
        ],
    }
    if chance.random() < 0.4:
        text = chance.choice([*WHO[:3], *WHAT[:2]])
        spec["matchConditions"] = [
            {"name": "c", "expression": chance.choice(("", "!")) + f"({text})"}
        ]
    return spec


@pytest.mark.parametrize("number", [25, pytest.param(RULES, marks=pytest.mark.long)])
def test_a_random_rule_tolerates_only_existing_violations_for_every_user(number: int) -> None:
    """Random policies in CEL judge four updates each."""
    chance = random.Random(24)
    file = ROOT / "docs/cel/replica-range.cases.yaml"
    trial = trials_of(file)[0]
    assert trial.admission.object is not None
    metadata = trial.admission.object["metadata"]
    pool = [
        trial.admission.object
        | {"metadata": metadata | extra, "spec": trial.admission.object["spec"] | replicas}
        for extra in ({}, {"labels": {"team": "a"}}, {"labels": {}})
        for replicas in ({}, {"replicas": 2}, {"replicas": 5}, {"replicas": 9})
    ]
    tolerated = 0
    for _ in range(number):
        value = {
            "apiVersion": "gatewright.io/v1alpha1",
            "kind": "ClusterAdmissionPolicy",
            "metadata": {"name": "rules"},
            "spec": rules(chance),
        }
        engine = Engine([bind(value, catalogue())])  # type: ignore[list-item]
        for _ in range(4):
            count, wrong = tolerated_though_new(trial, engine, pool, chance)
            tolerated += count
            assert wrong == [], value["spec"]
    assert tolerated > number / 10
