"""The queues of other projects: their programs, their settings, and how jobs are added and run."""

import dataclasses
import importlib.metadata
import json
import os
import pathlib
import signal
import subprocess
import time

import install

FILES = pathlib.Path(__file__).parent
SLOTS = 10


class Failed(Exception):
    """A program that failed, or did not finish in time."""


@dataclasses.dataclass
class Peer:
    """A queue with one set of settings, as a program with the modes setup, enqueue, pace and work."""

    name: str
    version: str
    command: list
    variant: str
    # The settings that differ from the defaults.
    settings: str
    # The number of jobs of a run, as a multiple of --jobs.
    share: float = 1
    has_keys: bool = False
    is_for_backlog: bool = True
    # The setting that decides when the job of a killed worker runs again, if this variant has the defaults.
    rescue: str = ""

    @property
    def title(self):
        return f"{self.name} {self.version}"

    def open(self, url, folder):
        return PeerQueue(self, url, folder)


class Queue:
    """A queue in a database of its own, and its worker process."""

    def __init__(self, url, folder):
        self.url, self.folder, self.process = url, folder, None
        folder.mkdir()

    def environment(self):
        """Returns the environment of programs: none of this process's variables, so no credential."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), "DATABASE_URL": self.url}

    def spawn(self, command):
        with open(self.folder / "output", "a") as output:
            self.process = subprocess.Popen(
                list(map(str, command)), cwd=self.folder, env=self.environment(), stdout=output, stderr=subprocess.STDOUT
            )

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if not self.process or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()

    def wait_for_ends(self, n, seconds, gap=0.05):
        """Waits until `n` jobs have ended, and returns False if they have not in this time."""
        until = time.monotonic() + seconds
        while self.n_ended() < n:
            if self.process.poll() is not None:
                raise Failed((self.folder / "output").read_text()[-1000:])
            if time.monotonic() > until:
                return False
            time.sleep(gap)
        return True


class PeerQueue(Queue):
    def __init__(self, peer, url, folder):
        super().__init__(url, folder)
        self.peer, self.log = peer, folder / "log"
        self.ended, self.n_read = set(), 0
        self.call("setup")

    def call(self, *arguments):
        command = list(map(str, [*self.peer.command, *arguments]))
        done = subprocess.run(command, cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise Failed((done.stdout + done.stderr)[-1000:])
        return done.stdout

    def enqueue(self, n, keys=0, ms=0):
        """Adds jobs, and returns the seconds that it took."""
        return float(self.call("enqueue", n, keys, ms).splitlines()[-1])

    def start(self, ms=0):
        self.spawn([*self.peer.command, "work", self.log, SLOTS, self.peer.variant])

    def pace(self, first, n, gap_ms):
        self.call("pace", self.log, first, n, gap_ms)

    def n_ended(self):
        """Returns the number of jobs that have ended. Reads only new lines, because this is asked often."""
        if self.log.exists():
            with open(self.log, "rb") as log:
                log.seek(self.n_read)
                new = log.read()
            new = new[: new.rfind(b"\n") + 1]
            self.n_read += len(new)
            self.ended.update(int(line.split()[1]) for line in new.splitlines() if line.startswith(b"end"))
        return len(self.ended)

    def events(self):
        """Returns what the worker logged: (event, number, moment), in the order of writing."""
        if not self.log.exists():
            return []
        lines = (line.split() for line in self.log.read_text().splitlines())
        return [(event, int(n), float(at)) for event, n, at in lines]


def all_peers(folder):
    """Returns the peers that are installed, and the others with the reason."""
    python, node = folder / "venv/bin/python", install.node(folder)

    def packaged(name):
        return json.loads((folder / f"node_modules/{name}/package.json").read_text())["version"]

    graphile = ["Graphile Worker", packaged("graphile-worker"), [node, folder / "graphile.mjs"]]
    pgboss = ["pg-boss", packaged("pg-boss"), [node, folder / "pgboss.mjs"]]
    found = [
        Peer(*graphile, "default", "", share=2, has_keys=True, rescue="4 hours, fixed"),
        Peer(*graphile, "batching", "localQueue.size 11, complete- and failJobBatchDelay 250", share=5),
        Peer(*pgboss, "tuned", "notify, localConcurrency 10, batchSize 10, burstWhenBatchFull", share=5, has_keys=True),
        Peer(*pgboss, "default", "localConcurrency 10", is_for_backlog=False, rescue="expireInSeconds 900, each 60 s"),
    ]
    version = importlib.metadata.version("procrastinate")
    command = [python, FILES / "procrastinate_queue.py"]
    found += [Peer("Procrastinate", version, command, "default", "", has_keys=True, rescue="none: a periodic task of your own")]
    missing = []
    try:
        version = importlib.metadata.version("oban")
        command = [python, FILES / "oban_queue.py"]
        found += [Peer("Oban for Python", version, command, "default", "", rescue="lifeline.rescue_after 300, each 60 s")]
    except importlib.metadata.PackageNotFoundError:
        missing += [("Oban for Python", "was not installed: " + last_line(folder / "oban.log"))]
    return found, missing


def last_line(path):
    return (path.read_text().strip().splitlines() or ["no output"])[-1]
