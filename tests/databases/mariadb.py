"""A real MariaDB on loopback."""

from pathlib import Path

from tests.databases.binaries import program
from tests.databases.servers import Server

PASSWORD = "p\"a\\ss#w'rd"  # characters that option files and shells must escape


class MariaDB(Server):
    """The server; its user `keeper` has all privileges and PASSWORD."""

    name = "mariadb"

    def prepare(self) -> None:
        """Initialize the data directory, start it, and set the password."""
        data, socket = self.directory / "data", self.directory / "socket"
        install = [
            program("mariadb-install-db"),
            "--no-defaults",
            f"--datadir={data}",
            "--skip-test-db",
        ]
        self.run(*install, "--auth-root-authentication-method=normal")
        place = ["--no-defaults", f"--datadir={data}", f"--socket={socket}", f"--port={self.port}"]
        options = [
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--innodb-flush-log-at-trx-commit=0",
        ]
        self.start(program("mariadbd"), *place, *options)
        escaped = PASSWORD.replace("\\", "\\\\").replace("'", "\\'")
        self.query(
            f"CREATE USER keeper@'127.0.0.1' IDENTIFIED BY '{escaped}'; GRANT ALL ON *.* TO keeper@'127.0.0.1'"
        )

    def answers(self) -> bool:
        """Whether it answers a query."""
        return self.attempt(*self._client("mysql"), input="SELECT 1").returncode == 0

    def query(self, sql: str, database: str = "") -> str:
        """Return the result of a query, through the socket, which needs no password."""
        return self.run(*self._client(database or "mysql"), input=sql)

    def _client(self, database: str) -> list[str | Path]:
        socket = f"--socket={self.directory / 'socket'}"
        return [
            program("mariadb"),
            "--no-defaults",
            socket,
            "--user=root",
            "--batch",
            "--skip-column-names",
            database,
        ]
