"""An application: a Deployment with one container, and its Service.

A WebApp has one, a platform several.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from controller.reconcilers.labels import metadata_origin
from controller.runtime.plan import Apply
from kube.resource import JsonObject

ORIGIN = metadata_origin()
DEPLOYMENT_ORIGIN = metadata_origin("spec.template")


@dataclass(slots=True)  # never changed; a frozen dataclass is three times slower to create
class Application:
    """One container, its number of replicas, its labels and its Service.

    With `autoscaled`, an autoscaler decides the number, and `replicas` is the first one.
    """

    name: str
    namespace: str
    container: str
    image: str
    port: int
    replicas: int
    resources: JsonObject
    # In addition to `app`, the label of the selectors.
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)  # of the Service
    port_name: str = "http"
    autoscaled: bool = False
    settings: JsonObject = field(default_factory=dict)  # further fields of the container
    pod: JsonObject = field(default_factory=dict)  # further fields of the pod spec


class Origins(NamedTuple):
    """The parent's fields from which the fields of the Deployment and of the Service come."""

    deployment: Mapping[str, str]
    service: Mapping[str, str]


def origins(container: str, fields: Mapping[str, str]) -> Origins:
    """Return the origins for a parent.

    `fields` maps each field of an application to the parent's field.
    """
    template = f"spec.template.spec.containers[name={container}]"
    paths = _deployment_paths(template)
    ports = {"spec.ports": fields["port"]} if "port" in fields else {}
    return Origins(
        {paths[name]: field for name, field in fields.items()} | DEPLOYMENT_ORIGIN, ports | ORIGIN
    )


def plan_application(application: Application, origins: Origins) -> tuple[Apply, Apply]:
    """Return the Deployment and the Service."""
    initial = {"spec.replicas": application.replicas} if application.autoscaled else {}
    return (
        Apply(deployment(application), origins.deployment, initial),
        Apply(service(application), origins.service),
    )


def _deployment_paths(container: str) -> Mapping[str, str]:
    return {
        "replicas": "spec.replicas",
        "affinity": "spec.template.spec.affinity",
        "image": f"{container}.image",
        "port": f"{container}.ports",
        "resources": f"{container}.resources",
        "command": f"{container}.command",
        "env": f"{container}.env",
        "readinessProbe": f"{container}.readinessProbe",
        "securityContext": f"{container}.securityContext",
    }


def deployment(application: Application) -> JsonObject:
    """Return the Deployment that runs the application."""
    container: JsonObject = {
        "name": application.container,
        "image": application.image,
        "ports": [
            {"name": application.port_name, "containerPort": application.port, "protocol": "TCP"}
        ],
        "resources": application.resources,
        **application.settings,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(application),
        "spec": {
            **({} if application.autoscaled else {"replicas": application.replicas}),
            "selector": {"matchLabels": {"app": application.name}},
            "template": {
                "metadata": {"labels": {**application.labels, "app": application.name}},
                "spec": {**application.pod, "containers": [container]},
            },
        },
    }


def service(application: Application) -> JsonObject:
    """Return the Service that selects the application's pods."""
    port = application.port
    its_metadata = metadata(application)
    if application.annotations:
        its_metadata["annotations"] = dict(application.annotations)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": its_metadata,
        "spec": {
            "selector": {"app": application.name},
            "ports": [
                {"name": application.port_name, "port": port, "targetPort": port, "protocol": "TCP"}
            ],
        },
    }


def metadata(application: Application) -> JsonObject:
    """Return the metadata of the Deployment and of the Service."""
    return {
        "name": application.name,
        "namespace": application.namespace,
        "labels": {**application.labels, "app": application.name},
    }
