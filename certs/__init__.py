"""X.509 as pure functions that take the time as an argument."""

from certs.bundle import join, prune
from certs.check import check, expires, renewal_due
from certs.issue import CA_LIFETIME, SERVING_LIFETIME, issue_ca, issue_serving
from certs.pair import CertificateError, KeyPair

__all__ = [
    "CA_LIFETIME",
    "SERVING_LIFETIME",
    "CertificateError",
    "KeyPair",
    "check",
    "expires",
    "issue_ca",
    "issue_serving",
    "join",
    "prune",
    "renewal_due",
]
