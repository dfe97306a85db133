"""A real MariaDB on loopback."""

import shutil
from pathlib import Path

from tests.databases.binaries import missing
from tests.databases.servers import Server

PASSWORD = "p\"a\\ss#w'rd"  # what option files and shells are tried with


def program(name: str) -> Path:
    """Return one of MariaDB's programs."""
    found = shutil.which(name, path="/usr/local/bin:/usr/bin:/usr/sbin")
    if found is None:
        missing(name, "mariadb-server")
        raise AssertionError
    return Path(found)


class MariaDB(Server):
    """The server; its user `keeper` may do all, and has PASSWORD."""

    name = "mariadb"

    def prepare(self) -> None:
        """Make its data, start it, and set the password."""
        data, socket = self.directory / "data", self.directory / "socket"
        install = [program("mariadb-install-db"), "--no-defaults", f"--datadir={data}", "--skip-test-db"]
        self.run(*install, "--auth-root-authentication-method=normal")
        place = ["--no-defaults", f"--datadir={data}", f"--socket={socket}", f"--port={self.port}"]
        options = ["--bind-address=127.0.0.1", "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0"]
        self.start(program("mariadbd"), *place, *options, answers=socket.exists)
        escaped = PASSWORD.replace("\\", "\\\\").replace("'", "\\'")
        self.query(f"CREATE USER keeper@'127.0.0.1' IDENTIFIED BY '{escaped}'; GRANT ALL ON *.* TO keeper@'127.0.0.1'")

    def query(self, sql: str, database: str = "") -> str:
        """Return what a query returns, by the socket that asks for no password."""
        socket = f"--socket={self.directory / 'socket'}"
        options = ["--no-defaults", socket, "--user=root", "--batch", "--skip-column-names", database or "mysql"]
        return self.run(program("mariadb"), *options, input=sql)
