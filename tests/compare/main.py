"""Runs the measures and prints the tables. Started by scripts/compare, which starts Postgres and installs the peers."""

import argparse
import contextlib
import datetime
import importlib.metadata
import itertools
import os
import pathlib
import platform
import signal
import sys
import tempfile
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import conversation
import kills
import peers
import psycopg
import queues
import stores
import tables
from dalsegno import Dalsegno

# Restarts that are observed per queue, all at the same time, because they mostly wait.
KILLS = 3
# Runs of measure C at most: its figures vary little, and a long conversation takes a while.
STORE_RUNS = 3

# The script installs from PyPI and npm only.
NOT_MEASURED = [
    ("River", "its Go modules are in neither"),
    ("Oban for Elixir", "its packages are on hex.pm; Oban for Python is by the same authors, with the same tables"),
    ("Temporal", "its server is in neither, and its development server keeps its state outside of Postgres"),
    ("Claude Agent SDK", "its sessions are files of Claude Code, and its loop needs a model"),
]


class Databases:
    """Databases of the private server, one for each measurement."""

    def __init__(self, server, work):
        self.server, self.work, self.numbers = server, work, itertools.count()

    @contextlib.contextmanager
    def new(self):
        name = f"compare_{next(self.numbers)}"
        self.run("postgres", f"create database {name}")
        try:
            yield f"{self.server}/{name}", self.work / name, lambda: self.run(name, "vacuum analyze")
        finally:
            self.run("postgres", f"drop database if exists {name} with (force)")
            # What a run has left to write must not burden the next one.
            self.run("postgres", "checkpoint")

    def run(self, database, statement):
        with psycopg.connect(f"{self.server}/{database}", autocommit=True) as connection:
            return connection.execute(statement).fetchall() if statement.startswith("show") else connection.execute(statement)


def main():
    parser = argparse.ArgumentParser(prog="scripts/compare", description="Compares Dalsegno with other queues and stores of conversations.")
    parser.add_argument("binary", type=pathlib.Path, help="a release binary of dalsegno")
    parser.add_argument("--runs", type=int, default=5, help="runs of measures A, B and C, whose medians are printed (default: 5)")
    parser.add_argument("--jobs", type=int, default=1000, help="jobs of a run; fast queues get up to five times as many (default: 1000)")
    parser.add_argument("--twice", action="store_true", help="measures everything a second time, and prints the tables again")
    parser.add_argument("--only", default="ABCD", help="the measures to run, such as AD")
    parser.add_argument("--before", type=pathlib.Path, help="another binary of dalsegno to measure in place of the other products")
    arguments = parser.parse_args()
    # A termination ends the programs that run, as an interrupt does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = pathlib.Path(os.environ["COMPARE_PEERS"])
    server = os.environ["COMPARE_POSTGRES"]
    dalsegno = Dalsegno(arguments.binary.resolve())
    found, missing = ([Dalsegno(arguments.before.resolve(), "before")], []) if arguments.before else peers.all_peers(folder)
    for time_of_two in range(2 if arguments.twice else 1):
        with tempfile.TemporaryDirectory(prefix="compare-") as work:
            if time_of_two:
                print("\nThe second time:")
            compare(arguments, Databases(server, pathlib.Path(work)), [*found, dalsegno], missing, folder)


def compare(arguments, databases, queue_peers, missing, folder):
    began = time.monotonic()
    dalsegno = queue_peers[-1]
    print_head(databases, arguments, missing, queue_peers)
    of_backlog = [peer for peer in queue_peers if peer.is_for_backlog]
    of_keys = [peer for peer in of_backlog if peer.has_keys]
    of_rescue = [peer for peer in queue_peers if peer.rescue]
    if arguments.before:
        of_stores = [stores.DalsegnoConversation(peer) for peer in queue_peers]
    else:
        of_stores = stores.all_stores(folder / "venv/bin/python", dalsegno)
    results = {}
    # Products take turns within each run, so that the load of the machine concerns all of them.
    for n_run in range(arguments.runs):
        for measure, contenders, run in [
            ("A", of_backlog, lambda peer: queues.backlog(peer, databases.new, int(arguments.jobs * peer.share))),
            ("B", of_keys, lambda peer: queues.keyed(peer, databases.new, arguments.jobs // 2)),
            ("C", of_stores if n_run < STORE_RUNS else [], lambda store: store.measure(databases.new)),
        ]:
            for contender in contenders if measure in arguments.only else []:
                attempt(results, measure, contender, run)
    if "D" in arguments.only:
        jobs = [peer for _ in range(KILLS) for peer in of_rescue]
        with ThreadPoolExecutor(len(jobs)) as pool:
            list(pool.map(lambda peer: attempt(results, "D", peer, lambda peer: kills.kill(peer, databases.new)), jobs))

    def of(measure, contenders):
        return [(contender, results.get((measure, id(contender)))) for contender in contenders]

    if "A" in arguments.only:
        tables.print_backlog(of("A", of_backlog), arguments.runs)
        print()
    if "B" in arguments.only:
        tables.print_keyed(of("B", of_keys), arguments.runs)
        print()
    if "C" in arguments.only:
        titled = [(store.title, runs) for store, runs in of("C", of_stores)]
        tables.print_stores(titled, min(arguments.runs, STORE_RUNS), conversation.TURNS)
        print(f"   A turn of Dalsegno has {of_stores[-1].bytes_per_turn or 0:.0f} bytes of text, the others {conversation.PROMPT_BYTES * 2}.")
        print("   DeltaChannel also stores all messages every 100 updates (50 turns here), outside of these turns.")
        print()
    if "D" in arguments.only:
        tables.print_kills(of("D", of_rescue), KILLS)
        print()
    print(f"Took {time.monotonic() - began:.0f} s; load average at the end {os.getloadavg()[0]:.1f}.", flush=True)


def attempt(results, measure, contender, run):
    """Adds the result of a run. A failure is printed, and the product has no figures if all its runs fail."""
    try:
        results.setdefault((measure, id(contender)), []).append(run(contender))
    except (peers.Failed, psycopg.Error, OSError, KeyError, ValueError) as error:
        print(f"{measure}: {contender.title}: {error!r}", file=sys.stderr, flush=True)


def print_head(databases, arguments, missing, queue_peers):
    shown = {name: databases.run("postgres", f"show {name}")[0][0] for name in ("server_version", "shared_buffers", "max_wal_size")}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cpu = [line.partition(": ")[2] for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    print(f"{datetime.date.today()}: scripts/compare BINARY --runs {arguments.runs} --jobs {arguments.jobs}")
    print(f"Machine: {os.cpu_count()} cores ({cpu[0] if cpu else platform.processor()}), {memory:.0f} GiB; load average {os.getloadavg()[0]:.1f}")
    print(
        f"PostgreSQL {shown['server_version']}, over 127.0.0.1: shared_buffers {shown['shared_buffers']}, "
        f"max_wal_size {shown['max_wal_size']},\n  checkpoint_timeout 1h, max_connections 400, else defaults: each commit is synced to disk"
    )
    print("Settings other than the defaults, besides 10 jobs at once:")
    for peer in queue_peers:
        if peer.settings:
            print_item(f"{tables.label(peer)}: {peer.settings}")
    if not arguments.before:
        print_item(f"LangGraph: PostgresSaver of langgraph-checkpoint-postgres {importlib.metadata.version('langgraph-checkpoint-postgres')}")
        print_item("OpenAI Agents SDK: SQLAlchemySession with asyncpg")
        print("Not measured (this script installs from PyPI and npm only):")
        for name, reason in [*missing, *NOT_MEASURED]:
            print_item(f"{name}: {reason}")
    print(flush=True)


def print_item(text):
    print(textwrap.fill(text, 100, initial_indent="- ", subsequent_indent="  "))


if __name__ == "__main__":
    main()
