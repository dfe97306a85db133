"""Waits until a leader renews its lock in the Endpoints of the database."""

import json
import os
import ssl
import time
import urllib.request
from pathlib import Path

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
NAMESPACE, NAME = os.environ["PATRONI_KUBERNETES_NAMESPACE"], os.environ["PATRONI_SCOPE"]
HOST, PORT = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
HOST = f"[{HOST}]" if ":" in HOST else HOST
URL = f"https://{HOST}:{PORT}/api/v1/namespaces/{NAMESPACE}/endpoints/{NAME}"


def read_lock() -> tuple[str | None, str | None]:
    """Return the leader and when it renewed its lock; nothing if there is none, or no answer."""
    token = (ACCOUNT / "token").read_text()
    request = urllib.request.Request(URL, headers={"Authorization": f"Bearer {token}"})
    trusted = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    try:
        with urllib.request.urlopen(request, timeout=5, context=trusted) as answer:  # noqa: S310
            annotations: dict[str, str] = json.load(answer)["metadata"].get("annotations", {})
    except OSError as error:
        print(f"reading the Endpoints {NAME}: {error}", flush=True)
        return None, None
    return annotations.get("leader"), annotations.get("renewTime")


# The lock may be old, of a leader before a return to a release without Patroni: it must be renewed.
first = leader, renewed = read_lock()
while not leader or renewed in (None, first[1]):
    print("this standby waits until the primary runs under Patroni", flush=True)
    time.sleep(2)
    leader, renewed = read_lock()
