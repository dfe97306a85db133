"""The few requests that the fixtures send; independent of the client under test."""

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

TIMEOUT = 10.0


class Api:
    """Sends requests to the API server as one user, without a proxy."""

    def __init__(self, url: str, ca: Path, token: str) -> None:
        self.url = url
        self._token = token
        tls = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca))
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), tls)

    def request(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> tuple[int, bytes]:
        """Return status code and body; code 0 if the server does not answer."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
        )
        try:
            with self._opener.open(request, timeout=TIMEOUT) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()
        except OSError as error:
            return 0, str(error).encode()

    def get(self, path: str) -> dict[str, Any]:
        """Return what is stored at `path`."""
        code, body = self.request("GET", path)
        assert code == 200, body
        return dict(json.loads(body))

    def found(self, path: str) -> bool:
        """Whether a GET of `path` succeeds."""
        return self.request("GET", path)[0] == 200
