"""X.509 as pure functions that take the time as an argument.

`issue` makes an authority and serving certificates, `pair` is a certificate with its key, `check`
finds what is wrong with a certificate and when to renew it, `bundle` joins the authorities to
trust.
"""

from certs.bundle import join, prune
from certs.check import check, expires, renewal_due, renewal_time
from certs.issue import CA_LIFETIME, SERVING_LIFETIME, check_authority, issue_ca, issue_serving
from certs.pair import CertificateError, KeyPair

__all__ = [
    "CA_LIFETIME",
    "SERVING_LIFETIME",
    "CertificateError",
    "KeyPair",
    "check",
    "check_authority",
    "expires",
    "issue_ca",
    "issue_serving",
    "join",
    "prune",
    "renewal_due",
    "renewal_time",
]
