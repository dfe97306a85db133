"""An object store that speaks S3, on loopback: moto's, with one bucket."""

import re
import sys
import urllib.error
import urllib.parse
import urllib.request

from tests.databases.servers import Server

VERSIONED = b'<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Enabled</Status></VersioningConfiguration>'
BUCKET = "backups"


class ObjectStore(Server):
    """The store; it accepts any credentials until they are required."""

    name = "s3"
    unprivileged = False  # other users may not be able to run this interpreter

    @property
    def address(self) -> str:
        """The address that it listens on."""
        return "127.0.0.1"

    @property
    def url(self) -> str:
        """Its URL."""
        return f"http://{self.address}:{self.port}"

    def prepare(self) -> None:
        """Start the server with its bucket, which is versioned because rclone requests versions."""
        place = ["-H", self.address, "-p", str(self.port)]
        self.start(sys.executable, "-m", "moto.server", *place)
        self.request("PUT", BUCKET)
        self.request("PUT", f"{BUCKET}?versioning", VERSIONED)

    def answers(self) -> bool:
        """Whether it answers."""
        try:
            self.request("GET", "moto-api/")
        except urllib.error.URLError:
            return False
        return True

    def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Send a request, and return the response."""
        headers = {"Content-Type": "application/xml", "Authorization": "AWS somebody:whoever"}
        request = urllib.request.Request(
            f"{self.url}/{path}", data=body, method=method, headers=headers
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())

    def put(self, name: str, content: bytes = b"x") -> None:
        """Store an object."""
        self.request("PUT", f"{BUCKET}/{urllib.parse.quote(name)}", content)

    def get(self, name: str) -> bytes:
        """Return the content of an object."""
        return self.request("GET", f"{BUCKET}/{urllib.parse.quote(name)}")

    def names(self, prefix: str = "") -> list[str]:
        """Return the names of all objects with a prefix, without the prefix."""
        listed = self.request(
            "GET", f"{BUCKET}?list-type=2&prefix={urllib.parse.quote(prefix)}"
        ).decode()
        return [name.removeprefix(prefix) for name in re.findall(r"<Key>([^<]*)</Key>", listed)]

    def look_at_credentials(self, *, really: bool) -> None:
        """Reject all credentials, or accept all again."""
        self.request("POST", "moto-api/reset-auth", b"0" if really else b"inf")
