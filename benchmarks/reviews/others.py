"""Reviews that the Go webhooks do not answer: of custom resources, by a tenant, by presets."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.cluster import ROOT
from benchmarks.reviews import policy_sets
from benchmarks.reviews.bodies import PRODUCTION, bodies
from webhook.harness.reviews import Admission, review

SAMPLES = ROOT / "config" / "samples"
PRESETS = ("baseline", "best-practices", "restricted")
RULE = """apiVersion: gatewright.io/v1alpha1
kind: AdmissionPolicy
metadata: {name: replicas, namespace: production}
spec:
  match: {any: [{kinds: [Deployment]}]}
  validations:
    - expression: "object.spec.template.spec.containers.all(c, has(c.resources.limits))"
      message: set resources.limits
"""


@dataclass(frozen=True, slots=True)
class Review:
    """A review, its path, and the policy set that judges it."""

    about: str
    path: str
    body: bytes
    policies: str


def reviews() -> dict[str, Review]:
    """Return all reviews by name."""
    webapp, platform = _sample("my-webapp"), _sample("production-store")
    deployment = bodies()["allow"].review
    return {
        "webapp": Review("WebApp, judged with its children", "/validate", webapp, "production"),
        "webapp-mutate": Review("WebApp: defaults", "/mutate", webapp, "production"),
        "platform": Review(
            "EcommercePlatform, judged with its children", "/validate", platform, "production"
        ),
        "platform-mutate": Review("EcommercePlatform: defaults", "/mutate", platform, "production"),
        "tenant": Review(
            "Deployment, also judged by a tenant's rule in CEL", "/validate", deployment, "tenant"
        ),
        "presets": Review(
            f"Deployment, judged by {', '.join(PRESETS)}", "/validate", deployment, "presets"
        ),
    }


def write_sets(directory: Path) -> dict[str, Path]:
    """Write the policy sets of the reviews; return the directory of each by its name."""
    sets = {name: directory / f"others-{name}" for name in ("production", "tenant", "presets")}
    for name in ("production", "tenant"):
        policy_sets.write(sets[name])
    (sets["tenant"] / "tenant.yaml").write_text(RULE)
    sets["presets"].mkdir()
    for name in PRESETS:
        text = (ROOT / "config" / "policies" / f"{name}.yaml").read_text()
        (sets["presets"] / f"{name}.yaml").write_text(text)
    return sets


def _sample(name: str) -> bytes:
    object: dict[str, Any] = yaml.safe_load((SAMPLES / f"{name}.yaml").read_text())
    object["metadata"]["namespace"] = PRODUCTION
    return review(Admission(object=object, namespace=PRODUCTION))
