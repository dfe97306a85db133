"""A bundle contains each unexpired authority once."""

from datetime import UTC, datetime, timedelta

import pytest

from certs import CertificateError, issue_ca, join, prune

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OLD = issue_ca("gatewright", NOW - timedelta(days=360)).certificate
NEW = issue_ca("gatewright", NOW).certificate


@pytest.mark.parametrize(
    ("bundles", "joined"),
    [
        ([], b""),
        ([b"", b"\n"], b""),
        ([OLD, NEW], OLD + NEW),
        ([NEW, OLD + NEW, NEW], NEW + OLD),
        ([NEW.replace(b"\n", b"\r\n"), NEW], NEW),
    ],
)
def test_join_keeps_each_authority_once_in_order(bundles, joined):
    """The first appearance decides the place."""
    assert join(*bundles) == joined


@pytest.mark.parametrize(("days", "left"), [(0, OLD + NEW), (6, NEW), (400, b"")])
def test_prune_drops_what_has_expired(days, left):
    """Only authorities that are still valid stay."""
    assert prune(OLD + NEW, NOW + timedelta(days=days)) == left


def test_an_empty_bundle_stays_empty():
    """Pruning an empty bundle is not an error."""
    assert prune(b"", NOW) == b""


def test_a_broken_bundle_is_an_error():
    """Text that is not PEM is rejected, not ignored."""
    with pytest.raises(CertificateError, match="the CA bundle is not valid PEM"):
        join(NEW, b"nonsense")
