"""A server that speaks MongoDB's protocol on loopback, FerretDB, and MongoDB's own tools.

FerretDB stores no Decimal128, code, NaN, infinity or array in an array; it has no views, and rejects the secondary indexes of
mongorestore.
"""

from pathlib import Path
from typing import Any

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from tests.controlplane.gobuild import build
from tests.databases.servers import Server

MODULE = Path(__file__).parent
USER = "keeper"
REPLICA_SET = "rs0"
PASSWORD = "p\"a\\ss#w'rd"  # characters that YAML and shells must escape
# FerretDB reads its version from the build of its own repository, and ends where that is another one.
EMBEDDED = "-s -w -X runtime.modinfo="
COLD = "a minute with 2 cores"

Document = dict[str, Any]


def ferretdb() -> Path:
    """Return the server, built once."""
    package = "github.com/FerretDB/FerretDB/cmd/ferretdb"
    return build(MODULE, package, "ferretdb", ldflags=EMBEDDED, takes=COLD)


def tools() -> tuple[Path, ...]:
    """Return mongodump and mongorestore, built once."""
    package = "github.com/mongodb/mongo-tools/{}/main"
    names = ("mongodump", "mongorestore")
    return tuple(build(MODULE, package.format(name), name, takes=COLD) for name in names)


class FerretDB(Server):
    """The server, the one member of REPLICA_SET; its user USER of the database `admin` has PASSWORD."""

    name = "mongodb"
    unprivileged = False  # the cache of built programs may be private

    def __init__(self, program: Path) -> None:
        """Take the path of the program."""
        super().__init__()
        self._program = program

    def prepare(self) -> None:
        """Start it, with the user."""
        data = self.directory / "data"
        data.mkdir()
        place = [f"--listen-addr=127.0.0.1:{self.port}", "--debug-addr=-", "--state-dir=-"]
        storage = ["--handler=sqlite", f"--sqlite-url=file:{data}/", "--telemetry=disable"]
        login = [f"--setup-username={USER}", f"--setup-password={PASSWORD}"]
        authentication = ["--test-enable-new-auth", "--setup-database=admin"]
        replicas = f"--repl-set-name={REPLICA_SET}"
        self.start(self._program, *place, *storage, *authentication, *login, replicas)

    def answers(self) -> bool:
        """Whether it answers a query."""
        with self.client(patience=1) as client:
            try:
                client.admin.command("ping")
            except PyMongoError:
                return False
        return True

    def client(self, patience: float = 60) -> MongoClient[Document]:
        """Return a client, which waits `patience` seconds for the server; the caller closes it."""
        return MongoClient(
            "127.0.0.1",
            self.port,
            username=USER,
            password=PASSWORD,
            serverSelectionTimeoutMS=int(patience * 1000),
        )
