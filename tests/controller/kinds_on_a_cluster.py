"""A small kind of a test's own on the shared control plane: a Note with a ConfigMap."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, ClassVar

from prometheus_client import CollectorRegistry
from pydantic import Field

from config import crds
from controller.runtime.leader import LeaseSettings
from controller.runtime.manager import Manager
from gatewright.kind import (
    ApiModel,
    Apply,
    CustomResource,
    Definition,
    Observed,
    Plan,
    PlannedKind,
    Resource,
    Status,
    Step,
)
from kube import credentials
from tests.controlplane.plane import ControlPlane

CONFIGMAP = Resource("", "v1", "configmaps", "ConfigMap")
JsonDict = dict[str, Any]


class NoteSpec(ApiModel):
    """The desired state."""

    text: str = Field("", description="The text.")


class Note(CustomResource):
    """A text in a ConfigMap."""

    definition: ClassVar[Definition] = Definition("notes.example.com", "v1", "Note", "notes")
    spec: NoteSpec = Field(NoteSpec(), description="The desired state.")
    status: Status = Field(Status(), description="The observed state.")


def plan(note: Note, observed: Observed, now: datetime) -> Plan:
    """Plan the ConfigMap."""
    metadata = {"name": note.name, "namespace": note.namespace}
    data = {"text": note.spec.text}
    configmap = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return Plan((Step("configmap", [Apply(configmap)]),), Status())


NOTE = PlannedKind(Note, plan=plan, owns=(CONFIGMAP,))


def crd() -> JsonDict:
    """The CustomResourceDefinition of Notes."""
    return crds.definition(Note)


def note(namespace: str, name: str = "first", text: str = "hello") -> JsonDict:
    """A Note."""
    metadata = {"name": name, "namespace": namespace}
    about = {"apiVersion": "notes.example.com/v1", "kind": "Note"}
    return {**about, "metadata": metadata, "spec": {"text": text}}


@asynccontextmanager
async def controlling(
    plane: ControlPlane,
    namespaces: list[str],
    *,
    kind: PlannedKind[Note] = NOTE,
    lease: LeaseSettings | None = None,
    identity: str = "the-test",
) -> AsyncIterator[Manager]:
    """Run a controller of Notes in some namespaces until the end of the block."""
    endpoint = await credentials.load(plane.kubeconfig, environment={})
    manager = Manager(
        endpoint,
        CollectorRegistry(),
        identity=identity,
        lease=lease,
        namespaces=namespaces,
        user_agent=identity,
    )
    manager.add_kind(kind)
    stop = asyncio.Event()
    async with asyncio.timeout(120), asyncio.TaskGroup() as group:
        group.create_task(manager.run(stop))
        try:
            yield manager
        finally:
            stop.set()
