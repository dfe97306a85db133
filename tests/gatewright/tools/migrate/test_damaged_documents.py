"""Documents with any field of a wrong type: each is named, and never ends the command."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from gatewright.tools.migrate import migrate
from tests.gatewright.tools.migrate.converted import documents

WRONG = (None, 1, "x", [], {"a": None})
DOCUMENTS = list(
    yaml.safe_load_all("""\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p, annotations: {a: b}}
spec:
  validationFailureAction: Enforce
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod], namespaces: [a], selector: {matchLabels: {a: b}}}}]}
    exclude: {any: [{resources: {namespaces: [b]}}]}
    preconditions: {all: [{key: "{{ request.operation }}", operator: Equals, value: CREATE}]}
    validate: {message: m, pattern: {spec: {containers: [{image: "a/*"}]}}}
  - name: s
    match: {resources: {kinds: [Service]}}
    mutate:
      patchStrategicMerge: {metadata: {labels: {+(a): b}}}
      patchesJson6902: '[{"op": "add", "path": "/metadata/labels/b", "value": "c"}]'
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: e, namespace: n}
spec:
  exceptions: [{policyName: p, ruleNames: [r]}]
  match: {any: [{resources: {kinds: [Pod], names: [a]}}]}
---
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: v}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [services]}]}
  variables: [{name: a, expression: object.spec}]
  validations: [{expression: variables.a.type != 'NodePort', message: m}]
---
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: K8sAllowedRepos
metadata: {name: c}
spec:
  enforcementAction: deny
  match: {kinds: [{apiGroups: [""], kinds: [Pod]}], excludedNamespaces: [a], labelSelector: {matchLabels: {a: b}}}
  parameters: {repos: [a/]}
---
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: k8sallowedrepos, annotations: {metadata.gatekeeper.sh/title: Allowed Repositories}}
spec: {crd: {spec: {names: {kind: K8sAllowedRepos}}}, targets: [{target: admission.k8s.gatekeeper.sh, rego: package a}]}
---
apiVersion: mutations.gatekeeper.sh/v1
kind: Assign
metadata: {name: a}
spec:
  applyTo: [{groups: [""], versions: [v1], kinds: [Service]}]
  match: {kinds: [{apiGroups: [""], kinds: [Service]}]}
  location: spec.type
  parameters: {assign: {value: ClusterIP}, pathTests: [{subPath: spec.type, condition: MustNotExist}]}
---
apiVersion: mutations.gatekeeper.sh/v1
kind: AssignImage
metadata: {name: i}
spec:
  applyTo: [{groups: [""], versions: [v1], kinds: [Pod]}]
  location: "spec.containers[name: a].image"
  parameters:
    assignDomain: r.io
    assignPath: p
    assignTag: ":t"
    pathTests: [{subPath: "spec.containers[name: a]", condition: MustExist}]
---
apiVersion: mutations.gatekeeper.sh/v1
kind: ModifySet
metadata: {name: s}
spec:
  applyTo: [{groups: [""], versions: [v1], kinds: [Pod]}]
  location: "spec.containers[name: *].args"
  parameters: {operation: prune, values: {fromList: [a]}}
---
apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: x, namespace: kyverno}
spec:
  policyRefs: [{name: v, kind: ValidatingPolicy}]
  matchConditions: [{name: c, expression: "object.metadata.name == 'web'"}]
  expiresAt: "2026-12-01T00:00:00Z"
  images: []
---
apiVersion: config.gatekeeper.sh/v1alpha1
kind: Config
metadata: {name: config}
spec: {match: [{processes: ["*"], excludedNamespaces: [a]}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: n, labels: {pod-security.kubernetes.io/enforce: baseline}}
""")
)


def paths(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value below."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in items if isinstance(value, dict | list) else ():
        yield (*above, key)
        if isinstance(each, dict | list):
            yield from paths(each, (*above, key))


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(DOCUMENTS)), ids=lambda n: DOCUMENTS[n]["kind"])
def test_a_field_of_a_wrong_type_ends_nothing(number):
    """Each field is replaced by each type of value; unconverted rules have a name and a reason."""
    for *above, last in paths(DOCUMENTS[number]):
        for wrong in WRONG:
            damaged = copy.deepcopy(DOCUMENTS)
            parent = damaged[number]
            for key in above:
                parent = parent[key]
            parent[last] = wrong
            found = migrate(documents(*damaged), "2027-01-01T00:00:00Z")
            for unconverted_rule in (*found.skipped, *found.unconverted):
                assert unconverted_rule.origin.title
                assert unconverted_rule.reason


def test_half_a_template_is_named():
    """Without the kind of its constraints, nothing tells which are missing."""
    template = {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": "k8shalf"},
    }
    (skipped,) = migrate(documents(template)).skipped
    assert skipped.reason == "it cannot be read: the field spec.crd.spec.names.kind is missing"
