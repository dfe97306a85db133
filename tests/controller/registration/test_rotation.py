"""When the authority and the serving pair are issued, renewed and kept."""

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from certs import CertificateError, KeyPair, check, expires, issue_ca, issue_serving, join
from controller.registration.certificates import service_names
from controller.registration.rotation import (
    LOOK_AGAIN,
    Authority,
    Todo,
    plan,
    read_authority,
    read_pair,
    successor,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
NAMES = service_names("gatewright-webhook", "gatewright-system")
NAME = NAMES[0]

CA = issue_ca("ca", NOW)
OLD_CA = issue_ca("ca", NOW - 300 * DAY)
LEAF = issue_serving(CA, NAMES, [], NOW)
OLD_LEAF = issue_serving(OLD_CA, NAMES, [], NOW)

ALONE = Authority(CA, CA.certificate)
BOTH = Authority(CA, join(CA.certificate, OLD_CA.certificate))
DUE = Authority(OLD_CA, OLD_CA.certificate)

MAKE_AUTHORITY, MAKE_SERVING = Todo(authority=True), Todo(serving=True)


@pytest.mark.parametrize(
    ("authority", "serving", "published", "after", "todo"),
    [
        pytest.param(None, None, [], 0 * DAY, MAKE_AUTHORITY, id="the authority is made first"),
        pytest.param(
            None, LEAF, [CA.certificate], 0 * DAY, MAKE_AUTHORITY, id="and again when it is lost"
        ),
        pytest.param(ALONE, None, [], 0 * DAY, MAKE_SERVING, id="then the serving pair"),
        pytest.param(ALONE, LEAF, [], 0 * DAY, Todo(), id="then nothing"),
        pytest.param(
            ALONE,
            LEAF,
            [CA.certificate],
            19 * DAY,
            Todo(),
            id="nothing before two thirds of the leaf",
        ),
        pytest.param(
            ALONE, LEAF, [CA.certificate], 21 * DAY, MAKE_SERVING, id="a new leaf from then on"
        ),
        pytest.param(
            ALONE, LEAF, [b""], 21 * DAY, Todo(), id="but not while the authority is not published"
        ),
        pytest.param(ALONE, LEAF, [b"nonsense"], 21 * DAY, Todo(), id="nor while nonsense is"),
        pytest.param(
            ALONE, LEAF, [b""], 31 * DAY, MAKE_SERVING, id="an expired leaf is replaced in any case"
        ),
        pytest.param(
            DUE,
            OLD_LEAF,
            [OLD_CA.certificate],
            0 * DAY,
            MAKE_AUTHORITY,
            id="the CA is renewed on its own",
        ),
        pytest.param(
            BOTH,
            OLD_LEAF,
            [OLD_CA.certificate],
            0 * DAY,
            Todo(),
            id="first the bundle is published",
        ),
        pytest.param(
            BOTH, OLD_LEAF, [BOTH.bundle, OLD_CA.certificate], 0 * DAY, Todo(), id="to each webhook"
        ),
        pytest.param(
            BOTH, OLD_LEAF, [BOTH.bundle] * 2, 0 * DAY, MAKE_SERVING, id="then the leaf follows"
        ),
        pytest.param(
            BOTH, LEAF, [BOTH.bundle], 0 * DAY, Todo(), id="and the old CA stays for a while"
        ),
        pytest.param(
            BOTH,
            LEAF,
            [BOTH.bundle],
            66 * DAY,
            Todo(bundle=CA.certificate),
            id="until it expires, and is dropped",
        ),
        pytest.param(
            ALONE,
            issue_serving(CA, ["elsewhere"], [], NOW),
            [],
            0 * DAY,
            MAKE_SERVING,
            id="a leaf for other names",
        ),
        pytest.param(
            ALONE,
            KeyPair(LEAF.certificate, CA.key),
            [],
            0 * DAY,
            MAKE_SERVING,
            id="a key of another",
        ),
        pytest.param(
            ALONE, KeyPair(b"x", b"x"), [], 0 * DAY, MAKE_SERVING, id="a leaf that is none"
        ),
    ],
)
def test_each_step_of_a_rotation_keeps_every_served_certificate_trusted(
    authority, serving, published, after, todo
):
    """The steps of a rotation come in an order in which clients trust every served certificate."""
    found = plan(authority, serving, published, NAME, NOW + after)
    assert replace(found, look_again=LOOK_AGAIN) == todo
    assert timedelta(minutes=1) <= found.look_again <= LOOK_AGAIN


def test_the_next_check_is_when_a_step_is_due():
    """The next look is when the step is due, not an hour later."""
    due = NOW - timedelta(hours=1) + (30 * DAY + timedelta(hours=1)) * 2 / 3
    assert plan(ALONE, LEAF, [], NAME, due - timedelta(minutes=20)).look_again == timedelta(
        minutes=20
    )


@pytest.mark.long
def test_a_rotation_never_serves_what_is_not_trusted():
    """On each day of two years, with late publication, the caBundle verifies the leaf."""
    authority, serving, registered = None, None, b""
    authorities, leaves = 0, 0
    for day in range(730):
        now = NOW + day * DAY
        for _ in range(5):
            todo = plan(authority, serving, [registered], NAME, now)
            if todo.authority:
                authority, authorities = (
                    successor(issue_ca("ca", now), authority, [registered], now),
                    authorities + 1,
                )
            elif todo.bundle is not None:
                authority = Authority(authority.pair, todo.bundle)
            elif todo.serving:
                serving, leaves = issue_serving(authority.pair, NAMES, [], now), leaves + 1
                assert expires(serving.certificate) <= expires(authority.pair.certificate)
            else:
                break
        if day % 3 == 0:
            registered = authority.bundle
        check(serving, registered, NAME, now)
    assert (authorities, leaves) == (3, 38)


@pytest.mark.parametrize(
    ("before", "published", "bundle"),
    [
        (None, [], CA.certificate),
        (DUE, [], BOTH.bundle),
        (DUE, [LEAF.certificate], BOTH.bundle),
        (None, [OLD_CA.certificate, OLD_CA.certificate], BOTH.bundle),
        (None, [b"nonsense", b""], CA.certificate),
        (Authority(OLD_CA, issue_ca("ca", NOW - 400 * DAY).certificate), [], CA.certificate),
    ],
)
def test_a_new_authority_keeps_the_previous_one_in_the_bundle(before, published, bundle):
    """The bundle keeps the previous authority, or the published one if that is lost, but no expired one."""
    assert successor(CA, before, published, NOW) == Authority(CA, bundle)


def secret(**data: bytes) -> dict:
    """Make a stored Secret."""
    return {
        "data": {
            key.replace("_", "."): base64.b64encode(value).decode() for key, value in data.items()
        }
    }


@pytest.mark.parametrize(
    ("stored", "authority"),
    [
        (secret(tls_crt=CA.certificate, tls_key=CA.key, ca_crt=BOTH.bundle), BOTH),
        (secret(tls_crt=CA.certificate, tls_key=CA.key, ca_crt=b""), ALONE),
        (secret(tls_crt=CA.certificate, tls_key=CA.key, ca_crt=b"nonsense"), ALONE),
        (secret(tls_crt=CA.certificate, tls_key=CA.key), ALONE),
        (secret(tls_crt=CA.certificate, tls_key=LEAF.key), None),
        (secret(tls_crt=LEAF.certificate, tls_key=LEAF.key), None),
        (secret(tls_crt=CA.certificate), None),
        (secret(tls_crt=b"x", tls_key=b"x"), None),
        ({"data": {"tls.crt": "###", "tls.key": "###"}}, None),
        ({"data": None}, None),
        ({}, None),
        (None, None),
    ],
)
def test_an_authority_is_read_or_there_is_none(stored, authority):
    """An incomplete authority, or one that cannot sign, counts as none.

    An invalid bundle is replaced by the authority.
    """
    assert read_authority(stored, NOW) == authority


def test_an_expired_authority_is_none():
    """Clients would trust nothing that it signs."""
    assert read_authority(secret(tls_crt=CA.certificate, tls_key=CA.key), NOW + 400 * DAY) is None


@pytest.mark.parametrize("ahead", [400 * DAY, -4000 * DAY, 0 * DAY])
def test_certificates_of_a_wrong_clock_are_replaced(ahead):
    """After the clock is corrected, certificates of any wrong time are replaced as at the first start."""
    authority = issue_ca("ca", NOW + ahead)
    serving = issue_serving(authority, NAMES, [], NOW + ahead)
    steps = []
    while True:
        stored = read_authority(_secret(authority), NOW)
        todo = plan(stored, serving, [authority.certificate], NAME, NOW)
        if not (todo.authority or todo.serving):
            break
        steps.append("authority" if todo.authority else "serving")
        assert len(steps) <= 2
        if todo.authority:
            authority = issue_ca("ca", NOW)
        else:
            serving = issue_serving(authority, NAMES, [], NOW)
    assert steps == (["authority", "serving"] if ahead else [])
    check(serving, authority.certificate, NAME, NOW)


def _secret(authority):
    """Return the authority's Secret."""
    parts = {
        "tls.crt": authority.certificate,
        "tls.key": authority.key,
        "ca.crt": authority.certificate,
    }
    return {"data": {name: base64.b64encode(part).decode() for name, part in parts.items()}}


def test_a_pair_needs_both_halves():
    """A certificate without its key is no pair."""
    assert read_pair(secret(tls_crt=b"a", tls_key=b"b")) == KeyPair(b"a", b"b")
    assert read_pair(secret(tls_crt=b"a")) is None


@pytest.mark.parametrize("name", NAMES)
def test_the_leaf_carries_every_name_of_the_service(name):
    """The names range from the short one to the one with the cluster's domain."""
    check(LEAF, CA.certificate, name, NOW)
    with pytest.raises(CertificateError):
        check(LEAF, CA.certificate, f"x.{name}", NOW)
