"""Requests that go on while something else happens, each with its answer."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from tests.controlplane.api import Api
from tests.e2e import manifests

PAUSE = 0.02  # seconds between two requests
DEPLOYMENTS = "/apis/apps/v1/namespaces/production/deployments?dryRun=All"
BAD = manifests.deployment("bad", image="nginx:1.21")


@contextmanager
def attempts(api: Api) -> Iterator[Counter[int]]:
    """Create a Deployment that the production set denies, as dry runs, until the context exits.

    The result counts the status codes; 0 is no answer.
    """
    found, end = Counter[int](), Event()

    def create() -> None:
        while not end.wait(PAUSE):
            code, answer = api.request("POST", DEPLOYMENTS, BAD)
            # A user whom the API server does not know yet, after its restart.
            is_denial = b"denied the request" in answer or b"failed calling webhook" in answer
            found[code if code < 400 or code >= 500 or is_denial else 0] += 1

    thread = Thread(target=create, name="attempts")
    thread.start()
    try:
        yield found
    finally:
        end.set()
        thread.join()
