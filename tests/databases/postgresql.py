"""A real PostgreSQL on loopback."""

from pathlib import Path

from tests.databases.binaries import postgresql
from tests.databases.servers import Server

PASSWORD = "p'ostgr\\es \"word"  # characters that files and shells must escape


class PostgreSQL(Server):
    """The server; its user `postgres` has PASSWORD."""

    name = "postgresql"

    def prepare(self) -> None:
        """Initialize the data directory and start it."""
        programs, data, password = (
            postgresql(),
            self.directory / "data",
            self.directory / "password",
        )
        password.write_text(PASSWORD)
        login = [
            "--username=postgres",
            f"--pwfile={password}",
            "--auth-host=scram-sha-256",
            "--auth-local=trust",
        ]
        self.run(programs / "initdb", f"--pgdata={data}", *login, "--no-sync")
        place = [
            "-D",
            data,
            "-k",
            self.directory,
            "-p",
            str(self.port),
            "-c",
            "listen_addresses=127.0.0.1",
        ]
        self.start(programs / "postgres", *place, "-c", "fsync=off")

    def answers(self) -> bool:
        """Whether it answers a query, which it does not while it starts up."""
        return self.attempt(*self._psql("postgres"), input="SELECT 1").returncode == 0

    def query(self, sql: str, database: str = "postgres") -> str:
        """Return the result of a query, through the socket, which needs no password."""
        return self.run(*self._psql(database), input=sql)

    def _psql(self, database: str) -> list[str | Path]:
        place = ["-h", self.directory, "-p", str(self.port), "-U", "postgres", "-d", database]
        return [postgresql() / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", *place]
