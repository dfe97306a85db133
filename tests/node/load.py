"""Generates load: users who continuously create good and bad objects as dry runs, and the API server's answers."""

import copy
import http.client
import json
import ssl
import threading
import time
from collections import Counter
from typing import Self
from urllib.parse import urlsplit

from tests.node.installation import BAD, GOOD, TOO_MANY, Installation

USERS = 4
PAUSE = 0.05
PATH = "/apis/apps/v1/namespaces/production/deployments?dryRun=All&timeout=10s"


class Load:
    """The users; they run until the context exits."""

    def __init__(self, installation: Installation, *, bad_is_allowed: bool = False) -> None:
        """With `bad_is_allowed`, a bad object may be allowed too, while the policies change."""
        self._url = urlsplit(installation.plane.url)
        self._tls = ssl.create_default_context(cafile=installation.plane.ca_file)
        self._token = installation.plane.token
        self._bad_is_allowed = bad_is_allowed
        self._done = threading.Event()
        self._threads = [threading.Thread(target=self._work) for _ in range(USERS)]
        self.answered = Counter[str]()
        self.failed: list[str] = []
        self.seconds: list[float] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()

    def __str__(self) -> str:
        slow = sorted(self.seconds)[len(self.seconds) * 99 // 100] if self.seconds else 0
        return f"{len(self.failed)} of {len(self.seconds)} calls failed, p99 {slow * 1000:.0f} ms"

    def _work(self) -> None:
        connection = self._connection()
        number = 0
        while not self._done.wait(PAUSE):
            number += 1
            began = time.monotonic()
            try:
                self._note(number % 2 == 0, *self._ask(connection, number))
            except (OSError, http.client.HTTPException) as error:
                self.failed.append(f"{time.strftime('%T')} {error!r}")
                connection.close()  # the next request opens it again
            self.seconds.append(time.monotonic() - began)
        connection.close()

    def _connection(self) -> http.client.HTTPSConnection:
        host, port = self._url.hostname, self._url.port
        return http.client.HTTPSConnection(host, port, context=self._tls, timeout=15)

    def _ask(self, connection: http.client.HTTPSConnection, number: int) -> tuple[int, str]:
        wanted = copy.deepcopy(BAD if number % 2 == 0 else GOOD)
        wanted["metadata"]["name"] = f"{threading.get_ident()}-{number}"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        connection.request("POST", PATH, json.dumps(wanted), headers)
        with connection.getresponse() as answer:
            return answer.status, answer.read().decode()

    def _note(self, bad: bool, code: int, answer: str) -> None:
        denied = code == 403 and TOO_MANY in answer
        right = denied if bad else code == 201
        if right or (bad and self._bad_is_allowed and code == 201):
            self.answered["denied" if denied else "allowed"] += 1
        else:
            self.failed.append(f"{time.strftime('%T')} {code} {answer[:300]}")
