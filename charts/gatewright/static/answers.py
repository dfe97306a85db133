"""Call each URL of the command line; a webhook must allow a review without an object.

Exit code 1: a URL does not answer within WAIT.
"""

import json
import ssl
import sys
import time
import urllib.request

WAIT = 30.0  # seconds; nodes learn the endpoints of a Service some time after its pods are ready

REVIEW = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "helm-test",
        "operation": "CONNECT",
        "kind": {"group": "gatewright.io", "version": "v1alpha1", "kind": "Probe"},
        "resource": {"group": "gatewright.io", "version": "v1alpha1", "resource": "probes"},
    },
}
# This pod has no right to read the CA; the controller verifies the certificate.
UNVERIFIED = ssl._create_unverified_context()  # noqa: S323


def call(url: str) -> None:
    """Print the status of the answer; raise OSError for none."""
    body = json.dumps(REVIEW).encode() if url.endswith("/validate") else None
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=10, context=UNVERIFIED) as response:  # noqa: S310
        answer = response.read()
    if body is not None and json.loads(answer)["response"]["allowed"] is not True:
        sys.exit(f"{url}: {answer.decode()}")
    print(f"{url}: {response.status}")


deadline = time.monotonic() + WAIT
for url in sys.argv[1:]:
    while True:
        try:
            call(url)
            break
        except OSError as error:
            if time.monotonic() > deadline:
                sys.exit(f"{url}: {error}")
            time.sleep(1)
