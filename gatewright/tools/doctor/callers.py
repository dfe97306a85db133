"""The servers that the API server calls: webhooks, conversions and aggregated APIs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gatewright.tools.doctor.hazards import (
    CRITICAL,
    WARNING,
    Hazard,
    ObjectPatch,
    join_words,
    patch_command,
    setting,
    shorten_words,
)
from gatewright.tools.doctor.models import (
    ApiService,
    ClientConfig,
    ClusterObject,
    ResourceDefinition,
)
from gatewright.tools.doctor.state import ClusterState, Registered

Effect = Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class Caller:
    """A server that an object makes the API server call; webhooks of one server count once.

    `effect` says which requests fail without it, for the `names` of webhooks or resources;
    `bundles` are the JSON pointers of its CA bundle; `opens` is the patch with which these requests
    pass, where there is one.
    """

    subject: ClusterObject
    path: str
    config: ClientConfig
    effect: Effect
    names: tuple[str, ...]
    bundles: tuple[str, ...]
    is_fatal: bool = True
    opens: ObjectPatch = ()
    verifies: bool = True

    @property
    def fails(self) -> str:
        """The requests that fail without it."""
        return self.effect(self.names)

    @property
    def level(self) -> str:
        """How bad it is that nothing answers."""
        return CRITICAL if self.is_fatal else WARNING

    def hazard(
        self, check: str, level: str, message: str, fix: str, patch: ObjectPatch = (), run: str = ""
    ) -> Hazard:
        """Return a finding about the CA bundle or the server.

        Where nothing fixes it, its command lets the requests pass meanwhile.
        """
        if self.opens and level == CRITICAL and not patch and not run:
            fix = f"{fix}, and meanwhile let requests pass unchecked"
            run = patch_command(self.subject, self.opens)
        return Hazard(check, level, self.subject, self.path, message, fix, patch, run)


def callers(state: ClusterState) -> Iterator[Caller]:
    """Yield each server that the API server calls."""
    alike: dict[tuple[str, bool, str], list[Registered]] = {}
    for registered in state.registered_webhooks():
        config = registered.webhook.client_config
        key = registered.configuration.title, registered.fails_closed, config.model_dump_json()
        alike.setdefault(key, []).append(registered)
    for webhooks in alike.values():
        yield _judging(webhooks)
    for definition in state.all(ResourceDefinition):
        if definition.is_converted:
            yield Caller(
                definition,
                "spec.conversion.webhook",
                definition.converter,
                describe_unconverted,
                (f"{definition.plural}.{definition.group}",),
                bundles=("/spec/conversion/webhook/clientConfig/caBundle",),
            )
    for aggregated in state.all(ApiService):
        if aggregated.service is not None:
            yield Caller(
                aggregated,
                "spec.service",
                ClientConfig(service=aggregated.service, ca_bundle=aggregated.ca_bundle),
                describe_unanswered,
                (f"{aggregated.group}/{aggregated.version}",),
                bundles=("/spec/caBundle",),
                verifies=not aggregated.is_unverified,
            )


def describe_refusal(names: Sequence[str]) -> str:
    """Return the effect of webhooks that fail closed and do not answer."""
    judge = "judges" if len(names) == 1 else "judge"
    return f"every request that {join_words(names)} {judge} is refused"


def describe_unchecked(names: Sequence[str]) -> str:
    """Return the effect of webhooks that fail open and do not answer."""
    judge = "judges" if len(names) == 1 else "judge"
    return f"{join_words(names)} {judge} nothing: requests pass unchecked"


def describe_unconverted(names: Sequence[str]) -> str:
    """Return the effect of a conversion webhook that does not answer."""
    named = shorten_words(names)
    return f"{named} cannot be read, listed or written in other versions than the stored one"


def describe_unanswered(names: Sequence[str]) -> str:
    """Return the effect of an aggregated API that does not answer."""
    return f"requests of {shorten_words(names)} fail, and no namespace can be deleted"


def _judging(webhooks: Sequence[Registered]) -> Caller:
    """Return the caller of webhooks that call the same server."""
    first = webhooks[0]
    return Caller(
        first.configuration,
        first.path,
        first.webhook.client_config,
        describe_refusal if first.fails_closed else describe_unchecked,
        tuple(each.name for each in webhooks),
        bundles=tuple(f"{each.pointer}/clientConfig/caBundle" for each in webhooks),
        is_fatal=first.fails_closed,
        opens=tuple(
            op
            for webhook in webhooks
            if webhook.fails_closed
            for op in setting(webhook, "failurePolicy", "Ignore")
        ),
    )
