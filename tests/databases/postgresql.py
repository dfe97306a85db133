"""A real PostgreSQL on loopback."""

from tests.databases.binaries import postgresql
from tests.databases.servers import Server

PASSWORD = "p'ostgr\\es \"word"  # what files and shells are tried with


class PostgreSQL(Server):
    """The server; its user `postgres` has PASSWORD."""

    name = "postgresql"

    def prepare(self) -> None:
        """Make its data and start it."""
        programs, data, password = postgresql(), self.directory / "data", self.directory / "password"
        password.write_text(PASSWORD)
        login = ["--username=postgres", f"--pwfile={password}", "--auth-host=scram-sha-256", "--auth-local=trust"]
        self.run(programs / "initdb", f"--pgdata={data}", *login, "--no-sync")
        place = ["-D", data, "-k", self.directory, "-p", str(self.port), "-c", "listen_addresses=127.0.0.1"]
        socket = self.directory / f".s.PGSQL.{self.port}"
        self.start(programs / "postgres", *place, "-c", "fsync=off", answers=socket.exists)

    def query(self, sql: str, database: str = "postgres") -> str:
        """Return what a query returns, by the socket that asks for no password."""
        place = ["-h", self.directory, "-p", str(self.port), "-U", "postgres", "-d", database]
        return self.run(postgresql() / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", *place, input=sql)
