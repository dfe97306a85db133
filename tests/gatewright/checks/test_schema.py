"""What the API server would reject is a violation of `schema`, with its field, rule and fix."""

import pytest

from config.documents import parse_documents
from config.schemas import CustomTypes
from gatewright.checks.check_report import with_schema
from gatewright.outputs import SubjectResult

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, labels: {version: 1}}
spec:
  replicas: "3"
  template:
    spec:
      securityContex: {runAsNonRoot: true}
      containers:
        - name: app
          image: shop
          resources: {limits: {cpu: many}}
          env: [{name: A, value: true}]
      tolerations: {}
  selector: {}
"""
SELECTOR = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: shop}
spec:
  selector:
    matchLabels: {app: shop, tier: web}
    matchExpressions: [{key: app, operator: In, values: [store]}]
  template: {metadata: {labels: {app: shop}}}
"""
LACKING = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  template:
    spec: {containers: [
      {name: app, imagePullPolicy: always},
      {image: shop, imagePullPolicy: ""}]}
---
{apiVersion: v1, kind: Pod, metadata: {name: shop}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {}}
"""
AUTOSCALER = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: shop}
spec: {minReplicas: 5, maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: shop}}
"""
CUSTOM = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: doors.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: doors, singular: door, kind: Door}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, required: [by], properties: {public: {type: boolean}, maxSurge: {}, by: {type: string, enum: [lock, code]}}}}
---
apiVersion: example.org/v1
kind: Door
metadata: {name: front}
spec: {publik: true, public: "true", maxSurge: [any], by: coed}
---
apiVersion: example.org/v1
kind: Door
metadata: {name: back}
spec: {}
---
apiVersion: example.org/v1
kind: Window
metadata: {name: front, label: a}
spec: {publik: true}
"""
MISSING = "missing; the API server requires this field. Add it."
UNKNOWN = "unknown field; the API server rejects or drops this field."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param(
            DEPLOYMENT,
            [
                (3, "metadata.labels[version]: 1; must be a string. Write it in quotes."),
                (5, 'spec.replicas: "3"; must be an integer. Write it without quotes.'),
                (
                    8,
                    f'spec.template.spec.securityContex: {UNKNOWN} Did you mean "securityContext"?',
                ),
                (
                    12,
                    'spec.template.spec.containers[name=app].resources.limits[cpu]: "many"; must be a '
                    "quantity such as 500m or 1Gi. Correct it.",
                ),
                (
                    13,
                    "spec.template.spec.containers[name=app].env[name=A].value: true; must be a string. "
                    "Write it in quotes.",
                ),
                (14, "spec.template.spec.tolerations: {}; must be a list. Write it as a list."),
            ],
            id="fields and types",
        ),
        pytest.param(
            SELECTOR,
            [
                (
                    6,
                    'spec.selector.matchLabels: {"app": "shop", "tier": "web"}; must match the labels of '
                    "the template, which lack tier: web. Write the same labels in "
                    "spec.template.metadata.labels.",
                ),
                (
                    7,
                    'spec.selector.matchExpressions[0]: {"key": "app", "operator": "In", "values": '
                    '["store"]}; must match the labels of the template. Correct '
                    "spec.template.metadata.labels.",
                ),
            ],
            id="a selector",
        ),
        pytest.param(
            LACKING,
            [
                (7, f"spec.template.spec.containers[name=app].image: {MISSING}"),
                (
                    7,
                    'spec.template.spec.containers[name=app].imagePullPolicy: "always"; must be one of '
                    'Always, IfNotPresent, Never. Did you mean "Always"?',
                ),
                (8, f"spec.template.spec.containers[1].name: {MISSING}"),
                (4, f"spec.selector: {MISSING}"),
                (10, f"spec.containers: {MISSING}"),
                (12, f"metadata.name: {MISSING}"),
            ],
            id="what is missing",
        ),
        pytest.param(
            AUTOSCALER,
            [
                (
                    4,
                    "spec.minReplicas: 5; must not exceed spec.maxReplicas, which is 3. Set it to 3 or "
                    "less.",
                )
            ],
            id="an autoscaler",
        ),
        pytest.param(
            CUSTOM,
            [
                (20, f'spec.publik: {UNKNOWN} Did you mean "public"?'),
                (20, 'spec.public: "true"; must be a boolean. Write it without quotes.'),
                (20, 'spec.by: "coed"; must be one of lock, code. Did you mean "code"?'),
                (25, f"spec.by: {MISSING}"),
                (29, f'metadata.label: {UNKNOWN} Did you mean "labels"?'),
            ],
            id="custom kinds",
        ),
    ],
)
def test_a_fault_has_its_line_and_its_fix(text, found):
    """The object is denied; a kind without a type has only the fields of its metadata checked."""
    documents = list(parse_documents(text.encode(), "x.yaml"))
    custom = CustomTypes.of(each.value for each in documents)
    result = SubjectResult(kind="", name="", verdict="allowed")
    judged = [with_schema(result, each, custom) for each in documents]
    violations = [each for one in judged for each in one.violations]
    assert [(each.place.line, each.message) for each in violations] == found
    assert {one.verdict for one in judged if one.violations} == {"denied"}
