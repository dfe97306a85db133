"""Documents of other tools, converted and judged, for the tests."""

from datetime import UTC, datetime

from config.documents import Document
from gatewright.tools.migrate import migrate
from webhook.engine import Engine
from webhook.harness.bases import merge, smallest
from webhook.harness.manifests import ManifestJudge
from webhook.known import Known
from webhook.policy_sets.catalogue import catalogue
from webhook.policy_sets.policy_set import in_force, read

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def documents(*objects):
    """Return objects as documents."""
    return [Document.of_object(each, "policies.yaml") for each in objects]


def converted(*objects):
    """Return the migration of objects; exceptions end in 2027."""
    return migrate(documents(*objects), "2027-01-01T00:00:00Z")


def cluster_policy(validate, *, kinds=("Pod",), name="p", rule="r", annotations=None, **fields):
    """Return a ClusterPolicy of Kyverno with one rule."""
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {
            "validationFailureAction": "Enforce",
            "rules": [
                {
                    "name": rule,
                    "match": {"any": [{"resources": {"kinds": [*kinds]}}]},
                    "validate": validate,
                }
                | fields
            ],
        },
    }


def judging(objects, namespace="shop", labels=None):
    """Return the answer of policy objects for the smallest object of a kind with more fields."""
    found = read(documents(*objects), catalogue())
    known = Known()
    known.set_labels(namespace, labels or {})
    judge = ManifestJudge(Engine(in_force(found, catalogue())), known, "shop", NOW)

    def judged(kind, **fields):
        return judge(documents(merge(smallest(kind, "web", namespace), fields))[0])

    return judged


def _of(migration):
    assert [each.reason for each in migration.unconverted + migration.skipped] == []
    return [each.object for each in migration.converted]


def verdict(migration, kind="Pod", namespace="shop", labels=None, **object):
    """Return the verdict of converted policies on the smallest object of a kind with more fields."""
    return judging(_of(migration), namespace, labels)(kind, **object).verdict


def mutated(migration, kind="Pod", **object):
    """Return the smallest object of a kind with more fields, after the converted mutations."""
    return judging(_of(migration))(kind, **object).object


def reasons(*objects):
    """Return why each rule is not converted, and its nearest equivalent."""
    return [
        (unconverted_rule.origin.title, unconverted_rule.reason, unconverted_rule.nearest)
        for unconverted_rule in converted(*objects).unconverted
    ]
