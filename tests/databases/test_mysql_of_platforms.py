"""The scripts of a platform's MySQL server, on a real MariaDB, since Debian does not package MySQL."""

import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from controller.reconcilers.mysql import START
from controller.reconcilers.mysql_backups import DUMP, RESTORE
from tests.databases.binaries import program
from tests.databases.mariadb import MariaDB

pytestmark = pytest.mark.databases("mariadb-server")

ROOT, APP = "r-o_o-t", "a-p_p"


def script(text: str, directory: Path, **variables: str) -> None:
    """Run one of the scripts in a temporary directory instead of the image's."""
    text = re.sub("/(var/lib/mysql|tmp|backup)/", rf"{directory}/\1/", text)
    environment = {"PATH": f"{directory}:/usr/bin:/bin", **variables}
    subprocess.run(
        ["bash", "-c", text], env=environment, check=True, stdout=subprocess.DEVNULL, timeout=60
    )


def test_passwords_are_those_of_the_secret_and_a_dump_can_be_restored(tmp_path: Path) -> None:
    """A volume with other passwords gets those of the Secret; a dump is restored."""
    for path in ("var/lib/mysql/mysql", "tmp", "backup"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "docker-entrypoint.sh").symlink_to("/bin/true")
    (tmp_path / "mysqldump").symlink_to(program("mariadb-dump"))
    (tmp_path / "mysql").symlink_to(program("mariadb"))
    with MariaDB() as server:
        server.query("DROP USER IF EXISTS root@'127.0.0.1'")  # MySQL's image makes no such account
        server.query(
            "CREATE USER root@'%' IDENTIFIED BY 'lost'; GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION"
        )
        server.query(
            "CREATE USER app@'%' IDENTIFIED BY 'lost'; CREATE DATABASE app; GRANT ALL ON app.* TO app@'%'"
        )
        server.query("CREATE TABLE goods AS SELECT seq, md5(seq) FROM seq_1_to_1000", "app")

        script(START, tmp_path, MYSQL_ROOT_PASSWORD=ROOT, MYSQL_USER="app", MYSQL_PASSWORD=APP)
        server.query(
            (tmp_path / "tmp/passwords.sql")
            .read_text()
            .replace("'root'@'localhost'", "'nobody'@'localhost'")
        )

        address = {"SERVER": "127.0.0.1", "MYSQL_TCP_PORT": str(server.port)}
        login = [
            "--no-defaults",
            "--host=127.0.0.1",
            f"--port={server.port}",
            "--user=app",
            f"--password={APP}",
        ]
        server.run(program("mariadb"), *login, "app", "--execute=SELECT 1 FROM goods")
        script(DUMP, tmp_path, RETENTION="30d", MYSQL_PWD=ROOT, **address)
        server.query("DROP DATABASE app")
        later = f"{datetime.now(UTC) + timedelta(hours=1):%Y%m%dT%H%M%SZ}"
        script(RESTORE, tmp_path, MYSQL_PWD=ROOT, BACKUP=later, **address)
        assert server.query("SELECT count(*), max(seq) FROM goods", "app") == "1000\t1000\n"
