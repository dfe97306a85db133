"""AppStack: database, cache, queue, backend and frontend, each once those before are ready."""

from datetime import datetime

from config.api.appstack import AppStack
from controller.reconcilers.claims import READS_CLASSES
from controller.reconcilers.component import ComponentsParent
from controller.reconcilers.components import (
    WORKLOAD,
    cache,
    url_variable,
    without_cache,
    without_workload,
    workload,
)
from controller.reconcilers.databases import (
    BACKUPS,
    OWNED,
    READS_JOBS,
    database,
    variables,
    without_database,
)
from controller.reconcilers.labels import inherited
from controller.reconcilers.queues import queue, queue_variables
from controller.reconcilers.resources import (
    BACKUP,
    CLAIM,
    POSTGRESQL,
    SECRET,
    STATEFUL_SET,
    STORAGE_CLASS,
)
from controller.reconcilers.rollup import rolled_up
from controller.reconcilers.servers import INDEX, READS_CLAIMS, by_parent
from controller.reconcilers.services import INDEX as SERVICES
from controller.reconcilers.services import READS_SERVICES, by_uid, services
from controller.reconcilers.tiers import TIERS
from controller.runtime.kind import PlannedKind
from controller.runtime.plan import Observed, Plan

FINALIZER = "app.example.com/finalizer"


def plan(stack: AppStack, observed: Observed, now: datetime) -> Plan:
    """Plan what should exist for `stack`, given what was `observed`."""
    spec = stack.spec
    labels = {**inherited(stack), "stack": stack.name}
    parent = ComponentsParent(
        stack.name,
        stack.namespace,
        labels,
        TIERS[spec.environment],
        observed,
        stack.status.conditions,
        now,
        is_deleting=stack.metadata.deletion_timestamp is not None,
    )
    stores = database(parent, spec.database) if spec.database else without_database(parent)
    caches = cache(parent, spec.cache) if spec.cache else without_cache(parent)
    login = variables(parent, spec.database) if spec.database else []
    cache_url = url_variable("CACHE_URL", caches)
    messages, queue_login = queue(parent, spec.queue), queue_variables(parent, spec.queue)
    backend = (
        workload(parent, "backend", spec.backend, [*login, *cache_url, *queue_login])
        if spec.backend
        else without_workload(parent, "backend")
    )
    frontend = (
        workload(
            parent, "frontend", spec.frontend, [*url_variable("BACKEND_URL", backend), *cache_url]
        )
        if spec.frontend
        else without_workload(parent, "frontend")
    )
    components = [stores, caches, messages, backend, frontend]
    in_order = [(component, components[:index]) for index, component in enumerate(components)]
    further = services(
        parent,
        stack.uid,
        spec.services,
        {component.name: component for component in components},
        {"database": login, "queue": queue_login},
    )
    return rolled_up(stack, [*in_order, *further])


REMOVED = WORKLOAD
APP_STACK = PlannedKind(
    AppStack,
    plan=plan,
    owns=(*OWNED, *REMOVED),
    creates_only=(SECRET,),
    reads=(READS_CLAIMS, READS_CLASSES, READS_JOBS, READS_SERVICES),
    patches=(CLAIM,),
    deletes=(*REMOVED, POSTGRESQL, STATEFUL_SET, CLAIM, *BACKUPS),
    optional=(STORAGE_CLASS, BACKUP),
    indexes={INDEX: by_parent, SERVICES: by_uid},
    finalizer=FINALIZER,
)
