"""A service with a private Postgres, for the tests."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

# The models of the tests are the simulation.
SETTINGS = {
    "DALSEGNO_SIM__LATENCY_MS": "20",
    "DALSEGNO_SIM__CHUNK_DELAY_MS": "20",
    "DALSEGNO_SIM__DIRECTIVES": "true",
    "DALSEGNO_HTTP__REQUIRE_KEY": "true",
    "DALSEGNO_WEBHOOKS__ALLOW_PRIVATE": "true",
}
START_SECS = 120


class Service:
    def __init__(self) -> None:
        self.binary = os.environ["DALSEGNO_BINARY"]
        # The account of the Postgres server has to be able to enter the folder, which pytest's own folders do not allow.
        self.folder = Path(tempfile.mkdtemp(prefix="dalsegno-clients-"))
        self.folder.chmod(0o755)
        self.admin_key = secrets.token_hex(32)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.url = self.start("first", {})
        self.key = self.command("key", "create", "shop", "--scope", "enqueue", "--scope", "operate")["secret"]
        self.campaign = self.command("campaign", "create", "Harbour series")["id"]

    def environment(self, settings: dict[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("DALSEGNO_", "PG", "DATABASE_URL"))}
        return {
            **kept,
            **SETTINGS,
            "DALSEGNO_HTTP__ADMIN_KEY": self.admin_key,
            "DALSEGNO_HTTP__LISTEN": "127.0.0.1:0",
            **settings,
        }

    def start(self, name: str, settings: dict[str, str]) -> str:
        """Starts a process of the service, and returns its address."""
        ready, log = self.folder / f"{name}.json", self.folder / f"{name}.log"
        with ready.open("wb") as out, log.open("wb") as err:
            process = subprocess.Popen(
                [self.binary, "serve", "--json"],
                cwd=self.folder,
                env=self.environment(settings),
                stdout=out,
                stderr=err,
            )
        self.processes.append(process)
        end = time.monotonic() + START_SECS
        while True:
            try:
                address: str = json.loads(ready.read_text())["address"]
                return address
            except ValueError:
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the service did not start: {log.read_text()[-2000:]}") from None
                time.sleep(0.05)

    def command(self, *arguments: str) -> dict[str, str]:
        ran = subprocess.run(
            [self.binary, *arguments, "--json"],
            cwd=self.folder,
            env=self.environment({}),
            capture_output=True,
            check=False,
        )
        if ran.returncode != 0:
            raise RuntimeError(f"{arguments}: {ran.stderr.decode()}")
        answer: dict[str, str] = json.loads(ran.stdout)
        return answer

    @property
    def postgres(self) -> dict[str, str]:
        """The variables of libpq for the private Postgres."""
        folder = self.folder / ".dalsegno/postgres"
        return {
            "PGHOST": str(folder / "run"),
            "PGUSER": "dalsegno",
            "PGDATABASE": "dalsegno",
            "PGPASSWORD": (folder / "password").read_text().strip(),
        }

    @property
    def second_process(self) -> dict[str, str]:
        """Settings of a further process on the same database."""
        found = self.postgres
        return {
            "DATABASE_URL": f"postgres://{found['PGUSER']}:{found['PGPASSWORD']}@localhost/{found['PGDATABASE']}?host={found['PGHOST']}"
        }

    def stop(self) -> None:
        # The first process is last, because its end stops Postgres.
        for process in reversed(self.processes):
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder)
