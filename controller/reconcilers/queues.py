"""The queue of AppStack and EcommercePlatform: a RabbitMQ or NATS server with a volume."""

from collections.abc import Callable, Mapping, Sequence

from config.api.components import Queue
from controller.reconcilers import nats, rabbitmq
from controller.reconcilers.component import Component, ComponentsParent, without
from controller.reconcilers.resources import SERVICE, STATEFUL_SET
from controller.reconcilers.servers import Server, ServerSettings, password, serve
from controller.reconcilers.software import SOFTWARE_LABEL, Software
from controller.runtime.plan import Problem
from kube.resource import JsonObject

LOGIN = "app"
NAME = "queue"
Types = Mapping[str, tuple[Software, Callable[[Server], JsonObject], str]]
TYPES: Types = {  # with the scheme of URLs
    "rabbitmq": (rabbitmq.RABBITMQ, rabbitmq.pod, "amqp"),
    "nats": (nats.NATS, nats.pod, "nats"),
}


def queue(parent: ComponentsParent, spec: Queue | None) -> Component:
    """Return the queue; without a `spec`, a disabled one, whose volume and password stay.

    An existing queue of another type does not change, since it has the messages.
    """
    name = parent.child_name(NAME)
    if spec is None:
        services = [(SERVICE, name), (SERVICE, f"{name}-headless")]
        return without(parent, NAME, [(STATEFUL_SET, name), *services])
    existing = _type_of_existing(parent)
    if existing not in (None, spec.type):
        wrong = (
            f"it is {existing}, and spec.queue.type: {spec.type} would leave its messages behind; "
            "set it back"
        )
        return Component(NAME).with_problem(Problem(wrong, "TypeChanged"))
    software, pod, scheme = TYPES[spec.type]
    tier = parent.tier
    settings = ServerSettings(
        spec.version,
        spec.storage,
        tier.queue_storage,
        spec.storage_class_name,
        spec.resources,
        tier.queue,
        spec.deletion_policy,
    )
    _, component = serve(parent, software, name, settings, pod)
    return component._replace(url=parent.url(scheme, NAME, software.port))


def queue_variables(parent: ComponentsParent, spec: Queue | None) -> Sequence[JsonObject]:
    """Return the environment of a workload that uses the queue: its endpoint and credentials."""
    if spec is None:
        return []
    software, _, scheme = TYPES[_type_of_existing(parent) or spec.type]
    name = parent.child_name(NAME)
    login = "$(QUEUE_USER):$(QUEUE_PASSWORD)@$(QUEUE_HOST):$(QUEUE_PORT)"
    return [
        {"name": "QUEUE_HOST", "value": name},
        {"name": "QUEUE_PORT", "value": str(software.port)},
        {"name": "QUEUE_USER", "value": LOGIN},
        {"name": "QUEUE_PASSWORD", "valueFrom": password(name, software, "password")},
        {"name": "QUEUE_URL", "value": f"{scheme}://{login}"},
    ]


def _type_of_existing(parent: ComponentsParent) -> str | None:
    stored = parent.observed.child(STATEFUL_SET, parent.child_name(NAME))
    named = None if stored is None else stored["metadata"].get("labels", {}).get(SOFTWARE_LABEL)
    return named if named in TYPES else None
