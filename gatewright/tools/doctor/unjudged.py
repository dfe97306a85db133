"""What was not judged, for people to know: webhooks without rules, and what files lack."""

from collections.abc import Iterator

from gatewright.tools.doctor.callers import callers
from gatewright.tools.doctor.hazards import shorten_words
from gatewright.tools.doctor.issuers import injector
from gatewright.tools.doctor.models import ClusterBinding, ClusterPolicy, WebhookConfiguration
from gatewright.tools.doctor.state import ADMISSION, ClusterState


def note_unjudged(state: ClusterState) -> Iterator[str]:
    """Yield a note for each part of the state that no check could judge."""
    for configuration in state.all(WebhookConfiguration):
        names = [each.name for each in configuration.webhooks if not each.rules]
        if names or not configuration.webhooks:
            yield f"{configuration.title}: not judged: {_without_rules(names, state)}"
    if not state.is_live:
        yield from _missing_from_files(state)


def has_rules(configuration: WebhookConfiguration) -> bool:
    """Return whether some webhook of a configuration has rules."""
    return any(each.rules for each in configuration.webhooks)


def _without_rules(names: list[str], state: ClusterState) -> str:
    if not names:
        fault = "it has no webhooks"
    else:
        fault = f"{shorten_words(names)} {'has' if len(names) == 1 else 'have'} no rules"
    if state.is_live:
        return f"{fault}, so the API server calls none of them"
    return f"{fault}; a program that adds them in the cluster is judged there"


def _missing_from_files(state: ClusterState) -> Iterator[str]:
    called = list(callers(state))
    services = {each.config.service: None for each in called if each.config.service is not None}
    for service in services:
        if state.service(service) is None:
            subjects = {e.subject.title: None for e in called if e.config.service == service}
            yield (
                f"Service {service}: not judged: it is not in the files, so neither are its pods; "
                f"{shorten_words(list(subjects))} call{'s' if len(subjects) == 1 else ''} it"
            )
    injected = {each.subject.title: injector(each.subject.metadata) for each in called}
    for title, annotation in injected.items():
        if annotation:
            yield f"{title}: caBundle is not judged: it is set in the cluster ({annotation})"
    policies = {(each.kind, each.metadata.name) for each in state.all(ClusterPolicy)}
    bound = set[tuple[str, str]]()
    for binding in state.all(ClusterBinding):
        key = binding.kind.removesuffix("Binding"), binding.spec.policy_name
        bound.add(key)
        if key not in policies:
            yield f"{binding.title}: not judged: its policy {key[1]} is not in the files"
    for kind, name in sorted(policies - bound):
        if (ADMISSION, f"{kind}Binding") not in state.complete:
            yield f"{kind} {name}: not judged: no binding of it is in the files"
