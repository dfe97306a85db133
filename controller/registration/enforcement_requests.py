"""Finds the dry runs by which policies are measured, and shares them between policies."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from controller.registration.enforcement_answers import ProbeRequest
from kube.client import Client
from kube.resource import Resource
from webhook.engine import BoundPolicy, Engine
from webhook.engine.match import LabeledNamespace, Labels

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NAMESPACES_FRESH = 30.0  # seconds
MAX_OF_POLICY = 4  # dry runs, each for other webhooks

# From a policy, the engine, namespaces with labels, and kinds (group and name) not to use.
FindDenied = Callable[
    [BoundPolicy, Engine, Sequence[LabeledNamespace], frozenset[tuple[str, str]]],
    ProbeRequest | None,
]
NamespaceGroup = tuple[bool, ...]  # of namespaces: which of the webhooks' selectors select them


class Way(NamedTuple):
    """What decides which webhooks the API server calls: requests of one way share their fate."""

    resource: Resource
    group: NamespaceGroup
    fails_closed: bool


@dataclass(frozen=True, eq=False, slots=True)
class DryRun:
    """A dry run that one or more policies deny."""

    request: ProbeRequest
    way: Way


class DryRuns:
    """The dry runs of the policies of one engine."""

    def __init__(
        self,
        client: Client,
        find: FindDenied,
        selectors: Callable[[], Sequence[Callable[[Labels], bool]]],
        *,
        excluded_namespaces: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take what finds a request that a policy denies.

        `selectors` are those of the registered webhooks: a policy is measured in a namespace of
        each group of namespaces that the same webhooks select.
        """
        self._client = client
        self._find = find
        self._selectors = selectors
        self._excluded = frozenset(excluded_namespaces)
        self._clock = clock
        self._groups: dict[NamespaceGroup, list[LabeledNamespace]] | None = None
        self._listed = 0.0
        self._denied: dict[NamespaceGroup, dict[str, DryRun]] = {}

    def clear(self) -> None:
        """Forget all, for another engine."""
        self._groups, self._denied = None, {}

    def forget(self, dry_runs: Iterable[DryRun]) -> None:
        """Find others instead: these are not denied, or their namespace is gone."""
        gone = frozenset(dry_runs)
        if gone:
            self._groups = None
            self._denied = {
                group: {title: dry_run for title, dry_run in denied.items() if dry_run not in gone}
                for group, denied in self._denied.items()
            }

    async def find(
        self, policy: BoundPolicy, engine: Engine, left_out: frozenset[tuple[str, str]]
    ) -> list[DryRun]:
        """Return a dry run for each group of namespaces in which a policy applies.

        It is that of another policy, if both deny it. Raises ApiError if namespaces cannot be
        listed.
        """
        if self._groups is None or self._clock() - self._listed > NAMESPACES_FRESH:
            self._groups, self._listed = await self._read_groups(), self._clock()
        dry_runs = list[DryRun]()
        for group, namespaces in self._groups.items():
            if len(dry_runs) == MAX_OF_POLICY:
                break
            denied = self._denied.setdefault(group, {})
            dry_run = denied.get(policy.title)
            if dry_run is None or _kind(dry_run.request) in left_out:
                request = await asyncio.to_thread(self._find, policy, engine, namespaces, left_out)
                if request is None:
                    continue
                dry_run = DryRun(request, Way(request.resource, group, policy.fails_closed))
                for title in {policy.title, *request.titles}:
                    denied[title] = dry_run
            dry_runs.append(dry_run)
        return dry_runs

    async def _read_groups(self) -> dict[NamespaceGroup, list[LabeledNamespace]]:
        """Return the namespaces that are sent to webhooks, by the webhooks that select them."""
        selectors = self._selectors()
        groups: dict[NamespaceGroup, list[LabeledNamespace]] = {}
        async for namespace in self._client.list(NAMESPACES, metadata_only=True):
            metadata = namespace["metadata"]
            name, labels = metadata["name"], metadata.get("labels") or {}
            if name not in self._excluded and not metadata.get("deletionTimestamp"):
                key = tuple(select(labels) for select in selectors)
                groups.setdefault(key, []).append((name, labels))
        for namespaces in groups.values():
            namespaces.sort(key=lambda each: (each[0] != "default", each[0]))
        return groups


def _kind(request: ProbeRequest) -> tuple[str, str]:
    return request.resource.group, request.resource.kind
