"""The serving certificate of pods: reissued, it is served without a restart."""

import base64
import ssl
import sys

import pytest

from tests.node.conftest import Figures
from tests.node.installation import WEBHOOK, Installation
from tests.node.load import Load
from tests.node.release import NAMESPACE

pytestmark = [pytest.mark.node, pytest.mark.long]

# Ten seconds on a machine that does nothing else.
SERVED_WITHIN = 40.0
SECRET = "gatewright-webhook-tls"
SHOWN = "import ssl, sys; print(ssl.get_server_certificate((sys.argv[1], 9443)))"


def test_a_new_certificate_is_served_by_every_pod(installed: Installation, figure: Figures) -> None:
    """Deleting the Secret makes the leader issue a new one; no call fails."""
    before = issued(installed)
    with Load(installed) as load:
        installed.cluster.kubectl("delete", "secret", SECRET, "-n", NAMESPACE)
        installed.until("it is reissued", lambda: issued(installed) not in ("", before))
        new = issued(installed)
        took = installed.until("all serve it", lambda: served(installed) == {new})
    figure(f"served by all {took:.1f} s after it was issued; {load}")
    assert load.failed == []
    assert took < SERVED_WITHIN


def issued(installation: Installation) -> str:
    """Return the certificate of the Secret, or "" if there is none."""
    secrets = installation.plane.resources.find("secrets", NAMESPACE)
    data = [each["data"]["tls.crt"] for each in secrets if each["metadata"]["name"] == SECRET]
    return normal(base64.b64decode(data[0]).decode()) if data else ""


def served(installation: Installation) -> set[str]:
    """Return the certificates that the webhook's pods serve."""
    addresses = [pod["status"]["podIP"] for pod in installation.pods(WEBHOOK)]
    shown = [installation.node.machine.run(sys.executable, "-c", SHOWN, ip) for ip in addresses]
    return {normal(pem) for pem in shown}


def normal(pem: str) -> str:
    """Return the first certificate of a file in a normalized form."""
    end = "-----END CERTIFICATE-----"
    first = pem.partition(end)[0] + end
    return ssl.DER_cert_to_PEM_cert(ssl.PEM_cert_to_DER_cert(first.strip()))
