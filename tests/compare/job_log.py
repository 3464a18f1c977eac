"""The log of a worker: one line per start and end of a job. Each line is written at once, so it survives a kill -9."""

import asyncio
import os
import random
import time


class JobLog:
    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, event, n):
        os.write(self.file, f"{event} {n} {time.time()}\n".encode())

    async def run(self, n, ms):
        self.write("start", n)
        if ms:
            await asyncio.sleep(ms / 1000)
        self.write("end", n)


async def enqueue(add_many, n, keys, ms):
    """Adds jobs 0 to n - 1 in batches with `add_many`, and prints the seconds that it took."""
    began = time.monotonic()
    for first in range(0, n, 500):
        jobs = [{"n": i, "ms": ms} | ({"key": f"key-{i % keys}"} if keys else {}) for i in range(first, min(n, first + 500))]
        await add_many(jobs)
    print(time.monotonic() - began)


async def pace(add_one, log, first, n, gap_ms):
    """Adds one job at a time with `add_one`, and logs the moment before each."""
    for i in range(first, first + n):
        await asyncio.sleep(gap_ms * random.uniform(0.5, 1.5) / 1000)
        log.write("add", i)
        await add_one({"n": i, "ms": 0})
