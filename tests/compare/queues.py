"""Measures A and B: jobs that do nothing, without keys and with one job at a time per key."""

import itertools
import statistics
import time

from peers import Failed

KEYS = 50
SECONDS = 90
# Jobs that are added one by one to an idle worker. The first ones are not counted.
WARM_UP, PACED, GAP_MS = 3, 25, 80


def backlog(peer, database, n):
    """Runs a backlog, then single jobs. Returns jobs per second added and run, and the seconds until single jobs start."""
    with database() as (url, folder, vacuum):
        queue = peer.open(url, folder)
        try:
            added = queue.enqueue(n)
            vacuum()
            queue.start()
            finish(queue, n)
            took = span(queue.events())
            time.sleep(1)
            queue.pace(n, WARM_UP + PACED, GAP_MS)
            finish(queue, n + WARM_UP + PACED)
            return {"n": n, "added": n / added, "run": n / took, "both": n / (added + took), "starts": starts(queue, n + WARM_UP)}
        finally:
            queue.stop()


def keyed(peer, database, n):
    """Runs a backlog of jobs with keys. Returns jobs per second, overlaps and jobs out of order."""
    with database() as (url, folder, vacuum):
        queue = peer.open(url, folder)
        try:
            queue.enqueue(n, KEYS)
            vacuum()
            queue.start()
            finish(queue, n)
            events = queue.events()
            return {"n": n, "run": n / span(events), "overlaps": overlaps(events), "disorder": disorder(events)}
        finally:
            queue.stop()


def finish(queue, n):
    if not queue.wait_for_ends(n, SECONDS):
        raise Failed(f"{queue.n_ended()} of {n} jobs ended within {SECONDS} s")


def span(events):
    times = [at for event, _, at in events if event != "add"]
    return max(times) - min(times)


def starts(queue, first):
    """Returns the median and the 95th percentile of the seconds from before a job was added to its start."""
    events = queue.events()
    added = {n: at for event, n, at in events if event == "add" and n >= first}
    waits = [at - added[n] for event, n, at in events if event == "start" and n in added]
    return statistics.median(waits), statistics.quantiles(waits, n=20)[-1]


def overlaps(events):
    """Counts jobs that began while another job of their key ran."""
    ended = {n: at for event, n, at in events if event == "end"}
    began = sorted((n % KEYS, at, n) for event, n, at in events if event == "start")
    return sum(key == next_key and at < ended[n] for (key, _, n), (next_key, at, _) in itertools.pairwise(began))


def disorder(events):
    """Counts jobs that began before the job that was added before them for their key."""
    began = {n: at for event, n, at in events if event == "start"}
    return sum(n >= KEYS and began[n] < began[n - KEYS] for n in began)
