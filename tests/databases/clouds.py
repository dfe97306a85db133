"""Object stores that speak Google's and Azure's protocols, each with one bucket."""

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.databases.s3 import BUCKET
from tests.databases.servers import Server

ACCOUNT = "backups1"
AZURE_KEY = base64.b64encode(b"a key of an account/+").decode()


class GoogleStore(Server):
    """fake-gcs-server, and Google's issuer of tokens, which checks that the account's key signed."""

    name = "gcs"
    unprivileged = False  # the cache of built programs may be private

    def __init__(self, program: Path) -> None:
        """Take the path of the program."""
        super().__init__()
        self._program = program
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def prepare(self) -> None:
        """Start it, with a bucket."""
        place = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(self.port)]
        public = ["-public-host", f"127.0.0.1:{self.port}"]
        self.start(self._program, *place, *public, "-backend", "memory")
        self.request("POST", "b?project=shop", json.dumps({"name": BUCKET}).encode())

    def answers(self) -> bool:
        """Whether it answers."""
        try:
            self.request("GET", "b?project=shop")
        except urllib.error.URLError:
            return False
        return True

    def request(self, method: str, path: str, body: bytes | None = None) -> None:
        """Send a request."""
        url, headers = f"{self.url}{path}", {"Content-Type": "application/json"}
        request = urllib.request.Request(url, data=body, method=method, headers=headers)
        urllib.request.urlopen(request, timeout=60).close()

    @property
    def url(self) -> str:
        """The URL of its API."""
        return f"http://127.0.0.1:{self.port}/storage/v1/"

    @contextmanager
    def issuer(self) -> Iterator[dict[str, str]]:
        """Run the issuer of tokens; yields the Secret with the account's key file."""
        public = self._key.public_key()

        class Issuer(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                (signed,) = urllib.parse.parse_qs(self.rfile.read(length).decode())["assertion"]
                claims, _, signature = signed.rpartition(".")
                public.verify(
                    base64.urlsafe_b64decode(signature + "=="),
                    claims.encode(),
                    padding.PKCS1v15(),
                    hashes.SHA256(),
                )
                answer = {"access_token": "token", "token_type": "Bearer", "expires_in": 3600}
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

            def log_message(self, format: str, *arguments: object) -> None:
                """Print nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Issuer) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            yield {"credentials.json": self._key_file(f"http://127.0.0.1:{server.server_port}")}
            server.shutdown()

    def _key_file(self, token_uri: str) -> str:
        pem = self._key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        account = {"client_email": "backups@shop.iam", "private_key": pem.decode()}
        return json.dumps({"type": "service_account", "token_uri": token_uri, **account})


class AzureStore(Server):
    """Azurite, whose one account has AZURE_KEY."""

    name = "azure"
    unprivileged = False  # the cache of installed programs may be private

    def __init__(self, program: Path) -> None:
        """Take the path of the program."""
        super().__init__()
        self._program = program
        self.secret = {"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_KEY": AZURE_KEY}

    def prepare(self) -> None:
        """Start it; rclone creates its container."""
        place = ["--blobHost", "127.0.0.1", "--blobPort", self.port]
        options = ["--inMemoryPersistence", "--disableTelemetry"]
        account = f"AZURITE_ACCOUNTS={ACCOUNT}:{AZURE_KEY}"
        self.start("env", account, "node", self._program, *map(str, place), *options)

    @property
    def url(self) -> str:
        """The URL of its account."""
        return f"http://127.0.0.1:{self.port}/{ACCOUNT}"

    def answers(self) -> bool:
        """Whether it answers: 403, since nobody has logged in."""
        try:
            urllib.request.urlopen(f"{self.url}?comp=list", timeout=60).close()
        except urllib.error.HTTPError:
            return True
        except urllib.error.URLError:
            return False
        return True
