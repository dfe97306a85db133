"""Any body is answered or rejected, never an internal error."""

import copy
import json
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from config.documents import parse_documents, read_documents
from config.faults import FaultsError, parse
from config.settings import Settings
from gatewright.processes.planners import planners_of
from tests.characters import CHARACTERS
from webhook.engine import NAMESPACE_LABELS, NOW, SERVED, Engine, NotLookedUpError
from webhook.harness.bases import kinds_by_name, smallest
from webhook.harness.reviews import Admission, review
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import load
from webhook.review import MalformedRequestError, NotAReviewError, answer, deny_malformed, read

CASES = Path(__file__).parents[1] / "policies"
LOOKED_UP = {NAMESPACE_LABELS: {}, NOW: datetime(2026, 11, 21, tzinfo=UTC), SERVED: ()}


def _policies():
    """Put every policy in force, with its defaults or with the first parameters of its cases."""
    for name, policy in catalogue().items():
        yield {
            "apiVersion": "gatewright.io/v1alpha1",
            "kind": "ClusterAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "policy": name,
                "params": next(each for each in _tried(name) if _fits(policy, each)),
            },
        }


def _tried(name):
    """Yield parameters of a policy: none, and those of its cases."""
    yield {}
    (file,) = read_documents(CASES / f"{name.replace('-', '_')}.yaml")
    yield from (each["params"] for each in (file.value, *file.value["cases"]) if "params" in each)


def _fits(policy, params):
    """Return whether these are valid parameters of a policy."""
    try:
        parse(policy.params, params)
    except FaultsError:
        return False
    return True


TEXT = "---\n".join(json.dumps(each) + "\n" for each in _policies())
PLANNERS = planners_of(Settings(), "gatewright-system")
ENGINE = Engine(load(parse_documents(TEXT.encode(), "all.yaml"), catalogue()), PLANNERS)

TEXTS = st.text(CHARACTERS, max_size=5)
SCALARS = (
    st.none() | st.booleans() | st.integers(-1, 2**64 - 1) | st.floats(allow_nan=False) | TEXTS
)
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(TEXTS, SCALARS, max_size=2)
KINDS = st.sampled_from(sorted(kinds_by_name()))


def _paths(value, path=()):
    """Yield the path of every value."""
    yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        yield from _paths(item, (*path, key))


def _replaced(value, path, other):
    """Return a value with another value at a path."""
    if not path:
        return other
    changed = copy.copy(value)
    changed[path[0]] = _replaced(value[path[0]], path[1:], other)
    return changed


@given(KINDS, st.sampled_from(["CREATE", "UPDATE", "DELETE"]), st.data())
def test_a_review_with_any_value_anywhere_is_answered(kind, operation, data):
    """With any value in any place, a review is rejected, denied, or judged by every policy."""
    object = smallest(kind)
    old = None if operation == "CREATE" else object
    admission = Admission(
        None if operation == "DELETE" else object, old, operation, namespace="shop"
    )
    sent = json.loads(review(admission))
    path = data.draw(st.sampled_from(sorted(_paths(sent), key=repr)), label="path")
    body = json.dumps(_replaced(sent, path, data.draw(VALUES, label="value"))).encode()
    try:
        request = read(body).with_looked_up(LOOKED_UP)
    except NotAReviewError as error:
        texts, responses = [str(error)], []
    except MalformedRequestError as error:
        texts, responses = [], [json.loads(deny_malformed(error))["response"]]
    else:
        texts, responses = (
            [],
            [_judged(request, judge) for judge in (ENGINE.mutate, ENGINE.validate)],
        )
    for response in responses:
        texts += response.get("warnings", [])
        texts += response.get("status", {}).get("message", "").split("\n")
    assert [text for text in texts if not text.isprintable()] == []


def _judged(request, judge):
    """Return the response; policies may fail only for missing look-ups."""
    verdict = judge(request)
    errors = [outcome.error for outcome in verdict.outcomes if outcome.error is not None]
    assert [error for error in errors if not isinstance(error, NotLookedUpError)] == []
    return json.loads(answer(request, verdict))["response"]
