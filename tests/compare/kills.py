"""Measure D: the worker is killed in the middle of jobs, and another one is started at once."""

import collections
import time

from peers import Failed

JOBS, JOB_MS, BEFORE = 100, 500, 30
# Seconds after the restart in which jobs may begin again.
PATIENCE = 75


def kill(peer, database):
    """Returns the jobs that the kill cut off, those that had not run after it, those that ran twice, and the seconds until a second run."""
    with database() as (url, folder, _):
        queue = peer.open(url, folder)
        try:
            queue.enqueue(JOBS, 0, JOB_MS)
            queue.start(JOB_MS)
            if not queue.wait_for_ends(BEFORE, 60):
                raise Failed(f"fewer than {BEFORE} jobs ended within 60 s")
            wait_for_running(queue)
            queue.kill()
            killed = time.time()
            events = queue.events()
            cut_off = numbers(events, "start") - numbers(events, "end")
            queue.start(JOB_MS)
            queue.wait_for_ends(JOBS, PATIENCE)
            return outcome(queue.events(), cut_off, killed)
        finally:
            queue.stop()


def wait_for_running(queue):
    """Waits until several jobs are in their middle: some queues start and end ten at the same time."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        events = queue.events()
        ended = numbers(events, "end")
        young = [n for event, n, at in events if event == "start" and n not in ended and time.time() - at < JOB_MS / 2000]
        if len(young) >= 5:
            return
        time.sleep(0.02)
    raise Failed("no moment was found at which 5 jobs ran")


def outcome(events, cut_off, killed):
    ended = collections.Counter(n for event, n, _ in events if event == "end")
    again = [at - killed for event, n, at in events if event == "start" and n in cut_off and at > killed]
    return {
        "cut_off": len(cut_off),
        "waiting": JOBS - len(ended),
        "twice": sum(count > 1 for count in ended.values()),
        "first": min(again, default=None),
        "last": max(again, default=None),
    }


def numbers(events, kind):
    return {n for event, n, _ in events if event == kind}
