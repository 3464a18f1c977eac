"""The measurement of a conversation: the same steps for each store."""

import statistics
import time

import psycopg

SIZES = (10, 100, 1000)
TURNS = 5
PROMPT_BYTES = ANSWER_BYTES = 500


def measure(url, run_turns, load):
    """Returns, per number of messages: WAL bytes and milliseconds of each of the next turns, and milliseconds to load the messages.

    `run_turns(first, n)` appends turns of two messages and returns the seconds that it took; `load()` returns the number of messages.
    """
    figures, done = {}, 0
    with psycopg.connect(url, autocommit=True) as server:
        for size in SIZES:
            run_turns(done, size // 2 - done)
            done = size // 2
            settle(server)
            before = wal(server)
            took = run_turns(done, TURNS)
            done += TURNS
            # Work after the turn is a part of its cost: statistics, words for a search.
            time.sleep(1.5)
            written = wal(server) - before
            loads = []
            for _ in range(5):
                began = time.monotonic()
                n_messages = load()
                loads.append(time.monotonic() - began)
                if n_messages != done * 2:
                    raise ValueError(f"{n_messages} messages after {done} turns")
            figures[size] = {"wal": written / TURNS, "turn_ms": took / TURNS * 1000, "load_ms": statistics.median(loads) * 1000}
    return figures


def settle(server):
    server.execute("vacuum analyze")
    time.sleep(0.5)


def wal(server):
    return server.execute("select (pg_current_wal_insert_lsn() - '0/0')::bigint").fetchone()[0]
