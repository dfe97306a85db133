"""Finds what a case sets and no policy uses: look-ups, and labels that no selector names."""

from collections.abc import Iterable, Iterator, Sequence

from config.api.match import LabelSelector
from config.faults import did_you_mean
from config.field_paths import value_at
from webhook import review
from webhook.engine import NAMESPACE, NAMESPACE_LABELS
from webhook.engine.request import NAME_LABEL
from webhook.harness.cases import Trial
from webhook.harness.reviews import review as encode


def find_unused(trial: Trial) -> Iterator[str]:
    """Yield the look-ups and labels of the namespace that the case sets but no policy uses."""
    if trial.looks_up:
        about = review.attributes(encode(trial.admission))
        needed = trial.engine.needs(about)
        for name in sorted(trial.looks_up - needed):
            yield f"looked_up.{name}: no policy uses this look-up for the request"
    yield from _find_unselected(trial)


def _find_unselected(trial: Trial) -> Iterator[str]:
    """Yield labels that no selector names: with a typo, `not-matched` would pass."""
    policies = trial.engine.policies
    clauses = [clause for each in policies for clause in each.match.written]
    in_namespace = [
        clause.namespace_selector for clause in clauses if clause.namespace_selector is not None
    ]
    in_object = [
        selector
        for clause in clauses
        for selector in (clause.object_selector, clause.pod_selector)
        if selector
    ]
    if not any({NAMESPACE_LABELS, NAMESPACE} & each.needs for each in policies):
        set_labels = trial.looked_up[NAMESPACE_LABELS].keys() - {NAME_LABEL}
        yield from _find_unnamed("namespace_labels", set_labels, in_namespace)
    if trial.expect == "not-matched" and not any(each.condition for each in policies):
        labels = value_at(trial.admission.about, "metadata.labels") or {}
        yield from _find_unnamed("object.metadata.labels", labels, in_object)


def _find_unnamed(
    path: str, labels: Iterable[str], selectors: Sequence[LabelSelector]
) -> Iterator[str]:
    named = {key for each in selectors for key in each.match_labels}
    named |= {each.key for selector in selectors for each in selector.match_expressions}
    for key in labels if selectors else ():
        if key not in named:
            yield f"{path}.{key}: no policy selects by this label{did_you_mean(key, named)}"
