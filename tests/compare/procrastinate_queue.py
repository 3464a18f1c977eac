"""Procrastinate. Arguments: setup | enqueue N KEYS MS | pace LOG FIRST N GAP_MS | work LOG SLOTS VARIANT. The database is in DATABASE_URL."""

import asyncio
import os
import sys

import procrastinate
from job_log import JobLog, enqueue, pace

MODE, *REST = sys.argv[1:]
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=os.environ["DATABASE_URL"]))
log = None


@app.task(name="noop")
async def noop(n, ms):
    await log.run(n, ms)


async def add_many(jobs):
    by_key = {}
    for job in jobs:
        by_key.setdefault(job.pop("key", None), []).append(job)
    for key, group in by_key.items():
        await noop.configure(lock=key).batch_defer_async(*group)


async def main():
    global log
    async with app.open_async():
        if MODE == "setup":
            await app.schema_manager.apply_schema_async()
        elif MODE == "enqueue":
            await enqueue(add_many, *map(int, REST))
        elif MODE == "pace":
            await pace(lambda job: noop.defer_async(**job), JobLog(REST[0]), *map(int, REST[1:]))
        else:
            log = JobLog(REST[0])
            await app.run_worker_async(concurrency=int(REST[1]))


asyncio.run(main())
