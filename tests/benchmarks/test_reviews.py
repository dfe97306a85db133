"""The benchmark of reviews checks its verdicts, and writes its tables to docs/performance.md."""

from importlib import import_module

import pytest

from benchmarks.reviews import verdicts
from benchmarks.reviews.bars import bars
from benchmarks.reviews.bodies import bodies
from benchmarks.reviews.document import BEGIN, END, written
from benchmarks.reviews.others import reviews, write_sets
from benchmarks.reviews.policy_sets import write
from config.documents import read_documents
from webhook import review
from webhook.engine import NAMESPACE_LABELS, Engine
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import load

BODIES = {name: body for name, body in bodies().items() if body.listed}
RUN = {
    "machine": {"cores": 2, "python": "3.11.7", "go": "go1.26.8"},
    "rounds": 3,
    "reviews": 1000,
    "starts": {"gatewright": 0.9},
    "memory": {
        "before": {"gatewright": 60.0},
        "most": {"gatewright": 99.0},
        "after": {"gatewright": 70.0},
    },
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """Load the largest set of policies that look at the bodies."""
    directory = write(tmp_path_factory.mktemp("sets") / "policies", matching=True)
    documents = (
        document for path in sorted(directory.iterdir()) for document in read_documents(path)
    )
    return Engine(load(documents, catalogue()))


@pytest.mark.parametrize("name", BODIES)
def test_each_body_gets_the_verdict_that_is_measured(engine, name):
    """The violations and patches are the expected ones, also with twenty more matching policies."""
    body = BODIES[name]
    request = review.read(body.review).with_looked_up(
        {NAMESPACE_LABELS: {"environment": "production"}}
    )
    verdict = engine.mutate(request) if body.path == "/mutate" else engine.validate(request)
    response = verdicts.response_of(review.answer(request, verdict))
    assert verdicts.fault(response, body) == ""


def test_each_other_review_is_judged_by_its_set(tmp_path):
    """Its set is one of those that are written, and policies of it judge the review."""
    engines = {
        name: Engine(
            load(
                (each for path in sorted(place.iterdir()) for each in read_documents(path)),
                catalogue(),
            )
        )
        for name, place in write_sets(tmp_path).items()
    }
    judges = {
        name: {
            outcome.policy
            for outcome in engines[each.policies]
            .validate(review.read(each.body).with_looked_up({NAMESPACE_LABELS: {}}))
            .outcomes
        }
        for name, each in reviews().items()
        if each.path == "/validate"
    }
    assert judges["webapp"] >= {"webapp-rules", "replica-limits"}
    assert "ecommerceplatform-rules" in judges["platform"]
    assert "production/replicas" in judges["tenant"]
    assert judges["presets"] >= {"baseline", "image-tags"}


def test_each_small_review_has_its_own_bar():
    """A review that formats violations or sets fields may cost more."""
    small = ("allow", "deny", "mutate")
    assert {name: bodies()[name].bar for name in small} == {
        "allow": 0.65,
        "deny": 1.25,
        "mutate": 1.1,
    }


def test_each_limit_reports_whether_it_is_met():
    """A figure above its limit fails."""
    assert [(bar.what, bar.found, bar.holds) for bar in bars(RUN)] == [
        ("memory after all reviews", 70.0, True),
        ("start to first right answer", 0.9, False),
    ]


def test_the_page_keeps_what_is_around_the_tables():
    """Only the text between the marks is replaced; the limits come first."""
    page = written(f"# Performance\n{BEGIN}old\n{END}after\n", RUN)
    assert page.startswith(f"# Performance\n{BEGIN}\n2 cores, Python 3.11.7, go1.26.8;")
    assert page.endswith(f"{END}after\n")
    assert "| start to first right answer | 0.9 s | 0.8 s | NO |\n" in page
    assert "old" not in page


@pytest.mark.parametrize(
    "module",
    [
        "controller",
        "passes",
        "policies",
        "reviews.__main__",
        "reviews.layers",
        "reviews.profile",
        "writes",
    ],
)
def test_each_benchmark_can_be_imported(module):
    """The names that benchmarks import still exist."""
    assert import_module(f"benchmarks.{module}").__doc__
