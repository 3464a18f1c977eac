"""Dalsegno with the simulated model, as a queue and as a store of conversations."""

import json
import random
import re
import subprocess
import time
import urllib.request

import conversation
import psycopg
import words
from peers import SLOTS, Failed, Queue

AGENT = "---\nname: writer\ndescription: Writes\n---\nYou write.\n"
SETTINGS = """
[agents]
folder = "agents"
[worker]
turns_slots = {slots}
[sessions]
rotate_at_tokens = 0
[sim]
window_tokens = 100000000
latency_ms = {ms}
chunk_delay_ms = 0
chunk_chars = 100000
faults = ["words 60"]
"""


class Dalsegno:
    """The binary, as a peer."""

    name, share, has_keys, is_for_backlog = "Dalsegno", 1, True, True
    settings = "worker.turns_slots 10; sim without delays, with a window for the whole conversation; no rotation"
    rescue = "queue.lease_secs 30"

    def __init__(self, program, variant="default"):
        self.program, self.variant = program, variant
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        self.version = done.stdout.split()[1]

    @property
    def title(self):
        return f"{self.name} {self.version}"

    def open(self, url, folder):
        return DalsegnoQueue(self.program, url, folder)


class DalsegnoQueue(Queue):
    """A service whose tasks are the jobs: task n has the prompt "Job n ..."."""

    def __init__(self, program, url, folder):
        super().__init__(url, folder)
        self.program = program
        (folder / "agents").mkdir()
        (folder / "agents/writer.md").write_text(AGENT)
        self.configure(0)
        self.command("migrate", "up")
        self.campaign = json.loads(self.command("campaign", "create", "Harbour", "--brief", "About a harbour.", "--json"))["id"]
        self.server = psycopg.connect(url, autocommit=True)

    def configure(self, ms):
        (self.folder / "dalsegno.toml").write_text(SETTINGS.format(slots=SLOTS, ms=ms))

    def command(self, *arguments):
        done = subprocess.run(
            [self.program, *arguments], cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=120
        )
        if done.returncode != 0:
            raise Failed((done.stdout + done.stderr)[-1000:])
        return done.stdout

    def enqueue(self, n, keys=0, ms=0):
        """Adds tasks with the SQL function, each for its own conversation or spread over `keys` conversations."""
        began = time.monotonic()
        for first in range(0, n, 500):
            numbers = range(first, min(n, first + 500))
            self.add([(f"copy-{i % keys if keys else i}", f"Job {i}") for i in numbers])
        return time.monotonic() - began

    def add(self, tasks):
        instances, prompts = map(list, zip(*tasks, strict=True))
        statement = """select count(*) from unnest(%s::text[], %s::text[]) as new (instance, prompt)
                         cross join lateral dalsegno.add_task(%s, 'writer', new.prompt, instance => new.instance)"""
        self.server.execute(statement, [instances, prompts, self.campaign])

    def start(self, ms=0):
        self.configure(ms)
        self.spawn([self.program, "serve", "--json", "--set", "http.listen=127.0.0.1:0"])

    def stop(self):
        super().stop()
        self.server.close()

    def pace(self, first, n, gap_ms):
        self.added = {}
        for i in range(first, first + n):
            time.sleep(gap_ms * random.uniform(0.5, 1.5) / 1000)
            self.added[i] = time.time()
            self.add([(f"copy-{i}", f"Job {i}")])

    def n_ended(self):
        return self.server.execute("select count(*) from dalsegno.tasks where ended_at is not null").fetchone()[0]

    def wait_for_ends(self, n, seconds, gap=0.2):
        return super().wait_for_ends(n, seconds, gap)

    def events(self):
        """Returns starts and ends of turns, as the log of a peer: a turn that was cut off has no end."""
        rows = self.server.execute(
            """select k.prompt, extract(epoch from t.started_at)::float8,
                      case when t.state = 'done' then extract(epoch from t.ended_at)::float8 end
                 from dalsegno.turns as t join dalsegno.tasks as k on k.id = t.task_id"""
        ).fetchall()
        found = [("start", number(prompt), began) for prompt, began, _ in rows]
        found += [("end", number(prompt), ended) for prompt, _, ended in rows if ended]
        found += [("add", n, at) for n, at in getattr(self, "added", {}).items()]
        return sorted(found, key=lambda event: event[2])


class DalsegnoStore(DalsegnoQueue):
    """A service with one conversation. Its messages are read over HTTP."""

    def __init__(self, program, url, folder):
        super().__init__(program, url, folder)
        self.start()
        self.address = self.announced()

    def announced(self):
        """Reads the address of the service from what it prints."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            found = re.search(r'"address": "([^"]+)"', (self.folder / "output").read_text())
            if found:
                return found[1]
            time.sleep(0.05)
        raise Failed((self.folder / "output").read_text()[-1000:])

    def run_turns(self, first, n):
        self.add([("main", f"Job {i} {words.text(i, conversation.PROMPT_BYTES)}") for i in range(first, first + n)])
        if not self.wait_for_ends(first + n, 120, 0.02):
            raise Failed(f"{n} turns took more than 120 s")
        times = [at for _, n, at in self.events() if n >= first]
        return max(times) - min(times)

    def session(self):
        return self.server.execute("select id from dalsegno.sessions").fetchone()[0]

    def load(self):
        """Reads all messages in pages of 200, the largest that the API offers."""
        n_messages, cursor, session = 0, 0, self.session()
        while True:
            path = f"/v1/sessions/{session}/messages?limit=200&cursor={cursor}"
            with urllib.request.urlopen(self.address + path, timeout=60) as response:
                page = json.loads(response.read())
            n_messages += len(page["items"])
            cursor = page["next"]
            if cursor is None:
                return n_messages

    def bytes_per_turn(self):
        statement = "select sum(octet_length(text))::float8 / count(distinct turn) from dalsegno.messages"
        return self.server.execute(statement).fetchone()[0]


def number(prompt):
    return int(prompt.split()[1])
