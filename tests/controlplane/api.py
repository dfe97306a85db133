"""The few requests that the fixtures send; independent of the client under test."""

import json
import select
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.waiting import until

TIMEOUT = 10.0
TOO_MANY_REQUESTS = 429  # also from a resource whose CRD was just created


class Api:
    """Sends requests to the API server as one user, without a proxy; any thread may.

    Connections are kept: a TLS handshake costs both sides more than most requests.
    """

    def __init__(self, url: str, ca: Path, token: str) -> None:
        self.url = url
        self._address = urlsplit(url)
        self._tls = ssl.create_default_context(cafile=ca)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._idle: list[HTTPConnection] = []

    def request(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> tuple[int, bytes]:
        """Return status code and body; code 0 if the server does not answer."""
        connection = self._connection()
        content = None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, content, self._headers)
            answer = connection.getresponse()
            code, read = answer.status, answer.read()
        except (OSError, HTTPException) as error:
            connection.close()
            return 0, str(error).encode()
        if connection.sock is not None:  # the server keeps it, too
            self._idle.append(connection)
        return code, read

    def get(self, path: str) -> dict[str, Any]:
        """Return what is stored at `path`; as kubectl, ask again while the API server answers 429."""
        code, body = 0, b""

        def is_answered() -> bool:
            nonlocal code, body
            code, body = self.request("GET", path)
            return code != TOO_MANY_REQUESTS

        until(is_answered, problem=lambda: body)
        assert code == 200, body
        return dict(json.loads(body))

    def found(self, path: str) -> bool:
        """Whether a GET of `path` succeeds."""
        return self.request("GET", path)[0] == 200

    def close(self) -> None:
        """Close the connections."""
        while connection := self._pop():
            connection.close()

    def _connection(self) -> HTTPConnection:
        """Take an idle connection that the server has not closed, or prepare one."""
        while connection := self._pop():
            ended = select.poll()
            ended.register(connection.sock, select.POLLIN)
            if not ended.poll(0):
                return connection
            connection.close()
        host, port = self._address.hostname, self._address.port
        if self._address.scheme == "https":
            return HTTPSConnection(host, port, timeout=TIMEOUT, context=self._tls)
        return HTTPConnection(host, port, timeout=TIMEOUT)

    def _pop(self) -> HTTPConnection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None
