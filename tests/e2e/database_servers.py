"""A Redis, a PostgreSQL and a MariaDB for a test: private ports on loopback, folders of their own, ended by process id."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from running_server import free_port

POSTGRES = "/usr/lib/postgresql/15/bin/"
START_AT_MOST = 120


class DatabaseServer:
    """Of one kind; `user` runs it where the test is root, who may not."""

    programs = ()
    user = None

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="bide-database-")
        self.port = free_port()
        self._process = None
        try:
            if self._changes_user():
                account = pwd.getpwnam(self.user)
                os.chown(self.folder, account.pw_uid, account.pw_gid)
            self.prepare()
            with open(f"{self.folder}/log", "wb") as log:
                self._process = subprocess.Popen(self._as_user(self.command()), cwd=self.folder, stdout=log, stderr=log)
            self._await_port()
            self.make_database()
        except BaseException:
            self.stop()
            raise

    @classmethod
    def is_installed(cls):
        return all(os.access(program, os.X_OK) for program in cls.programs)

    def stop(self):
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # PostgreSQL: without waiting for clients.
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(timeout=60)
        shutil.rmtree(self.folder, ignore_errors=True)

    def prepare(self):
        pass

    def make_database(self):
        pass

    def run(self, *words, as_user=False):
        result = subprocess.run(self._as_user(words) if as_user else list(words), cwd=self.folder, capture_output=True, text=True,
                                timeout=60, check=False)
        if result.returncode != 0:
            raise RuntimeError(f"{words[0]}: {result.stdout}{result.stderr}")

    def _changes_user(self):
        return self.user is not None and os.geteuid() == 0

    def _as_user(self, words):
        before = ["/usr/bin/setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups"] if self._changes_user() else []
        return before + list(words)

    def _await_port(self):
        deadline = time.monotonic() + START_AT_MOST
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    with open(f"{self.folder}/log", encoding="utf-8", errors="replace") as log:
                        raise RuntimeError(f"it does not start: {log.read()}") from None
                time.sleep(0.05)


class Redis(DatabaseServer):
    programs = ("/usr/bin/redis-server",)

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def command(self):
        return [*self.programs, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--appendonly", "yes"]


class Postgres(DatabaseServer):
    programs = (POSTGRES + "initdb", POSTGRES + "postgres", POSTGRES + "createdb")
    user = "postgres"

    @property
    def url(self):
        return f"postgres://bide@127.0.0.1:{self.port}/bide"

    def prepare(self):
        self.run(self.programs[0], "-D", f"{self.folder}/data", "-U", "bide", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync",
                 as_user=True)

    def command(self):
        return [self.programs[1], "-D", f"{self.folder}/data", "-p", str(self.port), "-c", "listen_addresses=127.0.0.1",
                "-c", f"unix_socket_directories={self.folder}"]

    def make_database(self):
        self.run(self.programs[2], "-h", "127.0.0.1", "-p", str(self.port), "-U", "bide", "bide")


class Mariadb(DatabaseServer):
    programs = ("/usr/bin/mariadb-install-db", "/usr/sbin/mariadbd", "/usr/bin/mariadb")
    user = "mysql"

    @property
    def url(self):
        return f"mysql://bide@127.0.0.1:{self.port}/bide"

    def prepare(self):
        self.run(self.programs[0], "--no-defaults", f"--datadir={self.folder}/data", "--auth-root-authentication-method=normal",
                 "--skip-test-db", as_user=True)

    def command(self):
        return [self.programs[1], "--no-defaults", f"--datadir={self.folder}/data", f"--port={self.port}", "--bind-address=127.0.0.1",
                f"--socket={self.folder}/socket", f"--pid-file={self.folder}/pid", "--skip-name-resolve"]

    def make_database(self):
        self.run(self.programs[2], "--no-defaults", "-u", "root", "-S", f"{self.folder}/socket", "-e",
                 "CREATE DATABASE bide; CREATE USER bide@'127.0.0.1'; GRANT ALL ON bide.* TO bide@'127.0.0.1'")
