"""AppConfigs and VoteConfigs with kubectl: ConfigMaps, restarts, and both versions."""

import json
from collections import Counter
from typing import Any

import pytest

from tests.e2e import manifests
from tests.e2e.conftest import CONFIG, Laptop

pytestmark = pytest.mark.controlplane("kube-controller-manager", "kube-scheduler", "hollow-kubelet")

CRD = "crd/voteconfigs.voting.schoolofdevops.com"
GROUP = "voting.schoolofdevops.com"
CATS = {"id": "a", "label": "Cats"}
DOGS = {"id": "b", "label": "Dogs"}


def vote(version: str, **spec: Any) -> dict[str, Any]:
    """A VoteConfig."""
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "VoteConfig",
        "metadata": {"name": "pets"},
        "spec": spec,
    }


def test_s6_a_voteconfig_through_its_life(laptop: Laptop, namespace: str) -> None:
    """S6: creation, change, a manual edit of its ConfigMap, and deletion show in the ConfigMap, in either version."""

    def kubectl(*args: str, **given: Any) -> str:
        return laptop.kubectl("-n", namespace, *args, **given)

    def shows(key: str, value: str) -> None:
        laptop.wait("configmap/pets-config", f"jsonpath={{.data.{key}}}={value}", namespace)

    kubectl("apply", "-f-", input=vote("v1alpha1", question="Which?", options=[CATS, DOGS]))
    kubectl("wait", "--for=condition=Ready", "voteconfig/pets")
    data = laptop.get("configmap/pets-config", namespace)["data"]
    assert json.loads(data.pop("config.json")) == {"question": "Which?", "options": [CATS, DOGS]}
    assert data == {"question": "Which?", "OPTION_A": "Cats", "OPTION_B": "Dogs"}
    stored = laptop.get("voteconfig/pets", namespace)
    assert (stored["apiVersion"], stored["spec"]["poll"]) == (f"{GROUP}/v1", {"question": "Which?"})
    assert stored["metadata"]["finalizers"] == [f"{GROUP}/finalizer"]

    described = {**DOGS, "label": "Hounds", "description": "Bark."}
    kubectl(
        "apply", "-f-", input=vote("v1", poll={"question": "Which?"}, options=[CATS, described])
    )
    shows("OPTION_B", "Hounds")
    old = json.loads(kubectl("get", f"voteconfigs.v1alpha1.{GROUP}", "pets", "-o=json"))
    assert old["spec"] == {"question": "Which?", "options": [CATS, {**DOGS, "label": "Hounds"}]}
    change = {"spec": {"question": "Who?"}}
    kubectl(
        "patch", f"voteconfigs.v1alpha1.{GROUP}", "pets", "--type=merge", f"-p={json.dumps(change)}"
    )
    shows("question", "Who?")
    assert laptop.get("voteconfig/pets", namespace)["spec"]["options"] == [CATS, described]

    edit = {"data": {"OPTION_A": "Fish", "question": None}}
    kubectl("patch", "configmap", "pets-config", "--type=merge", f"-p={json.dumps(edit)}")
    shows("question", "Who?")
    shows("OPTION_A", "Cats")
    kubectl("delete", "configmap", "pets-config")
    laptop.wait("configmap/pets-config", "create", namespace)

    kubectl("delete", "voteconfig", "pets")
    kubectl("wait", "--for=delete", "configmap/pets-config")


def test_an_invalid_object_is_denied(laptop: Laptop, namespace: str) -> None:
    """Admission sees v1alpha1 as v1, and the API server rejects an object that cannot be converted."""
    twice = laptop.refusal(
        "apply", "-n", namespace, "-f-", input=vote("v1alpha1", question="?", options=[CATS, CATS])
    )
    assert (
        "spec.options[1].id: cannot build the ConfigMap; another option has the key OPTION_A too"
        in twice
    )
    level = {"LOG_LEVEL": "{{ level }}"}
    config = {
        "apiVersion": "config.example.com/v1",
        "kind": "AppConfig",
        "metadata": {"name": "shop"},
    }
    undefined = laptop.refusal(
        "apply", "-n", namespace, "-f-", input=config | {"spec": {"config": level}}
    )
    assert (
        'spec.config[LOG_LEVEL]: cannot build the ConfigMap; line 1: undefined variable "level"'
        in undefined
    )
    bad = vote("v1alpha1", question="?", options=[CATS])
    bad["metadata"]["annotations"] = {f"{GROUP}/v1": "{"}
    refused = laptop.refusal("apply", "-n", namespace, "-f-", input=bad)
    assert f"VoteConfig {namespace}/pets: metadata.annotations[{GROUP}/v1]: is not JSON" in refused


def test_applying_the_crd_again_keeps_the_conversion(laptop: Laptop) -> None:
    """The API server reports no change, for any client; a manual edit is reverted."""
    laptop.kubectl(
        "wait", "--for=jsonpath={.spec.conversion.strategy}=Webhook", CRD, "--timeout=90s"
    )
    before = json.loads(laptop.kubectl("get", CRD, "-o=json"))["spec"]["conversion"]
    assert before["webhook"]["clientConfig"]["url"] == f"{laptop.gatewright.url}/convert"
    bases = str(CONFIG / f"crd/bases/{GROUP}_voteconfigs.yaml")
    laptop.kubectl("apply", "-f", bases)
    laptop.kubectl("apply", "--server-side", "--force-conflicts", "-f", bases)
    assert json.loads(laptop.kubectl("get", CRD, "-o=json"))["spec"]["conversion"] == before


def test_one_appconfig_has_the_values_of_each_namespace(laptop: Laptop, namespace: str) -> None:
    """The same file in three namespaces: their labels tell the environment, and are followed."""
    values = {
        "URL": {"dev": "http://localhost", "staging": "https://staging", "prod": "https://shop"}
    }
    spec = {"application": "shop", "environment": "from-namespace", "values": values}
    config = {
        "apiVersion": "config.example.com/v1",
        "kind": "AppConfig",
        "metadata": {"name": "shop"},
        "spec": spec,
    }
    names = {each: f"{namespace}-{each}" for each in ("dev", "staging", "production")}
    for environment, name in names.items():
        about = {"name": name, "labels": {"environment": environment}}
        laptop.kubectl(
            "apply", "-f-", input={"apiVersion": "v1", "kind": "Namespace", "metadata": about}
        )
        laptop.kubectl("apply", "-n", name, "-f-", input=config)
    for environment, url in zip(names, values["URL"].values(), strict=True):
        laptop.wait("configmap/shop-config", f"jsonpath={{.data.URL}}={url}", names[environment])
    laptop.kubectl("label", "namespace", names["dev"], "environment-", "--overwrite")
    laptop.wait("appconfig/shop", "condition=Ready=false", names["dev"])
    ready = laptop.get("appconfig/shop", names["dev"])["status"]["conditions"][-1]
    assert (ready["reason"], ready["message"]) == (
        "EnvironmentUnknown",
        f"spec.environment is from-namespace, and namespace {names['dev']} tells none: label it "
        "environment=ENVIRONMENT (one of dev, staging, prod, development, production), or name the "
        "environment in spec.environment",
    )
    laptop.kubectl("label", "namespace", names["dev"], "environment=staging")
    laptop.wait("configmap/shop-config", "jsonpath={.data.URL}=https://staging", names["dev"])
    laptop.kubectl("delete", "namespace", *names.values(), "--wait=false")


def test_a_secret_reaches_its_users_by_reference(laptop: Laptop, namespace: str) -> None:
    """Once it exists, by one new ReplicaSet; the next `kubectl apply` of the Deployment keeps it."""

    def kubectl(*args: str, **given: Any) -> str:
        return laptop.kubectl("-n", namespace, *args, **given)

    uses = {"envFrom": [{"configMapRef": {"name": "shop-config"}}]}
    web = manifests.deployment("web", replicas=1, **uses)
    spec = {"application": "shop", "secrets": {"PASSWORD": {"name": "shop-db", "key": "password"}}}
    config = {"apiVersion": "config.example.com/v1", "kind": "AppConfig"}
    kubectl("apply", "-f-", input=web)
    kubectl("apply", "-f-", input=config | {"metadata": {"name": "shop"}, "spec": spec})
    kubectl("wait", "--for=condition=Ready=false", "appconfig/shop")
    ready = laptop.get("appconfig/shop", namespace)["status"]["conditions"][-1]
    assert (ready["reason"], ready["message"]) == (
        "SecretNotFound",
        "waiting for Secret shop-db: create it in the namespace of this object, or set "
        "spec.secrets.PASSWORD.optional: true",
    )
    kubectl("create", "secret", "generic", "shop-db", "--from-literal=password=secret")
    kubectl("wait", "--for=condition=Ready", "appconfig/shop")
    for _ in range(2):
        (container,) = laptop.get("deployment/web", namespace)["spec"]["template"]["spec"][
            "containers"
        ]
        (variable,) = container["env"]
        assert variable == {
            "name": "PASSWORD",
            "valueFrom": {"secretKeyRef": {"name": "shop-db", "key": "password"}},
        }
        kubectl("apply", "-f-", input=web)
    kubectl("wait", "deployment/web", "--for=jsonpath={.status.observedGeneration}=2")
    assert len(kubectl("get", "replicasets", "-o=name").split()) == 2


def test_a_change_restarts_its_users_once(laptop: Laptop, namespace: str) -> None:
    """Creating or adopting a Deployment does not restart it; a change does, with one new ReplicaSet."""

    def kubectl(*args: str, **given: Any) -> str:
        return laptop.kubectl("-n", namespace, *args, **given)

    def replica_sets(generation: int, *names: str) -> dict[str, int]:
        """Count the ReplicaSets of each Deployment, once some have been observed in this generation."""
        sign = f"--for=jsonpath={{.status.observedGeneration}}={generation}"
        kubectl("wait", *(f"deployment/{name}" for name in names), sign, "--timeout=90s")
        return Counter(
            kubectl("get", "replicasets", "-o=jsonpath={.items[*].metadata.labels.app}").split()
        )

    uses = {"envFrom": [{"configMapRef": {"name": "shop-config"}}]}
    kubectl("apply", "-f-", input=manifests.deployment("before", replicas=1, **uses))
    kubectl("apply", "-f", str(CONFIG / "samples/shop-config.yaml"))
    kubectl("wait", "--for=condition=Ready", "appconfig/shop")
    assert laptop.get("configmap/shop-config", namespace)["data"] == {
        "LOG_LEVEL": "info",
        "DATABASE_HOST": f"shop-db.{namespace}.svc",
        "FEATURE_PREFIX": "SHOP_STAGING_",
    }
    more = [
        manifests.deployment("after", replicas=1, **uses),
        manifests.deployment("without", replicas=1),
    ]
    kubectl("apply", "-f-", input={"apiVersion": "v1", "kind": "List", "items": more})
    kubectl("annotate", "appconfig/shop", "look=again")
    assert replica_sets(1, "before", "after", "without") == {"before": 1, "after": 1, "without": 1}

    change = {"spec": {"config": {"LOG_LEVEL": "debug", "FEATURE_PREFIX": None}}}
    kubectl("patch", "appconfig", "shop", "--type=merge", f"-p={json.dumps(change)}")
    assert replica_sets(2, "before", "after") == {"before": 2, "after": 2, "without": 1}
    kubectl("wait", "--for=jsonpath={.status.observedGeneration}=2", "appconfig/shop")
    checksum = laptop.get("appconfig/shop", namespace)["status"]["checksum"]
    for name in ("before", "after"):
        template = laptop.get(f"deployment/{name}", namespace)["spec"]["template"]["metadata"]
        assert template["annotations"] == {"checksum.gatewright.io/shop-config": checksum}
    assert laptop.get("configmap/shop-config", namespace)["data"].keys() == {
        "LOG_LEVEL",
        "DATABASE_HOST",
    }
