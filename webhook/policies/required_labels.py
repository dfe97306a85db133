"""Objects carry the labels that people and tools go by.

Why: who is called at night, who pays, what belongs together: all of it is found by labels, if they are there.

Judged: every kind in the table, or those that `match` names; with `where: pods` the labels that pods get, on pods and
on everything that makes pods. A pattern is a glob (`team-*`), or a regular expression between slashes (`/[0-9]{4}/`),
without look-around and back references, so that no value takes long; it must match the whole value.

Allowed: `labels: {team: team-shop}` with `labels: {team: team-*}`.
Denied:  the label missing, or `team: shop`.
Fix: add the label, or correct its value.
"""

from collections.abc import Iterator

from pydantic import Field

from webhook.engine import Policy, Request, Violation
from webhook.engine.patterns import OnMetadata, Pattern


class RequiredLabels(OnMetadata):
    """Which labels must be there, and with which values."""

    labels: dict[str, Pattern] = Field(
        min_length=1, description='labels and patterns of their values; "*" is any value'
    )


def validate(request: Request, params: RequiredLabels) -> Iterator[Violation]:
    """Yield one violation for each label that is missing or has another value."""
    yield from params.lacking(request, "labels", params.labels)


POLICY = Policy("required-labels", RequiredLabels, validate=validate, kinds="all", category="metadata")
